"""
Pictures found by their names
=============================

Glyphs of a font have a name and a picture. Of two hundred, both are known to belong
together; each row shows the best pictures for another name, among the other glyphs.
"""

import matplotlib.pyplot as plt
import numpy as np

import linkspread as ls
from linkspread.datasets import load_glyphs
from linkspread.datasets.glyphs import make_glyph_image

glyphs = load_glyphs()
kinds = ("GREEK", "CYRILLIC", "ARMENIAN", "HEBREW")
chosen = np.flatnonzero([name.startswith(kinds) for name in glyphs.names])
ids = glyphs.ids[chosen]
names = dict(zip(glyphs.ids, glyphs.names))
signs = dict(zip(glyphs.ids, glyphs.characters))
rng = np.random.default_rng(0)
known = rng.choice(ids, 200, replace=False)
links = ls.Links.from_pairs([(i, i, 1.0) for i in known], between=("name", "image"))
views = {view: X[chosen] for view, X in glyphs.views.items()}
model = ls.CrossViewSearch().fit(views, links, ids=dict.fromkeys(views, ids))

queries = rng.choice(np.setdiff1d(ids, known), 5, replace=False)
found, _ = model.search(
    queries, source="name", target="image", n_results=8, exclude=known
)
figure, axes = plt.subplots(5, 8, figsize=(9, 6.5), layout="constrained")
for row, query, results in zip(axes, queries, found):
    for ax, item in zip(row, results):
        ax.imshow(make_glyph_image(signs[item], 48), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
    row[0].set_title(names[query].title(), fontsize=8, loc="left")

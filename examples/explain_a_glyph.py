"""
Why a name finds a picture
==========================

The links and neighbours behind one search.

300 of 1,589 letters are known by name and by picture, which makes 300 must-links, and
as many wrong pairs make cannot-links. The name of another letter finds its picture
among those that nobody linked. The figure shows through which links.

::

    python examples/explain_a_glyph.py docs/figures/explained-glyph.svg
"""

import sys
from pathlib import Path

import numpy as np

from linkspread import Links, LinkSpreading
from linkspread.datasets import load_glyphs
from linkspread.datasets.glyphs import make_glyph_image
from linkspread.judging import explanation_picture
from linkspread.studies.report.page import ink_data_uri

SCRIPTS = ("LATIN ", "GREEK ", "CYRILLIC ")
N_LINKED = 300
QUERY = "U+03C9"  # GREEK SMALL LETTER OMEGA
VIEWS = {"source": "name", "target": "image"}


def letters():
    """Return glyphs and the positions of those that are letters of three scripts."""
    glyphs = load_glyphs()
    is_letter = ["LETTER" in n and n.startswith(SCRIPTS) for n in glyphs.names]
    return glyphs, np.flatnonzero(is_letter)


def make_links(ids, rng):
    """Return links of some letters with their own picture and with a wrong one."""
    own = rng.choice(ids, N_LINKED, replace=False)
    wrong = rng.permutation(own)
    pairs = [(name, name, 1.0) for name in own]
    pairs += [(a, b, -1.0) for a, b in zip(own, wrong, strict=True) if a != b]
    return Links.from_pairs(pairs, between=("name", "image")), own


def fit(glyphs, chosen, links):
    """Fit the names and the pictures of the letters."""
    views = {view: X[chosen] for view, X in glyphs.views.items()}
    ids = dict.fromkeys(views, glyphs.ids[chosen])
    metric = {"name": "cosine", "image": "euclidean"}
    model = LinkSpreading(n_neighbors=10, metric=metric, alpha=0.6, beta=0.9)
    return model.fit(views, links, ids=ids)


def show(why, glyphs):
    """Return the picture of an explanation, with names and drawings of the glyphs."""
    names = dict(zip(glyphs.ids, glyphs.names, strict=True))
    signs = dict(zip(glyphs.ids, glyphs.characters, strict=True))
    parts = [part for split in why.splits.values() for part in split.parts]
    used = {why.target_item, *(part.target_item for part in parts)} - {None}
    drawings = {item: ink_data_uri(make_glyph_image(signs[item], 72)) for item in used}
    titles = {"name": names, "image": {item: f"picture {item}" for item in names}}
    return explanation_picture(
        why, titles=titles, pictures={"image": drawings}, n_links=7
    )


def main(path):
    """Explain one search, print why and write the picture."""
    glyphs, chosen = letters()
    links, linked = make_links(glyphs.ids[chosen], np.random.default_rng(0))
    model = fit(glyphs, chosen, links)
    found, _ = model.search(QUERY, **VIEWS, n_results=1, exclude=linked)
    why = model.explain(QUERY, found[0], **VIEWS, n_links=12)
    Path(path).write_text(show(why, glyphs), encoding="utf-8")
    print(why)
    return why


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "explained-glyph.svg")

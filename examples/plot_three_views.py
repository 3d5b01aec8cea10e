"""
Three views, two of them never linked
=====================================

Texts are linked to images and to sounds. Images and sounds have no link between them;
they are searched through the texts.
"""

import matplotlib.pyplot as plt
import numpy as np

import linkspread as ls

sizes = {"text": 150, "image": 120, "sound": 100}
widths = {"text": 32, "image": 24, "sound": 16}
data = ls.datasets.make_views(sizes, n_classes=4, n_features=widths)
known = {
    view: np.where(np.arange(len(y)) < 40, y, -1) for view, y in data.labels.items()
}
links = ls.Links.from_labels({view: known[view] for view in ("text", "image")})
links += ls.Links.from_labels({view: known[view] for view in ("text", "sound")})
model = ls.CrossViewSearch().fit(data.views(), links)

figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
pairs = [("text", "image"), ("text", "sound"), ("image", "sound")]
for ax, (source, target) in zip(axes, pairs):
    rows, cols = (np.argsort(data.labels[view]) for view in (source, target))
    ax.imshow(model.scores(source, target)[np.ix_(rows, cols)], aspect="auto")
    ax.set(title=f"{source} to {target}", xlabel=target, ylabel=source)
figure.suptitle("Scores; items in the order of their hidden classes")

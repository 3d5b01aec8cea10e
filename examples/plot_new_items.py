"""
Items that come later
=====================

Half of the images arrive after the fit. ``add_items`` makes them findable at once;
the figure compares them with the same images in a fit of all.
"""

import matplotlib.pyplot as plt
import numpy as np

import linkspread as ls

widths = {"text": 32, "image": 24}
data = ls.datasets.make_views(400, n_classes=5, n_features=widths, noise=1.3)
views, labels = data.views(), data.labels
same = labels["text"][:, None] == labels["image"][None, :]
rng = np.random.default_rng(0)
judged = [
    (i, j, 1.0 if same[i, j] else -1.0) for i, j in rng.integers(200, size=(150, 2))
]
links = ls.Links.from_pairs(judged, between=("text", "image"))

whole = ls.CrossViewSearch().fit(views, links)
half = ls.CrossViewSearch().fit({**views, "image": views["image"][:200]}, links)
half.add_items("image", views["image"][200:])


def precision(model, chosen):
    scores = model.scores("text", "image", cols=chosen)
    return ls.metrics.mean_average_precision(
        scores, labels["text"], labels["image"][chosen]
    )


figure, ax = plt.subplots(layout="constrained")
places = np.arange(2)
for shift, (name, model) in zip(
    (-0.2, 0.2), {"fit of all": whole, "added later": half}.items()
):
    found = [precision(model, part) for part in (slice(0, 200), slice(200, 400))]
    ax.bar(places + shift, found, width=0.38, label=name)
ax.set(xticks=places, xticklabels=["first 200 images", "last 200 images"], ylim=(0, 1))
ax.set_ylabel("mean average precision")
ax.legend()

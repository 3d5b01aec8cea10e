"""
What cannot-links add
=====================

The same must-links, with and without the pairs that people said do not belong
together.
"""

import matplotlib.pyplot as plt
import numpy as np

import linkspread as ls

widths = {"text": 32, "image": 24}
data = ls.datasets.make_views(200, n_classes=4, n_features=widths, noise=1.5)
same = data.labels["text"][:, None] == data.labels["image"][None, :]
rng = np.random.default_rng(0)
pairs = rng.integers(200, size=(200, 2))
must = [(i, j, 1.0) for i, j in pairs if same[i, j]]
cannot = [(i, j, -1.0) for i, j in pairs if not same[i, j]]

figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, judged in zip(axes, (must, must + cannot)):
    links = ls.Links.from_pairs(judged, between=("text", "image"))
    model = ls.CrossViewSearch().fit(data.views(), links)
    scores = model.scores("text", "image")
    places = scores.argsort(axis=1).argsort(axis=1) / 200
    ax.hist([places[same], places[~same]], bins=20, density=True)
    found = ls.metrics.mean_average_precision(scores, *data.labels.values())
    n_cannot = len(judged) - len(must)
    ax.set(
        title=f"{len(must)} must, {n_cannot} cannot: MAP {found:.2f}",
        xlabel="place in the ranking",
    )
axes[0].legend(["belongs together", "does not"])

"""
What probability a score means
==============================

Scores rank; ``calibrate`` holds out each fifth of the judgements and learns how often
a pair with a given score belongs together. Points are pairs that nobody judged, in
ten groups.
"""

import matplotlib.pyplot as plt
import numpy as np

import linkspread as ls

widths = {"text": 32, "image": 24}
data = ls.datasets.make_views(400, n_classes=4, n_features=widths, noise=1.5)
rng = np.random.default_rng(0)
pairs = rng.integers(400, size=(600, 2))
same = data.labels["text"][:, None] == data.labels["image"][None, :]
judged = [(i, j, 1.0 if same[i, j] else -1.0) for i, j in pairs]
links = ls.Links.from_pairs(judged, between=("text", "image"))
model = ls.CrossViewSearch().fit(data.views(), links)
learnt = ls.selection.calibrate(model, data.views(), source="text", target="image")

scores = model.scores("text", "image").ravel()
said = learnt.probability(scores)
groups = np.array_split(np.argsort(said), 10)
figure, ax = plt.subplots(layout="constrained")
true = [same.ravel()[group].mean() for group in groups]
ax.plot([said[group].mean() for group in groups], true, "o")
ax.plot([0, 1], [0, 1], color="grey", linestyle=":", label="as said")
ax.set(xlabel="probability that is said", ylabel="share that belongs together")
ax.legend()

"""
How good is a fit, from its own judgements
==========================================

``held_out_quality`` hides items with their judgements. With few judgements its
interval is wide; it narrows as more are given. The line is the truth, from all hidden
classes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

import linkspread as ls

data = ls.datasets.make_views(300, n_classes=4, noise=1.0)
same = data.labels["text"][:, None] == data.labels["image"][None, :]
rng = np.random.default_rng(1)
pairs = rng.integers(300, size=(320, 2))
judged = [(i, j, 1.0 if same[i, j] else -1.0) for i, j in pairs]

known, said, low, high, true = [20, 40, 80, 160, 320], [], [], [], []
for n in known:
    links = ls.Links.from_pairs(judged[:n], between=("text", "image"))
    model = ls.LinkSpreading(n_neighbors=10, alpha=0.9).fit(data.views(), links)
    quality = ls.selection.held_out_quality(model, data.views())
    said.append(quality.auc)
    low.append(quality.auc_interval[0])
    high.append(quality.auc_interval[1])
    true.append(roc_auc_score(same.ravel(), model.scores("text", "image").ravel()))

figure, ax = plt.subplots(layout="constrained")
ax.fill_between(known, low, high, alpha=0.2, label="90 % interval")
ax.plot(known, said, marker="o", label="held-out AUC")
ax.plot(known, true, color="black", linestyle=":", label="all pairs")
ax.set(
    xscale="log", xticks=known, xticklabels=known, xlabel="judged pairs", ylabel="AUC"
)
ax.legend()

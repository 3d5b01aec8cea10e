"""
How good is a fit, from judgements that it does not know
=========================================================

``evaluate_pairs`` scores judged pairs that the model was not fitted to. With few of
them its interval is wide; it narrows as more are given. The line is the truth, from all
hidden classes.
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

between = ("text", "image")
links = ls.Links.from_pairs(judged[:80], between=between)
model = ls.LinkSpreading(n_neighbors=10, alpha=0.9).fit(data.views(), links)
true = roc_auc_score(same.ravel(), model.scores(*between).ravel())

known, said, low, high = [30, 60, 120, 240], [], [], []
for n in known:
    asked = ls.Links.from_pairs(judged[80 : 80 + n], between=between)
    (quality,) = ls.selection.evaluate_pairs(model, asked)
    said.append(quality.auc)
    low.append(quality.auc_interval[0])
    high.append(quality.auc_interval[1])

figure, ax = plt.subplots(layout="constrained")
ax.fill_between(known, low, high, alpha=0.2, label="90 % interval")
ax.plot(known, said, marker="o", label="AUC")
ax.axhline(true, color="black", linestyle=":", label="all pairs")
ax.set(
    xscale="log", xticks=known, xticklabels=known, xlabel="judged pairs", ylabel="AUC"
)
ax.legend()

"""
Precision grows with judgements
===============================

One model learns 400 judgements, forty at a time, without another fit. The mean
average precision over all 600 texts, which no judgement contains, is measured by
hidden classes.
"""

import matplotlib.pyplot as plt
import numpy as np

import linkspread as ls

sizes, widths = {"text": 600, "image": 400}, {"text": 32, "image": 24}
data = ls.datasets.make_views(sizes, n_classes=5, n_features=widths, noise=1.3)
rng = np.random.default_rng(0)
texts, images = rng.integers(600, size=400), rng.integers(400, size=400)
same = data.labels["text"][texts] == data.labels["image"][images]
judged = [(i, j, 1.0 if s else -1.0) for i, j, s in zip(texts, images, same)]
between = ("text", "image")

links = ls.Links.from_pairs(judged[:40], between=between)
model = ls.CrossViewSearch().fit(data.views(), links)


def precision():
    scores = model.scores("text", "image")
    return ls.metrics.mean_average_precision(
        scores, data.labels["text"], data.labels["image"]
    )


known, found = [40], [precision()]
for start in range(40, 400, 40):
    model.add_links(ls.Links.from_pairs(judged[start : start + 40], between=between))
    known.append(start + 40)
    found.append(precision())

figure, ax = plt.subplots(layout="constrained")
ax.plot(known, found, marker="o")
ax.axhline(0.2, color="grey", linestyle=":", label="by chance")
ax.set(xlabel="judged pairs", ylabel="mean average precision", ylim=(0, 1))
ax.legend()

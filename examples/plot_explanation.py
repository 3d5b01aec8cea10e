"""
Why this result
===============

``explain`` splits a score into the judged pairs that made it. The parts add up to the
score.
"""

import matplotlib.pyplot as plt

import linkspread as ls

sizes, widths = {"text": 200, "image": 150}, {"text": 32, "image": 24}
data = ls.datasets.make_views(sizes, n_classes=4, n_features=widths)
same = data.labels["text"][:, None] == data.labels["image"][None, :]
judged = [(i, 7 * i % 40, 1.0 if same[i, 7 * i % 40] else -1.0) for i in range(40)]
links = ls.Links.from_pairs(judged, between=("text", "image"))
model = ls.CrossViewSearch().fit(data.views(), links)

between = {"source": "text", "target": "image"}
ids, _ = model.search(120, **between, n_results=1)
why = model.explain(120, ids[0], **between)

parts = sorted(why.contributions, key=lambda part: -abs(part.amount))[:10][::-1]
names = [
    part.kind
    if part.source_item is None
    else f"text {part.source_item}, image {part.target_item}"
    for part in parts
]
amounts = [part.amount for part in parts]
figure, ax = plt.subplots(layout="constrained")
ax.barh(names, amounts, color=["tab:blue" if a > 0 else "tab:red" for a in amounts])
ax.set(
    title=f"Text 120 and image {ids[0]}: score {why.score:.2f}",
    xlabel="adds to the score",
)

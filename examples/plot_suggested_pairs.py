"""
Which pairs to judge
====================

``suggest_pairs`` asks about items that stand for many others and are far from each
other. Random pairs ask about whatever there is much of.
"""

import matplotlib.pyplot as plt
import numpy as np

import linkspread as ls

rng = np.random.default_rng(3)
centres = rng.normal(scale=8, size=(12, 2))
sizes = np.r_[300, 200, np.full(10, 12)]  # two large groups, ten small ones
text = np.concatenate([c + rng.normal(size=(n, 2)) for c, n in zip(centres, sizes)])
image = text + 0.3 * rng.normal(size=text.shape)
links = ls.Links.from_pairs([(0, 0, 1.0), (130, 5, -1.0)], between=("text", "image"))
model = ls.CrossViewSearch().fit({"text": text, "image": image}, links)

texts, _ = model.suggest_pairs(400, source="text", target="image")
asked = {"suggested": np.unique(texts)}
asked["random"] = rng.choice(len(text), len(asked["suggested"]), replace=False)

figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
for ax, (name, chosen) in zip(axes, asked.items()):
    ax.scatter(*text.T, s=8, color="lightgrey")
    ax.scatter(*text[chosen].T, s=40, color="tab:blue")
    ax.set(title=f"texts of {name} pairs", xticks=[], yticks=[])

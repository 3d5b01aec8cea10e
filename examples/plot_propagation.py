"""
How far a link spreads
======================

``LinkSpreading`` carries one must-link and one cannot-link along the graphs of both
views. Here each view is a line of fifty points, so that the scores can be looked at.
"""

import matplotlib.pyplot as plt
import numpy as np

import linkspread as ls

line = np.arange(50.0)[:, None]
links = ls.Links.from_pairs([(15, 15, 1.0), (35, 25, -1.0)], between=("x", "y"))

figure, axes = plt.subplots(1, 3, figsize=(11, 4), layout="constrained")
for ax, alpha in zip(axes, (0.3, 0.9, 0.99)):
    model = ls.LinkSpreading(n_neighbors=4, alpha=alpha, beta=0.5)
    scores = model.fit({"x": line, "y": line}, links).scores("x", "y")
    limit = np.abs(scores).max()
    ax.imshow(scores, cmap="RdBu", vmin=-limit, vmax=limit)
    ax.set(title=f"alpha = {alpha}", xlabel="item of y", ylabel="item of x")
figure.suptitle("Blue: belongs together; red: does not")

"""
Two moons that touch
====================

A k-NN graph of noisy moons has wrong edges where the moons meet. Constrained weight
adjustment (CWA) spreads the labels of 120 of 300 points over the graph and weakens
the edges that they contradict, also between points nobody labelled.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sklearn.datasets import make_moons

from linkspread import Links
from linkspread.graphs import adjust_weights, knn_graph

X, moon = make_moons(300, noise=0.25, random_state=0)
rng = np.random.default_rng(0)
labels = np.full(len(X), -1)
for m in (0, 1):
    labels[rng.choice(np.flatnonzero(moon == m), 60, replace=False)] = m

W = knn_graph(X, n_neighbors=10)
links = Links.from_labels({"moons": labels})
adjusted = adjust_weights(W, links, alpha=0.5, beta=0.5)
graphs = {"k-NN": W, "adjusted by 120 labels (CWA)": adjusted}

wrong = {}
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
for ax, (title, graph) in zip(axes, graphs.items()):
    edges = graph.tocoo()
    crosses = moon[edges.row] != moon[edges.col]
    wrong[title] = edges.data[crosses].sum() / edges.data.sum()
    # Right edges are grey, wrong ones red, as strong as their weights.
    colors = np.where(crosses[:, None], [[0.8, 0.1, 0.1]], [[0.6] * 3])
    rgba = np.hstack([colors, (edges.data / edges.data.max())[:, None] / 2])
    lines = np.stack([X[edges.row], X[edges.col]], axis=1)
    ax.add_collection(LineCollection(lines, colors=rgba, linewidths=0.8))
    ax.scatter(*X.T, c=moon, s=6, cmap="coolwarm")
    rings = {"facecolors": "none", "edgecolors": "black", "linewidths": 0.6}
    ax.scatter(*X[labels >= 0].T, s=22, **rings)
    ax.set(title=f"{title}: {wrong[title]:.1%} of the weight is wrong")
    ax.set_axis_off()

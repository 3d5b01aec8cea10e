"""Two moons that touch: links repair the edges between them.

A k-NN graph of noisy moons has wrong edges where the moons meet. Constrained weight
adjustment (CWA) spreads the labels of 120 of 300 points over the graph and weakens the
edges that they contradict, also between points nobody labelled.

::

    python examples/plot_two_moons.py docs/figures/two-moons.png
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sklearn.datasets import make_moons

from linkspread import Links
from linkspread.graphs import adjust_weights, knn_graph

N_LABELED = 60  # of each moon


def make_data(seed=0):
    """Return 300 points on two moons, their moon, and the few labels known."""
    X, moon = make_moons(300, noise=0.25, random_state=seed)
    rng = np.random.default_rng(seed)
    labels = np.full(len(X), -1)
    for m in (0, 1):
        known = rng.choice(np.flatnonzero(moon == m), N_LABELED, replace=False)
        labels[known] = m
    return X, moon, labels


def wrong_share(W, moon):
    """Return the share of the total weight that joins the two moons."""
    edges = W.tocoo()
    wrong = moon[edges.row] != moon[edges.col]
    return edges.data[wrong].sum() / edges.data.sum()


def draw(ax, W, X, moon, labels, title):
    """Draw right edges grey, wrong ones red, as strong as their weights."""
    edges = W.tocoo()
    upper = edges.row < edges.col
    i, j, w = edges.row[upper], edges.col[upper], edges.data[upper]
    colors = np.where((moon[i] != moon[j])[:, None], [[0.8, 0.1, 0.1]], [[0.6] * 3])
    lines = np.stack([X[i], X[j]], axis=1)
    alpha = np.clip(w / w.max(), 0, 1)[:, None]
    rgba = np.hstack([colors, alpha])
    ax.add_collection(LineCollection(lines, colors=rgba, linewidths=0.8))
    ax.scatter(*X.T, c=moon, s=6, cmap="coolwarm")
    rings = {"facecolors": "none", "edgecolors": "black", "linewidths": 0.6}
    ax.scatter(*X[labels >= 0].T, s=22, **rings)
    ax.set_title(f"{title}: {wrong_share(W, moon):.1%} of the weight is wrong")
    ax.set_aspect("equal")
    ax.set_axis_off()


def main(path):
    """Draw the graph before and after; return the share of wrong weight in each."""
    X, moon, labels = make_data()
    W = knn_graph(X, n_neighbors=10)
    links = Links.from_labels({"moons": labels})
    adjusted = adjust_weights(W, links, alpha=0.5, beta=0.5)
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    draw(axes[0], W, X, moon, labels, "k-NN")
    draw(axes[1], adjusted, X, moon, labels, "adjusted by 120 labels (CWA)")
    figure.savefig(path, dpi=60)
    return wrong_share(W, moon), wrong_share(adjusted, moon)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "two-moons.png")

"""
The paper's loop, and where it ends
===================================

The paper alternates between the views. linkspread computes the end of that loop
directly. The figure shows how far the loop is from it after each round.
"""

import matplotlib.pyplot as plt
import numpy as np

import linkspread as ls
from linkspread.graphs import knn_graph, normalize
from linkspread.links import as_link_matrix
from linkspread.propagation import alternate, propagate

data = ls.datasets.make_views({"text": 90, "image": 60}, n_classes=4)
graphs = [normalize(knn_graph(X, n_neighbors=8)) for X in data.views().values()]
rng = np.random.default_rng(0)
Z = np.zeros((90, 60))
texts, images = rng.integers(90, size=40), rng.integers(60, size=40)
same = data.labels["text"][texts] == data.labels["image"][images]
Z[texts, images] = np.where(same, 1.0, -1.0)

figure, ax = plt.subplots(layout="constrained")
rounds = np.arange(1, 41, 3)
for beta in (0.5, 0.8, 0.95):
    end = propagate(graphs[0], as_link_matrix(Z), graphs[1], alpha=0.8, beta=beta)
    end = end.toarray()
    errors = []
    for n in rounds:
        F = alternate(graphs[0], Z, graphs[1], alpha=0.8, beta=beta, n_outer=int(n))
        errors.append(np.linalg.norm(F - end) / np.linalg.norm(end))
    ax.semilogy(rounds, errors, label=f"beta = {beta}")
ax.set(xlabel="rounds of the loop", ylabel="relative distance from the fixed point")
ax.legend()

"""Neighbourhood graphs: a view's table in, a sparse affinity matrix out.

>>> import numpy as np
>>> from linkspread.graphs import knn_graph, normalize
>>> X = np.array([[0.0], [0.1], [5.0], [5.1]])
>>> W = knn_graph(X, n_neighbors=1)
>>> normalize(W).toarray().round(6).tolist()
[[0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]]
"""

from linkspread.graphs.adjust import adjust_weights
from linkspread.graphs.knn import NeighborGraph, knn_graph
from linkspread.graphs.l1 import L1Graph, l1_graph
from linkspread.graphs.neighbors import nearest_neighbors
from linkspread.graphs.normalize import normalize, normalize_rows

__all__ = [
    "L1Graph",
    "NeighborGraph",
    "adjust_weights",
    "knn_graph",
    "l1_graph",
    "nearest_neighbors",
    "normalize",
    "normalize_rows",
]

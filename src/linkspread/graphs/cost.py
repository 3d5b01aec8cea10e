"""Estimates of the time and memory of building a graph."""

from linkspread.graphs.neighbors import CONVERSION_BLOCK, ITEM_TILE, QUERY_TILE
from linkspread.ground.cores import count_threads

# Measured on one core of a 2-core server: single-precision products, and the
# comparison of one key with the worst one kept.
FLOPS_PER_SECOND = 7e10
SECONDS_PER_KEY = 1e-9


def knn_cost(n_items: int, n_features: int, n_neighbors: int) -> tuple[float, int]:
    """Estimate the time and the memory of a dense Euclidean `knn_graph`."""
    n_threads = count_threads(None)
    n_pairs = float(n_items) ** 2
    seconds = n_pairs * (2 * n_features / FLOPS_PER_SECOND + SECONDS_PER_KEY)
    converted = 4 * n_items * n_features
    tile = 4 * min(QUERY_TILE, n_items) * min(ITEM_TILE, n_items)
    block = 16 * n_features * min(QUERY_TILE, n_items)
    searching = n_threads * (tile + block) + 12 * n_items * n_neighbors
    # Per edge: the neighbours, their weights, and the graph beside its transpose.
    assembling = 56 * n_items * n_neighbors
    converting = 16 * n_features * min(CONVERSION_BLOCK, n_items)
    n_bytes = converted + max(searching, assembling, converting)
    return seconds / n_threads, n_bytes

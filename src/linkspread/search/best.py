"""The largest entries of each row of a block, without sorting the row.

A row is cut into pieces. The k-th largest of their maxima is a lower bound of the k-th
largest entry, so only pieces that reach it are searched: one pass over the row for the
maxima, and then about k pieces.
"""

import numpy as np

Array = np.ndarray

# Long enough for fast maxima, short enough that k pieces have few entries.
PIECE = 512
# With fewer pieces than this multiple of k, nearly all would be searched.
MIN_PIECES = 4


def best_entries(block: Array, n_results: int) -> tuple[Array, Array]:
    """Return the positions and values of the largest entries of each row."""
    n_rows, n_columns = block.shape
    positions = np.empty((n_rows, n_results), dtype=np.int64)
    values = np.empty((n_rows, n_results), dtype=block.dtype)
    if n_results == 0:
        return positions, values
    maxima = None
    if n_columns >= MIN_PIECES * n_results * PIECE:
        starts = np.arange(0, n_columns, PIECE)
        maxima = np.maximum.reduceat(block, starts, axis=1)
        bounds = np.partition(maxima, -n_results, axis=1)[:, -n_results]
    for i, row in enumerate(block):
        if maxima is None:
            best = _best(row, n_results)
        else:
            pieces = np.flatnonzero(maxima[i] >= bounds[i])
            candidates = _reaching(row, pieces, bounds[i])
            best = candidates[_best(row[candidates], n_results)]
        positions[i], values[i] = best, row[best]
    return positions, values


def _reaching(row: Array, pieces: Array, bound: float) -> Array:
    """Return the positions within some pieces whose entries reach a bound."""
    positions = (pieces[:, None] * PIECE + np.arange(PIECE)).ravel()
    # The last piece may be shorter than the others.
    positions = positions[: np.searchsorted(positions, len(row))]
    return positions[row[positions] >= bound]


def _best(row: Array, n_results: int) -> Array:
    """Return the positions of the largest entries, equal ones in order."""
    threshold = np.partition(row, len(row) - n_results)[len(row) - n_results]
    above = np.flatnonzero(row > threshold)
    # Ties with the last place are decided by position.
    equal = np.flatnonzero(row == threshold)[: n_results - len(above)]
    chosen = np.concatenate([above, equal])
    return chosen[np.argsort(-row[chosen], kind="stable")]

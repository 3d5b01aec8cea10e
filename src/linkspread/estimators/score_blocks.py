"""Blocks of scores: small enough to be made, exact if that is asked for."""

from typing import Any

import numpy as np

from linkspread.exceptions import BlockTooLargeError
from linkspread.progress import format_bytes
from linkspread.propagation import propagate_rows

__all__ = ["check_block", "exact_block"]

Array = np.ndarray

# Rows of exact scores that are propagated at a time, times the items of both views.
EXACT_ENTRIES = 1 << 21


def check_block(n_rows: int, n_cols: int, dtype: np.dtype, max_bytes: float) -> None:
    """Refuse a block of scores that is larger than allowed.

    Parameters
    ----------
    n_rows, n_cols : int
    dtype : dtype
        Of the scores.
    max_bytes : float
    """
    n_bytes = float(n_rows) * n_cols * dtype.itemsize
    if n_bytes > max_bytes:
        raise BlockTooLargeError(
            f"a block of scores must be at most {format_bytes(max_bytes)}, and "
            f"{n_rows:,} x {n_cols:,} takes {format_bytes(n_bytes)}. Ask for "
            "fewer `rows` or `cols`, use `search`, or raise `max_bytes`."
        )


def exact_block(
    S_x: Any, Z: Any, S_y: Any, rows: Array, cols: Array, **parameters: Any
) -> Array:
    """Return a block of the scores without truncation of rank.

    Parameters
    ----------
    S_x, Z, S_y : as in `propagate_rows`
    rows, cols : ndarray of shape (n_rows,) and (n_cols,)
        Positions in the two views.
    **parameters : dict
        `alpha`, `beta` and `tol` of `propagate_rows`.

    Returns
    -------
    block : ndarray of shape (n_rows, n_cols)
    """
    if len(cols) < len(rows):
        parameters["alpha"] = parameters["alpha"][::-1]
        return exact_block(S_y, Z.T, S_x, cols, rows, **parameters).T
    if len(rows) == 0:
        return np.zeros((0, len(cols)), dtype=S_x.dtype)
    step = max(1, EXACT_ENTRIES // sum(Z.shape))
    blocks = [
        propagate_rows(S_x, Z, S_y, rows[i : i + step], **parameters)[:, cols]
        for i in range(0, len(rows), step)
    ]
    return np.concatenate(blocks)

"""The scores of many settings of alpha and beta from one propagation.

All settings share the functions of the graphs (see `filter.share_filter`), so links are
propagated once and a setting adds only a small core.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.links import as_link_matrix
from linkspread.propagation.chebyshev import filtered_sums
from linkspread.propagation.exact import check_tol, working_graphs
from linkspread.propagation.filter import Setting, share_filter

Array = np.ndarray

# Typical number of functions: 19 for tol=1e-3 and 31 for tol=1e-8.
N_FUNCTIONS = 26
# Unit vectors filtered at a time, times the items of the view.
FILTERED_ENTRIES = 1 << 24


@dataclass(frozen=True)
class SettingsSpread:
    """Links propagated with many settings at once."""

    left: Array
    right: Array
    cores: tuple[Array, ...]  # of each setting
    classes: Array  # the core of the links
    rows: Array | None = None  # items of the vectors, None for all
    cols: Array | None = None

    def left_of(self, positions: Array) -> Array:
        """Return the vectors of items of the first view."""
        return self.left[_places(positions, self.rows)]

    def right_of(self, positions: Array) -> Array:
        """Return the vectors of items of the second view."""
        return self.right[_places(positions, self.cols)]

    def queries(self, vectors: Array, k: int) -> Array:
        """Return the query vectors of items for setting k."""
        n_left, n_right = self.cores[k].shape
        linked = vectors.reshape(len(vectors), n_left, -1) @ self.classes
        mixed = np.matmul(self.cores[k].T, linked)
        return mixed.reshape(len(vectors), n_right * self.classes.shape[1])


def spread_settings(
    S_x: Any,
    links: Sequence[Any],
    S_y: Any,
    settings: Sequence[Setting],
    *,
    tol: float = 1e-6,
    unseen: bool = False,
    rows: Array | None = None,
    cols: Array | None = None,
) -> list[SettingsSpread]:
    """Propagate sets of links over the same graphs with every setting of a grid.

    All take one recurrence per view. Vectors are kept for some rows and columns, None
    for all.
    """
    S_x, S_y = working_graphs(S_x, links[0], S_y)
    separable = share_filter(tuple(settings), tol=check_tol(tol), unseen=unseen)
    thin = [as_link_matrix(Z).thin() for Z in links]
    lefts = _filter_each(S_x, [U for U, _, _ in thin], separable.left, rows)
    rights = _filter_each(S_y, [V for _, _, V in thin], separable.right, cols)
    return [
        SettingsSpread(left, right, separable.cores, G, rows, cols)
        for left, (_, G, _), right in zip(lefts, thin, rights, strict=True)
    ]


def _filter_each(
    S: sparse.csr_array, blocks: Sequence[Any], functions: Array, rows: Array | None
) -> list[Array]:
    """Filter several blocks in one recurrence."""
    joined = sparse.hstack([sparse.csr_array(block) for block in blocks], format="csr")
    linked = np.flatnonzero(np.diff(joined.indptr))
    if len(linked) < joined.shape[1]:
        # With fewer linked items than columns, unit vectors of items are filtered.
        ones = np.ones(len(linked)), (linked, np.arange(len(linked)))
        alone = sparse.csr_array(ones, shape=(S.shape[0], len(linked)))
        step = max(16, FILTERED_ENTRIES // S.shape[0])
        parts = [
            filtered_sums(S, alone[:, k : k + step], functions, rows=rows)
            for k in range(0, len(linked), step)
        ]
        reached = np.concatenate(parts, axis=2)
        sums = reached @ joined[linked].toarray().astype(S.dtype)
    else:
        sums = filtered_sums(S, joined, functions, rows=rows)
    ends = np.cumsum([block.shape[1] for block in blocks])
    parts = np.split(sums, ends[:-1], axis=2)
    return [part.reshape(len(part), -1) for part in parts]


def _places(positions: Array, known: Array | None) -> Array:
    """Return the places of positions among the known ones."""
    return positions if known is None else np.searchsorted(known, positions)


def settings_bytes(Z: Any, n_items: int) -> float:
    """Estimate the memory of the vectors of `spread_settings` for `n_items`."""
    return 8.0 * N_FUNCTIONS * as_link_matrix(Z).thin_width() * n_items

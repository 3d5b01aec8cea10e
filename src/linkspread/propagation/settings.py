"""The scores of many settings of alpha and beta from one propagation.

The functions of the graphs that a setting needs are shared by all settings (see
`shared_filter`), so the links are spread once and a setting costs a small core.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.links import as_link_matrix
from linkspread.propagation.chebyshev import filtered_sums
from linkspread.propagation.parameters import check_tol, working_graphs
from linkspread.propagation.shared_filter import Setting, share_filter

__all__ = [
    "SettingsSpread",
    "settings_bytes",
    "spread_settings",
    "spread_settings_each",
]

Array = np.ndarray

# Functions that a grid needs, about: 19 for tol=1e-3 and 31 for tol=1e-8.
N_FUNCTIONS = 26


@dataclass(frozen=True)
class SettingsSpread:
    """Links spread with many settings at once.

    Attributes
    ----------
    left, right : ndarray of shape (n, w) and (m, v)
        Memberships filtered by every function.
    cores : tuple of ndarray of shape (n_left, n_right)
        How each setting mixes the functions of both views.
    classes : ndarray of shape (w / n_left, v / n_right)
        How the links join the memberships.
    error : float
        Largest relative error of a setting.
    """

    left: Array
    right: Array
    cores: tuple[Array, ...]
    classes: Array
    error: float

    def queries(self, vectors: Array, k: int) -> Array:
        """Return the vectors with which items search under one setting.

        Parameters
        ----------
        vectors : ndarray of shape (q, w)
            Rows of `left`, or weighted sums of them for new items.
        k : int
            Which setting.

        Returns
        -------
        queries : ndarray of shape (q, v)
            To be multiplied with rows of `right`.
        """
        n_left, n_right = self.cores[k].shape
        linked = vectors.reshape(len(vectors), n_left, -1) @ self.classes
        mixed = np.matmul(self.cores[k].T, linked)
        return mixed.reshape(len(vectors), n_right * self.classes.shape[1])


def spread_settings(
    S_x: Any,
    Z: Any,
    S_y: Any,
    settings: Sequence[Setting],
    *,
    tol: float = 1e-6,
    unseen: bool = False,
) -> SettingsSpread:
    """Propagate links with every setting of a grid, for the price of one.

    Parameters
    ----------
    S_x : sparse or ndarray of shape (n, n)
    Z : sparse, ndarray or LinkMatrix of shape (n, m)
        Thin: labels, or pairs that few items take part in.
    S_y : sparse or ndarray of shape (m, m)
        All as in :func:`propagate`.
    settings : sequence of ((float, float), float)
        alpha of both views, and beta.
    tol : float, default=1e-6
        Relative error allowed to each.
    unseen : bool, default=False
        For new items of the row view, as in :class:`Spread`.

    Returns
    -------
    spread : SettingsSpread
    """
    return spread_settings_each(S_x, [Z], S_y, settings, tol=tol, unseen=unseen)[0]


def spread_settings_each(
    S_x: Any,
    links: Sequence[Any],
    S_y: Any,
    settings: Sequence[Setting],
    *,
    tol: float = 1e-6,
    unseen: bool = False,
) -> list[SettingsSpread]:
    """Propagate several sets of links over the same graphs, side by side.

    Parameters
    ----------
    S_x : sparse or ndarray of shape (n, n)
    links : sequence of sparse, ndarray or LinkMatrix of shape (n, m)
    S_y : sparse or ndarray of shape (m, m)
    settings : sequence of ((float, float), float)
    tol : float, default=1e-6
    unseen : bool, default=False
        All others as in :func:`spread_settings`.

    Returns
    -------
    spreads : list of SettingsSpread
        One for each set of links.
    """
    S_x, S_y = working_graphs(S_x, links[0], S_y)
    separable = share_filter(settings, tol=check_tol(tol), unseen=unseen)
    thin = [as_link_matrix(Z).thin() for Z in links]
    lefts = _filter_each(S_x, [U for U, _, _ in thin], separable.left)
    rights = _filter_each(S_y, [V for _, _, V in thin], separable.right)
    return [
        SettingsSpread(left, right, separable.cores, G, separable.error)
        for left, (_, G, _), right in zip(lefts, thin, rights, strict=True)
    ]


def _filter_each(
    S: sparse.csr_array, blocks: Sequence[Any], functions: Array
) -> list[Array]:
    """Filter blocks in one recurrence, which reads the graph once for all of them."""
    joined = sparse.hstack([sparse.csr_array(block) for block in blocks], format="csr")
    sums = filtered_sums(S, joined, functions)
    ends = np.cumsum([block.shape[1] for block in blocks])
    parts = np.split(sums, ends[:-1], axis=2)
    return [part.reshape(S.shape[0], -1) for part in parts]


def settings_bytes(Z: Any) -> float:
    """Return the memory that :func:`spread_settings` takes, about.

    Parameters
    ----------
    Z : sparse, ndarray or LinkMatrix of shape (n, m)

    Returns
    -------
    n_bytes : float
    """
    return 8.0 * N_FUNCTIONS * as_link_matrix(Z).thin_width() * sum(Z.shape)

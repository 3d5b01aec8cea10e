"""Single rows of scores, exact to `tol`, for any links.

The scores of thousands of judged pairs have no short exact vectors: their rank is
several times the number of linked items. One row costs only two recurrences of single
vectors, whatever the links are::

    F[i] = sum_s psi_s(S_y) Z' (sum_r c_rs phi_r(S_x) e_i)

so rows are computed on demand, without truncation, and links can change at no cost.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.links import LinkMatrix, as_link_matrix
from linkspread.propagation.chebyshev import FilterOperator
from linkspread.propagation.exact import (
    has_thin_factors,
    spread_links,
    spread_responses,
    working_graphs,
)
from linkspread.propagation.filter import separate
from linkspread.propagation.spread import Spread

Array = np.ndarray

# Rows computed at a time, times the items of both views.
BLOCK_ENTRIES = 1 << 21
# Responses of fitted items, of new rows and of new columns.
FITTED, NEW_ROWS, NEW_COLUMNS = range(3)


def has_short_vectors(
    Z: Any, *, alpha: tuple[float, float], beta: float, tol: float
) -> bool:
    """Return whether vectors exact to `tol` are short enough to be stored."""
    separable = separate(spread_responses(alpha, beta), tol=tol / 2)
    return has_thin_factors(as_link_matrix(Z), separable, None)


class _Blocks:
    """Blocks of scores that are computed a few rows at a time."""

    @property
    def rows_at_a_time(self: Any) -> int:
        """Number of rows whose computation takes a few megabytes."""
        return max(1, BLOCK_ENTRIES // sum(self.shape))

    def block(self: Any, rows: Array, columns: Array) -> Array:
        """Return the scores at some rows and columns, row- or column-wise."""
        if len(columns) < len(rows):
            return self.T.block(columns, rows).T
        step = self.rows_at_a_time
        block = np.empty((len(rows), len(columns)), dtype=self.dtype)
        for start in range(0, len(rows), step):
            own = slice(start, start + step)
            block[own] = self.rows(rows[own])[:, columns]
        return block


@dataclass(frozen=True, eq=False)
class SpreadRows(_Blocks):
    """Scores of two views, a row at a time, for fitted items and for new ones."""

    S_x: sparse.csr_array
    Z: LinkMatrix
    S_y: sparse.csr_array
    alpha: tuple[float, float]
    beta: float
    tol: float
    turned: bool = False
    # Operators and vectors, created on demand; shared with `T`.
    _made: dict[Any, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, S_x: Any, Z: Any, S_y: Any, **settings: Any) -> "SpreadRows":
        """Check graphs and links, and return their scores."""
        S_x, S_y = working_graphs(S_x, Z, S_y)
        return cls(S_x, as_link_matrix(Z), S_y, **settings)

    @property
    def T(self) -> "SpreadRows":
        """The same scores with the views exchanged."""
        return replace(self, turned=not self.turned)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of row items and of column items."""
        n, m = self.Z.shape
        return (m, n) if self.turned else (n, m)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the scores."""
        return self.S_x.dtype

    @property
    def error(self) -> float:
        """Relative error of all scores in Frobenius norm: that of the filter."""
        return self._operator(FITTED).separable.error

    def rows(self, positions: Any) -> Array:
        """Return the scores of fitted items, shape (q, n_columns)."""
        positions = np.asarray(positions)
        units = np.zeros((self.shape[0], len(positions)), dtype=self.dtype)
        units[positions, np.arange(len(positions))] = 1
        return self._apply(FITTED, units)

    def unseen_rows(self, similarities: Any) -> Array:
        """Return the scores of new items, from their similarities to fitted ones."""
        start = similarities.T
        start = start.toarray() if sparse.issparse(start) else np.asarray(start)
        return self._apply(NEW_ROWS, start.astype(self.dtype, copy=False))

    def mixed_rows(self, weights: Array) -> Array:
        """Return weighted sums of rows of scores, weights of shape (q, n_rows)."""
        return self._apply(FITTED, np.ascontiguousarray(weights.T, dtype=self.dtype))

    def vectors(self) -> Spread:
        """Return vectors of all items, as exact as memory allows; computed once."""
        if "vectors" not in self._made:
            self._made["vectors"] = spread_links(
                self.S_x,
                self.Z,
                self.S_y,
                alpha=self.alpha,
                beta=self.beta,
                tol=self.tol,
            )
        spread: Spread = self._made["vectors"]
        return spread.T if self.turned else spread

    def _apply(self, response: int, start: Array) -> Array:
        """Return the products of weighted row items with the scores, as rows."""
        if self.turned:
            response = NEW_COLUMNS if response == NEW_ROWS else response
            return self._operator(response).apply(start)[0].T
        return self._operator(response).T.apply(start)[0].T

    def _operator(self, response: int) -> FilterOperator:
        """Return the operator of one response."""
        if response not in self._made:
            chosen = spread_responses(self.alpha, self.beta)[response]
            separable = separate((chosen,), tol=self.tol)
            self._made[response] = FilterOperator.of(
                self.S_x, self.Z, self.S_y, separable, width=1
            )
        return self._made[response]


@dataclass(frozen=True, eq=False)
class ChainedRows(_Blocks):
    """The product of two scores, each a Spread or ScoreRows, a row at a time."""

    first: Any
    second: Any

    @property
    def T(self) -> "ChainedRows":
        """The same scores with the views exchanged."""
        return ChainedRows(self.second.T, self.first.T)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of row items and of column items."""
        return self.first.shape[0], self.second.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the scores."""
        return np.result_type(self.first.dtype, self.second.dtype)

    @property
    def error(self) -> float:
        """Sum of the relative errors of both."""
        return self.first.error + self.second.error

    def rows(self, positions: Any) -> Array:
        """Return the scores of fitted items, shape (q, m)."""
        return self.second.mixed_rows(self.first.rows(positions))

    def unseen_rows(self, similarities: Any) -> Array:
        """Return the scores of new items, from their similarities to fitted ones."""
        return self.second.mixed_rows(self.first.unseen_rows(similarities))

    def mixed_rows(self, weights: Array) -> Array:
        """Return weighted sums of rows of scores, weights of shape (q, n)."""
        return self.second.mixed_rows(self.first.mixed_rows(weights))

    def vectors(self) -> Spread:
        """Return vectors of all items, as exact as memory allows."""
        return self.first.vectors().times(self.second.vectors())


# Scores by rows, of linked views or of views joined by others between.
ScoreRows = SpreadRows | ChainedRows

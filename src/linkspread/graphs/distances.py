"""Checked rows of a table, and metrics by name.

Every named metric embeds the rows so that ``d^2 = sum (q - x)^2``, or
``sum (q - x)^2 / (q + x)`` for chi2. A search only needs these two sums.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from linkspread.compiled.cpu import difference_sums, sparse_difference_sums
from linkspread.ground.errors import GraphError, ViewError
from linkspread.tables.validation import check_table

Array = np.ndarray
Rows = Any  # a dense array or a csr_array, of float32 or float64
Pairwise = Callable[[Rows, Rows], Array]

# Mean distance, relative to the largest norm, above which products are accurate.
ALIKE = 1e-4
# Items drawn for a mean distance, all pairs of which are compared.
N_SAMPLED = 1000


def check_rows(X: Any, *, name: str = "X", n_features: int | None = None) -> Rows:
    """Return a table as C-contiguous or canonical CSR rows; float32 stays float32."""
    rows = check_table(X, view=name, n_features=n_features)
    if not sp.issparse(rows):
        return np.ascontiguousarray(rows)
    if not rows.has_canonical_format:
        rows = rows.copy()  # a caller's arrays are not modified
        rows.sum_duplicates()
    return rows


@dataclass(frozen=True)
class Metric:
    """A distance, as an embedding of the rows followed by a sum over the features."""

    name: str
    embed: Callable[[Rows, bool], Rows]  # rows, and whether they are queries
    similarity: Callable[[Array], Array]
    relative: bool = False  # whether each square is divided by the sum of both entries
    non_negative: bool = False
    pairwise: Pairwise | None = None  # a user's function, used instead

    @property
    def has_products(self) -> bool:
        """Whether inner products of embedded rows give the distances."""
        return self.pairwise is None and not self.relative

    def check(self, rows: Rows, *, name: str = "X") -> None:
        """Refuse rows for which this distance is undefined."""
        values = rows.data if sp.issparse(rows) else rows
        if self.non_negative and values.min(initial=0) < 0:
            raise ViewError(
                f"`{name}` must have no negative entries for metric={self.name!r}, got "
                f"{values.min():.3g}. Shift the features or use metric='euclidean'."
            )

    def measure(self, Q: Rows, X: Rows) -> Array:
        """Call the user's function and check its result."""
        distances = np.asarray(self.pairwise(Q, X), dtype=np.float64)  # type: ignore[misc]
        expected = (Q.shape[0], X.shape[0])
        if distances.shape != expected:
            raise GraphError(
                f"`metric` must return one distance per query and item, {expected} "
                f"here, got shape {distances.shape} from {self.name}. Let it compare "
                "every row of its first block with every row of its second."
            )
        if not (distances.min() >= 0 and np.isfinite(distances.max())):
            raise GraphError(
                f"`metric` must return distances that are finite and at least 0, got "
                f"values from {distances.min():.3g} to {distances.max():.3g} from "
                f"{self.name}. Return a distance, not a similarity."
            )
        return np.ascontiguousarray(distances)


def _embed_unchanged(rows: Rows, is_query: bool) -> Rows:
    """Return the rows unchanged."""
    return rows


def _embed_chi2(rows: Rows, is_query: bool) -> Rows:
    """Halve the rows, which halves ``sum (q - x)^2 / (q + x)``."""
    return rows * rows.dtype.type(0.5)


def _embed_cosine(rows: Rows, is_query: bool) -> Rows:
    """Scale the rows to unit norm, so that ``||q - x||^2 = 2 (1 - cos)``."""
    # By the largest entry first, because squares of very small entries underflow.
    if sp.issparse(rows):
        largest = abs(rows).max(axis=1).toarray().ravel()
    else:
        largest = np.maximum(rows.max(axis=1), -rows.min(axis=1))
    unit = _divide_rows(rows, largest)
    norms = np.sqrt(_square_norms(unit))
    unit = _divide_rows(unit, norms)
    # A zero row has cosine 0 with all rows, zero rows included: two extra features,
    # for zero queries and zero items, give distance sqrt(2).
    marks = np.zeros((len(norms), 2))
    marks[:, 0 if is_query else 1] = norms == 0
    if sp.issparse(unit):
        return sp.csr_array(sp.hstack([unit, sp.csr_array(marks)], format="csr"))
    return np.hstack([unit, marks])


def _embed_hellinger(rows: Rows, is_query: bool) -> Rows:
    """Take the roots of rows of sum 1/2, so that ``||q - x||^2`` has its factor 1/2."""
    sums = np.asarray(rows.sum(axis=1, dtype=np.float64)).ravel()
    shares = _divide_rows(rows, 2 * sums)
    return shares.sqrt() if sp.issparse(shares) else np.sqrt(shares, out=shares)


def _divide_rows(rows: Rows, divisors: Array) -> Rows:
    """Return the rows over their divisors, in float64; x / 0 counts as x."""
    # Division, because the inverses of the smallest floats overflow.
    divisors = np.where(divisors > 0, divisors, 1.0).astype(np.float64)
    if sp.issparse(rows):
        data = rows.data / np.repeat(divisors, np.diff(rows.indptr))
        return sp.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
    return rows / divisors[:, None]


def _square_norms(rows: Rows) -> Array:
    """Return the squared norm of each row of float64."""
    if sp.issparse(rows):
        return np.asarray((rows * rows).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", rows, rows)


def _reciprocal(distances: Array) -> Array:
    """Return ``1 / (1 + d)``."""
    return 1 / (1 + distances)


def _one_less_square(distances: Array, factor: float = 1.0) -> Array:
    """Return ``1 - factor d^2``, at least 0."""
    return np.maximum(1 - factor * distances**2, 0)


METRICS = {
    metric.name: metric
    for metric in (
        Metric("chi2", _embed_chi2, _one_less_square, relative=True, non_negative=True),
        # The cosine is ``1 - d^2 / 2``.
        Metric("cosine", _embed_cosine, partial(_one_less_square, factor=0.5)),
        Metric("euclidean", _embed_unchanged, _reciprocal),
        Metric("hellinger", _embed_hellinger, _one_less_square, non_negative=True),
    )
}


def resolve_metric(metric: str | Pairwise) -> Metric:
    """Return the metric of that name, or wrap a callable."""
    if callable(metric):
        name = getattr(metric, "__name__", "callable")
        return replace(METRICS["euclidean"], name=name, pairwise=metric)
    if not isinstance(metric, str) or metric not in METRICS:
        raise GraphError(
            f"`metric` must be one of {', '.join(METRICS)} or a callable, got "
            f"{metric!r}. Choose one of these names or pass a function of two blocks."
        )
    return METRICS[metric]


def exact_sums(metric: Metric, Q: Rows, X: Rows, ids: Array) -> Array:
    """Return squared distances between embedded queries and chosen items."""
    out = np.empty(ids.shape)
    ids = np.ascontiguousarray(ids)
    if sp.issparse(X):
        arrays = (Q.data, Q.indices, Q.indptr, X.data, X.indices, X.indptr)
        sparse_difference_sums(*arrays, ids, metric.relative, out)
    else:
        difference_sums(Q, X, ids, metric.relative, out)
    return out


def pairwise_distances(Q: Any, X: Any, *, metric: str | Pairwise) -> Array:
    """Return all distances between two small tables."""
    chosen = resolve_metric(metric)
    X = check_rows(X)
    Q = check_rows(Q, name="Q", n_features=X.shape[1])
    chosen.check(X)
    chosen.check(Q, name="Q")
    if chosen.pairwise is not None:
        return chosen.measure(Q, X)
    Q, X = chosen.embed(Q, True), chosen.embed(X, False)
    ids = np.broadcast_to(np.arange(X.shape[0]), (Q.shape[0], X.shape[0]))
    return np.sqrt(exact_sums(chosen, Q, X, ids))


def sample_items(n_items: int) -> Array:
    """Return the sorted positions of a sample of items, always the same."""
    n_sampled = min(n_items, N_SAMPLED)
    rng = np.random.default_rng(0)
    return np.sort(rng.choice(n_items, n_sampled, replace=False))


class ProductDistances:
    """All distances between queries and one table, from inner products.

    Much faster than `pairwise_distances` for wide tables, but small distances have the
    absolute rounding error of the largest. Metrics without products are exact.
    """

    def __init__(self, X: Any, *, metric: str | Pairwise) -> None:
        self.metric = resolve_metric(metric)
        self.items = check_rows(X)
        self.is_exact = not self.metric.has_products
        if not self.is_exact:
            self.metric.check(self.items)
            embedded = self.metric.embed(self.items, False)
            self.embedded = embedded.astype(np.float64, copy=False)
            self.squares = _square_norms(self.embedded)

    def __call__(self, Q: Any) -> Array:
        """Return distances of shape (n_queries, n_items)."""
        if self.is_exact:
            metric = self.metric.pairwise or self.metric.name
            return pairwise_distances(Q, self.items, metric=metric)
        Q = check_rows(Q, name="Q", n_features=self.items.shape[1])
        self.metric.check(Q, name="Q")
        Q = self.metric.embed(Q, True).astype(np.float64, copy=False)
        products = Q @ self.embedded.T
        squares = products.toarray() if sp.issparse(products) else products
        squares *= -2.0
        squares += _square_norms(Q)[:, None]
        squares += self.squares
        return np.sqrt(np.maximum(squares, 0.0, out=squares), out=squares)


def mean_distance(X: Any, *, metric: str | Pairwise = "euclidean") -> float:
    """Return the mean distance between two different items, from a sample."""
    rows = check_rows(X)
    if rows.shape[0] < 2:
        raise ViewError(
            "`X` must have at least 2 items to have a mean distance, got 1. Add items."
        )
    if rows.shape[0] > N_SAMPLED:
        rows = rows[sample_items(rows.shape[0])]
    pairs = np.triu_indices(rows.shape[0], k=1)
    measure = ProductDistances(rows, metric=metric)
    mean = float(measure(rows)[pairs].mean())
    # For nearly equal items, products give only rounding errors.
    if measure.is_exact or mean > ALIKE * np.sqrt(measure.squares.max()):
        return mean
    return float(pairwise_distances(rows, rows, metric=metric)[pairs].mean())

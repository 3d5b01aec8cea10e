"""The distances between the items of a view, chosen by name.

>>> import numpy as np
>>> from linkspread.graphs.distances import pairwise_distances
>>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
>>> pairwise_distances(X, X, metric="cosine")[0].round(3).tolist()
[0.0, 1.414, 1.414]

Every named metric is an embedding of the rows after which a distance is the root of
a plain sum over the features, ``d^2 = sum (q - x)^2``, or ``sum (q - x)^2 / (q + x)``
for chi2. So a search needs to know two sums, however many metrics there are.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from linkspread.compiled import difference_sums, sparse_difference_sums
from linkspread.graphs.rows import Rows, check_rows
from linkspread.ground.errors import GraphError, ViewError

Pairwise = Callable[[Rows, Rows], np.ndarray]


@dataclass(frozen=True)
class Metric:
    """A distance, as an embedding of the rows followed by a sum over the features."""

    name: str
    embed: Callable[[Rows, bool], Rows]
    similarity: Callable[[np.ndarray], np.ndarray]
    relative: bool = False
    non_negative: bool = False
    pairwise: Pairwise | None = None

    def check(self, rows: Rows, *, name: str = "X") -> None:
        """Refuse rows between which this distance has no meaning."""
        values = rows.data if sp.issparse(rows) else rows
        if self.non_negative and values.min(initial=0) < 0:
            raise ViewError(
                f"`{name}` must have no negative entries for metric={self.name!r}, got "
                f"{values.min():.3g}. Shift the features or use metric='euclidean'."
            )

    def measure(self, Q: Rows, X: Rows) -> np.ndarray:
        """Call the user's own distance and check what it returns."""
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


def _divide_rows(rows: Rows, divisors: np.ndarray) -> Rows:
    """Return the rows over their divisors, in float64; x / 0 counts as x."""
    # Dividing, not multiplying by an inverse: that of the smallest floats overflows.
    divisors = np.where(divisors > 0, divisors, 1.0).astype(np.float64)
    if sp.issparse(rows):
        data = rows.data / np.repeat(divisors, np.diff(rows.indptr))
        return sp.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
    return rows / divisors[:, None]


def _row_lengths(rows: Rows) -> np.ndarray:
    """Return the Euclidean lengths of float64 rows."""
    return np.sqrt(_square_lengths(rows))


def _largest_entries(rows: Rows) -> np.ndarray:
    """Return the largest absolute value of each row."""
    if sp.issparse(rows):
        return abs(rows).max(axis=1).toarray().ravel()
    return np.maximum(rows.max(axis=1), -rows.min(axis=1))


def _embed_unchanged(rows: Rows, is_query: bool) -> Rows:
    """Embed for metrics that take the rows as they are."""
    return rows


def _embed_cosine(rows: Rows, is_query: bool) -> Rows:
    """Scale the rows to length 1, so that ``||q - x||^2 = 2 (1 - cos)``."""
    # Largest entry first, because squares of very small entries would vanish.
    unit = _divide_rows(rows, _largest_entries(rows))
    lengths = _row_lengths(unit)
    unit = _divide_rows(unit, lengths)
    # A zero row has cosine 0 with everything, other zero rows included: one extra
    # feature for zero queries and another for zero items put sqrt(2) between them.
    marks = np.zeros((len(lengths), 2))
    marks[:, 0 if is_query else 1] = lengths == 0
    if sp.issparse(unit):
        return sp.csr_array(sp.hstack([unit, sp.csr_array(marks)], format="csr"))
    return np.hstack([unit, marks])


def _embed_hellinger(rows: Rows, is_query: bool) -> Rows:
    """Take the roots of rows of sum 1/2, so that ``||q - x||^2`` has its factor 1/2."""
    sums = np.asarray(rows.sum(axis=1, dtype=np.float64)).ravel()
    shares = _divide_rows(rows, 2 * sums)
    return shares.sqrt() if sp.issparse(shares) else np.sqrt(shares, out=shares)


def _embed_chi2(rows: Rows, is_query: bool) -> Rows:
    """Halve the rows, which halves ``sum (q - x)^2 / (q + x)``."""
    return rows * rows.dtype.type(0.5)


def _reciprocal(distances: np.ndarray) -> np.ndarray:
    """Return ``1 / (1 + d)``."""
    return 1 / (1 + distances)


def _cosine(distances: np.ndarray) -> np.ndarray:
    """Return the cosine ``1 - d^2 / 2``, where negative cosines count as 0."""
    return np.maximum(1 - distances**2 / 2, 0)


def _complement(distances: np.ndarray) -> np.ndarray:
    """Return ``1 - d^2``, at least 0."""
    return np.maximum(1 - distances**2, 0)


METRICS = {
    metric.name: metric
    for metric in (
        Metric("chi2", _embed_chi2, _complement, relative=True, non_negative=True),
        Metric("cosine", _embed_cosine, _cosine),
        Metric("euclidean", _embed_unchanged, _reciprocal),
        Metric("hellinger", _embed_hellinger, _complement, non_negative=True),
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


def exact_sums(metric: Metric, Q: Rows, X: Rows, ids: np.ndarray) -> np.ndarray:
    """Return squared distances between embedded queries and chosen items."""
    out = np.empty(ids.shape)
    ids = np.ascontiguousarray(ids)
    if sp.issparse(X):
        arrays = (Q.data, Q.indices, Q.indptr, X.data, X.indices, X.indptr)
        sparse_difference_sums(*arrays, ids, metric.relative, out)
    else:
        difference_sums(Q, X, ids, metric.relative, out)
    return out


def pairwise_distances(Q: Any, X: Any, *, metric: str | Pairwise) -> np.ndarray:
    """Return all distances between two small tables."""
    chosen = resolve_metric(metric)
    Q, X = _embed_tables(chosen, Q, X)
    if chosen.pairwise is not None:
        return chosen.measure(Q, X)
    ids = np.broadcast_to(np.arange(X.shape[0]), (Q.shape[0], X.shape[0]))
    return np.sqrt(exact_sums(chosen, Q, X, ids))


class ProductDistances:
    """All distances between queries and one table, from inner products.

    Much faster than `pairwise_distances` for wide tables; the squares of distances
    near 0 have the rounding of the largest. Metrics that no product tells are exact.
    """

    def __init__(self, X: Any, *, metric: str | Pairwise) -> None:
        self.metric = resolve_metric(metric)
        self.items = check_rows(X)
        self.is_exact = self.metric.pairwise is not None or self.metric.relative
        if not self.is_exact:
            self.metric.check(self.items)
            self.embedded = _as_double(self.metric.embed(self.items, False))
            self.squares = _square_lengths(self.embedded)

    def __call__(self, Q: Any) -> np.ndarray:
        """Return distances of shape (n_queries, n_items)."""
        if self.is_exact:
            metric = self.metric.pairwise or self.metric.name
            return pairwise_distances(Q, self.items, metric=metric)
        Q = check_rows(Q, name="Q", n_features=self.items.shape[1])
        self.metric.check(Q, name="Q")
        Q = _as_double(self.metric.embed(Q, True))
        products = Q @ self.embedded.T
        squares = products.toarray() if sp.issparse(products) else products
        squares *= -2.0
        squares += _square_lengths(Q)[:, None]
        squares += self.squares
        return np.sqrt(np.maximum(squares, 0.0, out=squares), out=squares)


def _embed_tables(metric: Metric, Q: Any, X: Any) -> tuple[Rows, Rows]:
    """Return queries and items, checked and embedded; unchanged for a callable."""
    X = check_rows(X)
    Q = check_rows(Q, name="Q", n_features=X.shape[1])
    metric.check(X)
    metric.check(Q, name="Q")
    return metric.embed(Q, True), metric.embed(X, False)


def _square_lengths(rows: Rows) -> np.ndarray:
    """Return the square length of each row of float64."""
    if sp.issparse(rows):
        return np.asarray((rows * rows).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", rows, rows)


def _as_double(rows: Rows) -> Rows:
    """Return rows in float64, the same where they are."""
    return rows.astype(np.float64, copy=False)

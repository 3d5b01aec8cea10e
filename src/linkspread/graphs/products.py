"""Approximate keys from matrix products, with a bound that proves the ranking.

``||q - x||^2 / 2 - ||q||^2 / 2 = ||x||^2 / 2 - q . x`` ranks the items of one query as
the distance does, and a matrix product gives it for a whole tile at the speed of BLAS.
In float32 it also gives wrong neighbours, so the candidates are ranked again by exact
differences, and a query counts as *proven* only when no item that was dropped can be
nearer than its last neighbour:

    (true distance of a dropped item)
        >= root of 2 (worst kept key - rounding bound) + ||q||^2, less conversion errors
        >  (true distance of the last neighbour).

Rows that are not proven, because of ties or of clusters far apart, are searched again:
in double precision, and at last by exact differences with every item that the bound
cannot rule out.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from linkspread.compiled import sparse_products
from linkspread.graphs.distances import Metric, exact_sums
from linkspread.graphs.rows import Rows
from linkspread.graphs.tiles import DirectTiles, sort_candidates

# Rows converted at a time; bounds the float64 scratch of a large float32 table.
CONVERSION_BLOCK = 4096


class Queries(NamedTuple):
    """A block of queries, exact and converted, with the errors of converting it."""

    exact: Rows
    rows: Rows
    norms: np.ndarray
    errors: np.ndarray
    reach: np.ndarray


class ProductTiles:
    """Keys from BLAS products of centred, scaled rows in one precision."""

    padding = 8
    concurrent = True

    def __init__(self, items: np.ndarray, metric: Metric, dtype: type):
        self.items = items
        self.metric = metric
        self.dtype = dtype
        # Rounding grows with the norms, so the centre and the scale come off first. A
        # power of two is divided by exactly, and keeps float32 from overflowing.
        self.centre = items.mean(axis=0, dtype=np.float64)
        reach = max((items.max(axis=0) - self.centre).max(), 0.0)
        reach = max((self.centre - items.min(axis=0)).max(), reach)
        self.scale = 2.0 ** np.ceil(np.log2(reach)) if reach > 1e-300 else 1.0
        self._convert_items()
        self.n_terms = items.shape[1]

    def _convert_items(self) -> None:
        """Store the converted items, negated, and the largest norm and error."""
        n_items = self.items.shape[0]
        self.negated: np.ndarray = np.empty(self.items.shape, dtype=self.dtype)
        self.offsets: np.ndarray = np.empty(n_items, dtype=self.dtype)
        self.norm = self.error = 0.0
        for start in range(0, n_items, CONVERSION_BLOCK):
            block = slice(start, start + CONVERSION_BLOCK)
            converted = self.queries(self.items[block], np.empty(0))
            np.negative(converted.rows, out=self.negated[block])
            self.offsets[block] = converted.norms**2 / 2
            self.norm = max(self.norm, converted.norms.max())
            self.error = max(self.error, converted.errors.max())

    def queries(self, Q: np.ndarray, reach: np.ndarray) -> Queries:
        """Convert a block of rows and measure what the conversion lost."""
        with np.errstate(over="ignore", invalid="ignore"):
            centred = (Q - self.centre) / self.scale
            rows = centred.astype(self.dtype)
            norms = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
            centred -= rows
            errors = np.sqrt(np.einsum("ij,ij->i", centred, centred))
            # The subtraction of the centre itself was rounded to float64.
            errors += 2 * np.finfo(np.float64).eps * norms
        # A query so far outside that its products may overflow can prove nothing.
        errors[~(norms < np.sqrt(np.finfo(self.dtype).max))] = np.inf
        return Queries(Q, rows, norms, errors, reach)

    def tile(self, queries: Queries, items: slice, out: np.ndarray) -> np.ndarray:
        """Return ``-q . x`` for one tile, written into ``out``."""
        shape = (len(queries.rows), items.stop - items.start)
        out = out[: shape[0] * shape[1]].reshape(shape)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.matmul(queries.rows, self.negated[items].T, out=out)

    def rank(
        self, queries: Queries, keys: np.ndarray, ids: np.ndarray, n_neighbors: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rank the candidates by exact distance and say which rows are proven."""
        sums = exact_sums(self.metric, queries.exact, self.items, ids)
        ids, sums = sort_candidates(ids, sums, n_neighbors)
        distances = np.sqrt(sums)
        # The root of the heap is its worst key; everything dropped is no better.
        nearest_dropped = self._nearest_dropped(queries, keys[:, 0].astype(np.float64))
        return ids, distances, distances[:, -1] / self.scale < nearest_dropped

    def _nearest_dropped(self, queries: Queries, worst: np.ndarray) -> np.ndarray:
        """Return a lower bound of the scaled distance of every dropped item.

        NaN, from a query that overflowed, compares as not proven.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            squared = 2 * (worst - self._rounding(queries)) + queries.norms**2
            lowest = np.sqrt(np.maximum(squared, 0)) - queries.errors - self.error
            return lowest * (1 - (self.n_terms + 4) * np.finfo(np.float64).eps)

    def largest_keys(self, queries: Queries) -> np.ndarray:
        """Return upper bounds of the keys of items within reach, of shape (n, 1).

        NaN, from a query that overflowed, rules nothing out.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            reach = queries.reach / self.scale
            reach = reach * (1 + (self.n_terms + 4) * np.finfo(np.float64).eps)
            squared = (reach + queries.errors + self.error) ** 2
            keys = (squared - queries.norms**2) / 2 + self._rounding(queries)
        return keys[:, None]

    def _rounding(self, queries: Queries) -> np.ndarray:
        """Return a bound of the rounding errors of keys.

        A dot product of m terms is off by at most ``m u / (1 - m u)`` times the
        product of the norms, in whatever order it is summed. Twice that, with four
        more roundings, also covers the offset, its sum with the product, and the
        norms; `tiny` covers products that underflow.
        """
        info = np.finfo(self.dtype)
        share = (self.n_terms + 4) * float(info.eps)  # eps = 2 u
        sizes = (queries.norms + self.norm) ** 2
        return share * sizes + self.n_terms * float(info.tiny)


class SparseProductTiles(ProductTiles):
    """Keys from sparse products in float64; centring would fill in the zeros."""

    dtype = np.float64
    scale = 1.0
    error = 0.0

    def __init__(self, items: sp.csr_array, metric: Metric, n_tile: int):
        self.items = items
        self.metric = metric
        self.n_tile = n_tile
        norms = self.queries(items, np.empty(0)).norms
        self.norm = norms.max()
        self.offsets = norms**2 / 2
        self.n_terms = int(np.diff(items.indptr).max())
        self.transposed = [
            sp.csr_array(items[start : start + n_tile].T, dtype=np.float64)
            for start in range(0, items.shape[0], n_tile)
        ]

    def queries(self, Q: sp.csr_array, reach: np.ndarray) -> Queries:
        """Convert a block of rows to float64, which loses nothing."""
        rows = sp.csr_array(Q, dtype=np.float64)
        norms = np.sqrt(np.asarray((rows * rows).sum(axis=1)).ravel())
        return Queries(Q, rows, norms, np.zeros(len(norms)), reach)

    def tile(self, queries: Queries, items: slice, out: np.ndarray) -> np.ndarray:
        """Return ``-q . x`` for one tile, written into ``out``."""
        shape = (queries.rows.shape[0], items.stop - items.start)
        out = out[: shape[0] * shape[1]].reshape(shape)
        block = self.transposed[items.start // self.n_tile]
        arrays = [(m.data, m.indices, m.indptr) for m in (queries.rows, block)]
        sparse_products(*arrays[0], *arrays[1], out)
        return out


class RefinedTiles(DirectTiles):
    """Squared distances of the items that a product does not rule out."""

    def __init__(self, product: ProductTiles):
        super().__init__(product.items, product.metric)
        self.product = product

    def queries(self, Q: Rows, reach: np.ndarray) -> Queries:
        """Return the queries as the product needs them."""
        return self.product.queries(Q, reach)

    def tile(self, queries: Queries, items: slice, out: np.ndarray) -> np.ndarray:
        """Return squared distances, infinite for items that are ruled out."""
        keys = self.product.tile(queries, items, out)
        keys += self.product.offsets[items]
        ids = np.arange(items.start, items.stop)
        ids = np.where(keys > self.product.largest_keys(queries), -1, ids)
        return exact_sums(self.metric, queries.exact, self.items, ids)

"""Exact nearest neighbours, tile by tile, in any of the metrics.

``||q - x||^2 / 2 - ||q||^2 / 2 = ||x||^2 / 2 - q . x`` ranks the items of one query as
the distance does, and BLAS computes it for a whole tile. Its float32 rounding may give
wrong neighbours, so candidates are ranked again by exact differences, and a query is
*proven* only when no dropped item can be nearer than its last neighbour:

    (true distance of a dropped item)
        >= root of 2 (worst kept key - rounding bound) + ||q||^2, less conversion errors
        >  (true distance of the last neighbour).

Other rows, with ties or clusters far apart, are searched again in double precision, and
finally by exact differences with every item that the bound cannot exclude.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from scipy import sparse

from linkspread.compiled.backends import choose_device, map_blocks
from linkspread.compiled.cpu import keep_nearest, sparse_products
from linkspread.graphs.distances import (
    Metric,
    Pairwise,
    Rows,
    check_rows,
    exact_sums,
    resolve_metric,
)
from linkspread.ground.checks import check_count
from linkspread.ground.cores import count_threads
from linkspread.ground.errors import GraphError
from linkspread.ground.progress import track

Array = np.ndarray
# Ids and distances of the neighbours of some queries.
Found = tuple[Array, Array]

# Tile of one thread: 4 MB in float32, which stays in the cache from product to
# selection.
QUERY_TILE = 512
ITEM_TILE = 2048
# Rows converted at a time; bounds the float64 buffer of a large float32 table.
CONVERSION_BLOCK = 4096
# Multiplications from which a GPU is used: a CPU does them in about a second.
MIN_PRODUCTS = 1e11


def nearest_neighbors(
    X: Any,
    Q: Any = None,
    *,
    n_neighbors: int,
    metric: str | Pairwise = "euclidean",
    n_jobs: int | None = None,
    verbose: bool = False,
    backend: str = "auto",
) -> Found:
    """Return the exact nearest items of every query, nearest first.

    Needs one tile per thread and the result, never n_queries x n_items.

    Parameters
    ----------
    X : array-like or sparse of shape (n_items, n_features)
    Q : array-like or sparse of shape (n_queries, n_features), default=None
        None searches the neighbours of the items; no item is its own neighbour, but
        exact duplicates are.
    n_neighbors : int
    metric : str or callable, default="euclidean"
    n_jobs : int, default=None
    verbose : bool, default=False
    backend : {"auto", "cpu", "cuda", "torch"}, default="auto"
        All as in `NeighborGraph`; every backend finds the same neighbours.

    Returns
    -------
    ids : ndarray of shape (n_queries, n_neighbors)
        Row numbers in X; ties go to the smaller one. int32 if that suffices.
    distances : ndarray of shape (n_queries, n_neighbors)
        In float64.

    Examples
    --------
    >>> from linkspread.graphs import nearest_neighbors
    >>> ids, distances = nearest_neighbors([[0], [2], [5]], [[4]], n_neighbors=2)
    >>> ids.tolist(), distances.tolist()
    ([[2, 1]], [[1.0, 2.0]])
    """
    index = NeighborIndex(X, metric=metric)
    check_n_neighbors(n_neighbors, index.items.shape[0], include_self=Q is not None)
    return index.search(
        Q, n_neighbors=n_neighbors, n_jobs=n_jobs, verbose=verbose, backend=backend
    )


def check_n_neighbors(
    n_neighbors: Any, n_items: int, *, include_self: bool = False
) -> None:
    """Refuse a number of neighbours larger than that of the items."""
    remedy = "Use for instance n_neighbors=30."
    check_count(n_neighbors, name="n_neighbors", remedy=remedy, error=GraphError)
    largest = n_items if include_self else n_items - 1
    if n_neighbors > largest:
        rule = "at most" if include_self else "smaller than"
        raise GraphError(
            f"`n_neighbors` must be {rule} the number of items, got n_neighbors="
            f"{n_neighbors} with {n_items} items. "
            + (f"Use n_neighbors={largest} or less." if largest else "Add items.")
        )


def device_for(
    backend: str, work: float, min_work: float, index: "NeighborIndex"
) -> Any:
    """Return the device for work on the items of an index, or None for the CPU."""
    device = choose_device(backend, work=work, min_work=min_work)
    is_product = index.metric.has_products and not sp.issparse(index.embedded)
    return device if is_product else None


class NeighborIndex:
    """Items prepared for exact searches."""

    def __init__(self, X: Any, *, metric: str | Pairwise = "euclidean"):
        self.metric = resolve_metric(metric)
        self.items = check_rows(X)
        self.metric.check(self.items)
        self.embedded = self.metric.embed(self.items, False)
        self._made: dict[type, ProductTiles] = {}

    @property
    def id_dtype(self) -> type:
        """The dtype of returned ids."""
        return np.int32 if self.items.shape[0] <= 2**31 - 1 else np.int64

    def search(self, Q: Any = None, *, n_neighbors: int, **how: Any) -> Found:
        """Return the nearest items of every query, as `nearest_neighbors` does."""
        return self.search_prepared(*self.prepare(Q), n_neighbors=n_neighbors, **how)

    def prepare(self, Q: Any) -> tuple[Rows, Array]:
        """Return the embedded queries, and for each the item to exclude."""
        if Q is None:
            return self.metric.embed(self.items, True), np.arange(self.items.shape[0])
        Q = check_rows(Q, name="Q", n_features=self.items.shape[1])
        if sp.issparse(Q) != sp.issparse(self.items):
            Q = sp.csr_array(Q) if sp.issparse(self.items) else Q.toarray()
        self.metric.check(Q, name="Q")
        return self.metric.embed(Q, True), np.full(Q.shape[0], -1)

    def search_prepared(
        self,
        queries: Rows,
        excluded: Array,
        *,
        n_neighbors: int,
        n_jobs: int | None = None,
        verbose: bool = False,
        backend: str = "auto",
    ) -> Found:
        """Return the nearest items of queries that `prepare` returned."""
        n_threads = count_threads(n_jobs)
        ids, distances, pending = self._start(queries, excluded, n_neighbors, backend)
        for tiles in self._stages() if len(pending) else ():
            search = partial(_search_block, tiles, queries, excluded, ids, distances)
            blocks = np.split(pending, range(QUERY_TILE, len(pending), QUERY_TILE))
            steps = map_blocks(
                search, blocks, n_threads=n_threads, concurrent=tiles.concurrent
            )
            steps = track(steps, total=len(blocks), label="neighbours", verbose=verbose)
            pending = np.concatenate(list(steps))
            if not len(pending):
                break
        return ids, distances

    def device(self, backend: str, n_queries: int) -> Any:
        """Return the device for a search, or None for the CPU."""
        work = float(n_queries) * self.embedded.shape[0] * self.embedded.shape[1]
        return device_for(backend, work, MIN_PRODUCTS, self)

    def _start(
        self, queries: Rows, excluded: Array, n_neighbors: int, backend: str
    ) -> tuple[Array, Array, Array]:
        """Return the neighbours found by a device, if any, and the rows left."""
        shape = queries.shape[0], n_neighbors
        device = self.device(backend, shape[0])
        if device is None:
            ids = np.empty(shape, self.id_dtype)
            return ids, np.full(shape, np.inf), np.arange(shape[0])
        from linkspread.compiled.gpu.search import nearest_items

        ids, distances, is_proven = nearest_items(
            device, self.embedded, queries, excluded, n_neighbors
        )
        return ids, distances, np.flatnonzero(~is_proven)

    def _stages(self) -> Iterator[Any]:
        """Yield search methods, cheap ones first; the last one proves every row."""
        if not self.metric.has_products:
            yield DirectTiles(self.embedded, self.metric)
            return
        for product in self.products():
            yield product
        yield RefinedTiles(product)

    def products(self) -> Iterator["ProductTiles"]:
        """Yield products of rising precision, created on demand."""
        is_sparse = sp.issparse(self.embedded)
        for dtype in (np.float64,) if is_sparse else (np.float32, np.float64):
            if dtype not in self._made:
                self._made[dtype] = (
                    SparseProductTiles(self.embedded, self.metric, ITEM_TILE)
                    if is_sparse
                    else ProductTiles(self.embedded, self.metric, dtype)
                )
            yield self._made[dtype]


def _search_block(
    tiles: Any,
    queries: Rows,
    excluded: Array,
    ids: Array,
    distances: Array,
    rows: Array,
) -> Array:
    """Write the neighbours of some rows and return the rows that are not proven."""
    n_items, n_neighbors = len(tiles.offsets), ids.shape[1]
    # With a place more than items the worst kept key is infinite: none was dropped.
    n_kept = min(n_neighbors + tiles.padding, n_items + 1)
    block = tiles.queries(queries[rows], distances[rows, -1])
    keys = np.full((len(rows), n_kept), np.inf, dtype=tiles.offsets.dtype)
    kept = np.full((len(rows), n_kept), -1)
    scratch = np.empty(len(rows) * min(ITEM_TILE, n_items), dtype=keys.dtype)
    for start in range(0, n_items, ITEM_TILE):
        items = slice(start, min(start + ITEM_TILE, n_items))
        tile = tiles.tile(block, items, scratch)
        keep_nearest(tile, tiles.offsets[items], start, excluded[rows], keys, kept)
    ids[rows], distances[rows], proven = tiles.rank(block, keys, kept, n_neighbors)
    return rows[~proven]


def sort_candidates(ids: Array, keys: Array, n_neighbors: int) -> Found:
    """Sort each row by key, ties by id, and keep the first ones."""
    order = np.lexsort((ids, keys), axis=-1)[:, :n_neighbors]
    return np.take_along_axis(ids, order, 1), np.take_along_axis(keys, order, 1)


class DirectTiles:
    """Squared distances from differences in float64, or those of the user's function.

    Slow, and needs no proof. All tiles have these members; keys are less offsets, and
    products may be written into the flat ``out``.
    """

    padding = 0  # candidates kept beyond those asked for

    def __init__(self, items: Rows, metric: Metric):
        self.items, self.metric = items, metric
        # The user's function may not be thread-safe.
        self.concurrent = metric.pairwise is None
        self.offsets = np.zeros(items.shape[0])

    def queries(self, Q: Rows, reach: Array) -> Any:
        """Return what `tile` needs of queries with known neighbours within reach."""
        return Q

    def tile(self, queries: Any, items: slice, out: Array) -> Array:
        """Return the keys of one tile, of shape (n_queries, n_tile)."""
        if self.metric.pairwise is not None:
            return self.metric.measure(queries, self.items[items])
        ids = np.arange(items.start, items.stop)
        ids = np.broadcast_to(ids, (queries.shape[0], len(ids)))
        return exact_sums(self.metric, queries, self.items, ids)

    def rank(
        self, queries: Any, keys: Array, ids: Array, n_neighbors: int
    ) -> tuple[Array, Array, Array]:
        """Return the nearest ids, their distances, and which rows are proven."""
        ids, keys = sort_candidates(ids, keys, n_neighbors)
        distances = np.sqrt(keys) if self.metric.pairwise is None else keys
        return ids, distances, np.ones(len(ids), dtype=bool)


class Queries(NamedTuple):
    """A block of queries, exact and converted, with the errors of converting it."""

    exact: Rows
    rows: Rows
    norms: Array
    errors: Array
    reach: Array


class ProductTiles:
    """Keys from BLAS products of centred, scaled rows in one precision."""

    padding = 8
    concurrent = True

    def __init__(self, items: Array, metric: Metric, dtype: type):
        self.items, self.metric, self.dtype = items, metric, dtype
        # Rounding grows with the norms, so rows are centred and scaled first. Dividing
        # by a power of two is exact, and keeps float32 from overflowing.
        self.centre = items.mean(axis=0, dtype=np.float64)
        reach = max((items.max(axis=0) - self.centre).max(), 0.0)
        reach = max((self.centre - items.min(axis=0)).max(), reach)
        self.scale = 2.0 ** np.ceil(np.log2(reach)) if reach > 1e-300 else 1.0
        self.n_terms = items.shape[1]
        self.negated: Array = np.empty(items.shape, dtype=dtype)
        self.offsets: Array = np.empty(len(items), dtype=dtype)
        self.norm = self.error = 0.0  # the largest of all items
        for start in range(0, len(items), CONVERSION_BLOCK):
            block = slice(start, start + CONVERSION_BLOCK)
            converted = self.queries(items[block], np.empty(0))
            np.negative(converted.rows, out=self.negated[block])
            self.offsets[block] = converted.norms**2 / 2
            self.norm = max(self.norm, converted.norms.max())
            self.error = max(self.error, converted.errors.max())

    def queries(self, Q: Array, reach: Array) -> Queries:
        """Convert a block of rows and compute the conversion errors."""
        with np.errstate(over="ignore", invalid="ignore"):
            centred = (Q - self.centre) / self.scale
            rows = centred.astype(self.dtype)
            norms = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
            centred -= rows
            errors = np.sqrt(np.einsum("ij,ij->i", centred, centred))
            # The subtraction of the centre itself was rounded to float64.
            errors += 2 * np.finfo(np.float64).eps * norms
        # Queries so far away that products may overflow are never proven.
        errors[~(norms < np.sqrt(np.finfo(self.dtype).max))] = np.inf
        return Queries(Q, rows, norms, errors, reach)

    def tile(self, queries: Queries, items: slice, out: Array) -> Array:
        """Return ``-q . x`` for one tile, written into ``out``."""
        shape = (len(queries.rows), items.stop - items.start)
        out = out[: shape[0] * shape[1]].reshape(shape)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.matmul(queries.rows, self.negated[items].T, out=out)

    def rank(
        self, queries: Queries, keys: Array, ids: Array, n_neighbors: int
    ) -> tuple[Array, Array, Array]:
        """Rank the candidates by exact distance; return which rows are proven too."""
        sums = exact_sums(self.metric, queries.exact, self.items, ids)
        ids, sums = sort_candidates(ids, sums, n_neighbors)
        distances = np.sqrt(sums)
        # The root of the heap is the worst kept key; dropped keys are not smaller.
        nearest_dropped = self.nearest_dropped(queries, keys[:, 0].astype(np.float64))
        return ids, distances, distances[:, -1] / self.scale < nearest_dropped

    def nearest_dropped(self, queries: Queries, worst: Array) -> Array:
        """Return a lower bound of the scaled distance of every dropped item.

        NaN, from a query that overflowed, compares as not proven.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            squared = 2 * (worst - self._rounding(queries)) + queries.norms**2
            lowest = np.sqrt(np.maximum(squared, 0)) - queries.errors - self.error
            return lowest * (1 - (self.n_terms + 4) * np.finfo(np.float64).eps)

    def largest_keys(self, queries: Queries) -> Array:
        """Return upper bounds of the keys of items within reach, of shape (n, 1).

        NaN, from a query that overflowed, excludes nothing.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            reach = queries.reach / self.scale
            reach = reach * (1 + (self.n_terms + 4) * np.finfo(np.float64).eps)
            squared = (reach + queries.errors + self.error) ** 2
            keys = (squared - queries.norms**2) / 2 + self._rounding(queries)
        return keys[:, None]

    def _rounding(self, queries: Queries) -> Array:
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
        self.items, self.metric, self.n_tile = items, metric, n_tile
        norms = self.queries(items, np.empty(0)).norms
        self.norm = norms.max()
        self.offsets = norms**2 / 2
        self.n_terms = int(np.diff(items.indptr).max())
        self.transposed = [
            sp.csr_array(items[start : start + n_tile].T, dtype=np.float64)
            for start in range(0, items.shape[0], n_tile)
        ]

    def queries(self, Q: sp.csr_array, reach: Array) -> Queries:
        """Convert a block of rows to float64, which is exact."""
        rows = sp.csr_array(Q, dtype=np.float64)
        norms = np.sqrt(np.asarray((rows * rows).sum(axis=1)).ravel())
        return Queries(Q, rows, norms, np.zeros(len(norms)), reach)

    def tile(self, queries: Queries, items: slice, out: Array) -> Array:
        """Return ``-q . x`` for one tile, written into ``out``."""
        shape = (queries.rows.shape[0], items.stop - items.start)
        out = out[: shape[0] * shape[1]].reshape(shape)
        block = self.transposed[items.start // self.n_tile]
        arrays = [(m.data, m.indices, m.indptr) for m in (queries.rows, block)]
        sparse_products(*arrays[0], *arrays[1], out)
        return out


class RefinedTiles(DirectTiles):
    """Squared distances of the items that a product does not exclude."""

    def __init__(self, product: ProductTiles):
        super().__init__(product.items, product.metric)
        self.product = product

    def queries(self, Q: Rows, reach: Array) -> Queries:
        """Return the queries as the product needs them."""
        return self.product.queries(Q, reach)

    def tile(self, queries: Queries, items: slice, out: Array) -> Array:
        """Return squared distances, infinite for excluded items."""
        keys = self.product.tile(queries, items, out)
        keys += self.product.offsets[items]
        ids = np.arange(items.start, items.stop)
        ids = np.where(keys > self.product.largest_keys(queries), -1, ids)
        return exact_sums(self.metric, queries.exact, self.items, ids)


Made = TypeVar("Made")

# Table, key and cached value.
_CACHE: ContextVar[list[tuple[Any, Any, Any]] | None] = ContextVar(
    "cache of tables", default=None
)


@contextmanager
def cache_tables() -> Iterator[None]:
    """Build no graph, search no neighbours and prepare no rows twice in this context.

    Graphs that depend on links are built each time, but their neighbours are searched
    once. Within another such context, its cache is used.
    """
    if is_caching():
        yield
        return
    token = _CACHE.set([])
    try:
        yield
    finally:
        _CACHE.reset(token)


def is_caching() -> bool:
    """Return whether `cached` keeps what it makes."""
    return _CACHE.get() is not None


def cached(X: Any, key: Any, make: Callable[[], Made]) -> Made:
    """Return what was made of a table, made now if it is not in the cache."""
    cache = _CACHE.get()
    if cache is None:
        return make()
    for table, other, made in cache:
        if key == other and same_table(table, X):
            return made
    made = make()
    cache.append((X, key, made))
    return made


def same_table(one: Any, other: Any) -> bool:
    """Return whether two tables are one, or two arrays over the same memory."""
    if one is other:
        return True
    if type(one) is not type(other) or np.shape(one) != np.shape(other):
        return False
    parts = [part.data if sparse.issparse(part) else part for part in (one, other)]
    if not all(isinstance(part, np.ndarray) for part in parts):
        return False
    first, second = (part.__array_interface__ for part in parts)
    return all(first[key] == second[key] for key in ("data", "strides", "typestr"))

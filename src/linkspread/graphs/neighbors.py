"""Exact nearest neighbours, tile by tile, in any of the metrics.

>>> import numpy as np
>>> from linkspread.graphs import nearest_neighbors
>>> X = np.array([[0.0], [1.0], [3.0], [3.0]])
>>> ids, distances = nearest_neighbors(X, n_neighbors=2)
>>> ids.tolist(), distances.tolist()
([[1, 2], [0, 2], [3, 1], [2, 1]], [[1.0, 3.0], [1.0, 2.0], [0.0, 2.0], [0.0, 2.0]])
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from linkspread.compiled import keep_nearest
from linkspread.compiled.threads import map_blocks
from linkspread.graphs.device import device_for_search
from linkspread.graphs.distances import Pairwise, resolve_metric
from linkspread.graphs.products import (
    ProductTiles,
    RefinedTiles,
    SparseProductTiles,
)
from linkspread.graphs.rows import Rows, check_rows
from linkspread.graphs.tiles import CallableTiles, DirectTiles, Tiles
from linkspread.ground.cores import count_threads, is_integer
from linkspread.ground.errors import GraphError
from linkspread.ground.progress import track

# One thread's tile: 4 MB in float32, which stays in the cache between the product that
# writes it and the selection that reads it.
QUERY_TILE = 512
ITEM_TILE = 2048


def nearest_neighbors(
    X: Any,
    Q: Any = None,
    *,
    n_neighbors: int,
    metric: str | Pairwise = "euclidean",
    n_jobs: int | None = None,
    verbose: bool = False,
    backend: str = "auto",
) -> tuple[np.ndarray, np.ndarray]:
    """Return the exact nearest items of every query, nearest first.

    Memory is one tile per thread and the result, never n_queries x n_items.

    Parameters
    ----------
    X : array-like or sparse of shape (n_items, n_features)
    Q : array-like or sparse of shape (n_queries, n_features), default=None
        None searches the neighbours of the items themselves, and no item is its own
        neighbour; exact duplicates of it are.
    n_neighbors : int
    metric : {"euclidean", "cosine", "hellinger", "chi2"} or callable, \
default="euclidean"
        A callable takes two blocks of rows and returns all distances between them.
    n_jobs : int, default=None
        Threads; None or -1 takes every core.
    verbose : bool, default=False
        Show the progress.
    backend : {"auto", "cpu", "cuda", "torch"}, default="auto"
        "auto" takes a GPU for large dense tables where there is one. The neighbours
        are the same.

    Returns
    -------
    ids : ndarray of shape (n_queries, n_neighbors)
        Row numbers in X; ties go to the smaller one. int32 where that is enough.
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
    return index.search(
        Q, n_neighbors=n_neighbors, n_jobs=n_jobs, verbose=verbose, backend=backend
    )


class NeighborIndex:
    """Items made ready for exact searches."""

    def __init__(self, X: Any, *, metric: str | Pairwise = "euclidean"):
        self.metric = resolve_metric(metric)
        self.items = check_rows(X)
        self.metric.check(self.items)
        self.embedded = self.metric.embed(self.items, False)
        self._made: dict[type, ProductTiles] = {}

    def search(
        self,
        Q: Any = None,
        *,
        n_neighbors: int,
        n_jobs: int | None = None,
        verbose: bool = False,
        backend: str = "auto",
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest items of every query, as `nearest_neighbors` does."""
        n_items = self.items.shape[0]
        count_threads(n_jobs)  # refuses a wrong number before the work starts
        check_n_neighbors(n_neighbors, n_items, include_self=Q is not None)
        return self.search_prepared(
            *self.prepare(Q),
            n_neighbors=n_neighbors,
            n_jobs=n_jobs,
            verbose=verbose,
            backend=backend,
        )

    def search_prepared(
        self,
        queries: Rows,
        excluded: np.ndarray,
        *,
        n_neighbors: int,
        n_jobs: int | None = None,
        verbose: bool = False,
        backend: str = "auto",
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest items of queries that `prepare` returned."""
        n_threads = count_threads(n_jobs)
        ids, distances, pending = self._start(
            queries, excluded, int(n_neighbors), backend
        )
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

    def _start(
        self, queries: Rows, excluded: np.ndarray, n_neighbors: int, backend: str
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return what a device finds, if any, and the rows still to be searched."""
        shape = queries.shape[0], n_neighbors
        device = device_for_search(backend, self.metric, self.embedded, shape[0])
        if device is None:
            ids = np.empty(shape, self.id_dtype)
            return ids, np.full(shape, np.inf), np.arange(shape[0])
        from linkspread.compiled.gpu.search import nearest_items

        ids, distances, is_proven = nearest_items(
            device,
            self.embedded,
            queries,
            excluded,
            n_neighbors,
            relative=self.metric.relative,
        )
        return ids, distances, np.flatnonzero(~is_proven)

    @property
    def id_dtype(self) -> type:
        """The integers that ids are returned in."""
        return np.int32 if self.items.shape[0] <= 2**31 - 1 else np.int64

    def prepare(self, Q: Any) -> tuple[Rows, np.ndarray]:
        """Return the embedded queries, and for each the item it may not find."""
        if Q is None:
            return self.metric.embed(self.items, True), np.arange(self.items.shape[0])
        Q = check_rows(Q, name="Q", n_features=self.items.shape[1])
        if sp.issparse(Q) != sp.issparse(self.items):
            Q = sp.csr_array(Q) if sp.issparse(self.items) else Q.toarray()
        self.metric.check(Q, name="Q")
        return self.metric.embed(Q, True), np.full(Q.shape[0], -1)

    def converted(self) -> ProductTiles:
        """Return the items as the first products of a search take them."""
        return next(self._products())

    def _stages(self) -> Iterator[Tiles]:
        """Yield ways to search, cheap ones first; the last one proves every row."""
        rows, metric = self.embedded, self.metric
        if metric.pairwise is not None:
            yield CallableTiles(rows, metric)
        elif metric.relative:
            yield DirectTiles(rows, metric)
        else:
            for product in self._products():
                yield product
            yield RefinedTiles(product)

    def _products(self) -> Iterator[ProductTiles]:
        """Yield products of rising precision, each made when it is first needed."""
        rows, metric = self.embedded, self.metric
        is_sparse = sp.issparse(rows)
        for dtype in (np.float64,) if is_sparse else (np.float32, np.float64):
            if dtype not in self._made:
                made = (
                    SparseProductTiles(rows, metric, ITEM_TILE)
                    if is_sparse
                    else ProductTiles(rows, metric, dtype)
                )
                self._made[dtype] = made
            yield self._made[dtype]


def _search_block(
    tiles: Tiles,
    queries: Rows,
    excluded: np.ndarray,
    ids: np.ndarray,
    distances: np.ndarray,
    rows: np.ndarray,
) -> np.ndarray:
    """Write the neighbours of some rows and return the rows that are not proven."""
    n_items, n_neighbors = len(tiles.offsets), ids.shape[1]
    # One place more than there are items leaves infinity as the worst kept key, which
    # says that nothing was dropped.
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


def check_n_neighbors(n_neighbors: Any, n_items: int, *, include_self: bool) -> None:
    """Refuse a number of neighbours that the items cannot give."""
    if not is_integer(n_neighbors) or n_neighbors < 1:
        raise GraphError(
            f"`n_neighbors` must be a whole number of at least 1, got {n_neighbors!r}. "
            "Use for instance n_neighbors=30."
        )
    largest = n_items if include_self else n_items - 1
    if n_neighbors > largest:
        rule = "at most" if include_self else "smaller than"
        raise GraphError(
            f"`n_neighbors` must be {rule} the number of items, got n_neighbors="
            f"{n_neighbors} with {n_items} items. "
            + (f"Use n_neighbors={largest} or less." if largest else "Add items.")
        )

"""An index of items for many searches: exact, or approximate with cells of faiss.

A query searches the k-means cells whose centres have the largest inner products with
it; their number is tuned on a sample of queries. Vectors of scores differ much in norm,
and mostly long ones are found, so the centres are trained on items drawn by squared
norm: few cells then contain most results. Graphs of neighbours (HNSW) take longer to
build, and have a lower recall for queries distributed differently from the items.
"""

import logging
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from linkspread.graphs.approximate import has_faiss, limit_faiss, load_faiss
from linkspread.ground.checks import check_name
from linkspread.ground.cores import count_threads
from linkspread.search.rank import best_entries, count_open, rank

Array = np.ndarray

METHODS = ("exact", "approximate", "auto")

logger = logging.getLogger("linkspread")

# Entries of items from which "auto" is approximate: about ten milliseconds per query.
LARGE_ENTRIES = 1 << 25
# With fewer items some cells would be empty.
MIN_ITEMS = 1000
# Searches for more than this share of the items are exact.
LARGEST_SHARE = 0.01
# One half of the sample chooses the number of cells, the other measures the recall.
N_SAMPLED, N_RECALLED = 512, 10
TARGET_RECALL, POOR_RECALL = 0.98, 0.9
GROWTH = 1.5
MIN_PROBED = 4
# Items per cell that k-means is trained on.
N_TRAINED = 48
BLOCK_ENTRIES = 1 << 22
SEED = 0
# Parameters of "hnsw", above the defaults of faiss, because inner products of vectors
# of different norms are harder to search than distances.
N_EDGES, BUILD_BREADTH, SEARCH_BREADTH = 32, 200, 128


class ItemIndex:
    """Index of items for searches by inner product.

    Parameters
    ----------
    items : ndarray of shape (n_items, rank)
        Neither copied nor changed.
    method : {"exact", "approximate", "auto"}, default="auto"
        "approximate" needs faiss; views of fewer than 1,000 items are searched
        exactly. "auto" is approximate for large views where faiss is installed.
    queries : ndarray of shape (n_queries, rank), default=None
        Typical queries. The approximate search is tuned and measured on a
        few hundred of them; None takes the items.

    Attributes
    ----------
    items : ndarray of shape (n_items, rank)
    method_ : {"exact", "approximate"}
        The method that is used.
    recall_ : float
        Share of the ten best items that are found, from a sample; 1 if exact.

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.search import ItemIndex
    >>> index = ItemIndex(np.array([[2.0], [3.0], [3.0]]))
    >>> index.search(np.array([[1.0]]), n_results=2)
    (array([[1, 2]]), array([[3., 3.]]))
    """

    def __init__(
        self, items: Array, *, method: str = "auto", queries: Array | None = None
    ) -> None:
        self.items = items
        self.method_ = choose_method(method, items)
        self.recall_ = 1.0
        if self.method_ == "approximate":
            self._cells = FaissItems.build(items, "cells")
            self._tune(items if queries is None or len(queries) == 0 else queries)

    def search(
        self,
        vectors: Array,
        *,
        n_results: int,
        only: Array | None = None,
        barred: Any = None,
        backend: str = "auto",
    ) -> tuple[Array, Array]:
        """Return the items with the largest inner products for each query.

        Parameters
        ----------
        vectors : ndarray of shape (n_queries, rank)
        n_results : int
            More than there are items returns what there is.
        only : ndarray of int of shape (n_open,), default=None
            Positions that may be found, each once and in order; None for all.
        barred : csr_array of shape (n_queries, n_items), default=None
            What a query may not find: its stored entries, whatever their values.
        backend : {"auto", "cpu", "cuda", "torch"}, default="auto"
            Of an exact search, as for `rank`.

        Returns
        -------
        positions : ndarray of shape (n_queries, n_found)
            As of `rank`.
        scores : ndarray of the same shape
            Always exact.
        """
        n_found = min(n_results, count_open(len(self.items), only, barred))
        n_tried = n_found + most_barred(barred)
        asked: dict[str, Any] = {"n_results": n_found, "only": only}
        asked["backend"] = backend
        if self._looks_through_all(n_tried, only) or len(vectors) == 0:
            return rank(vectors, self.items, barred=barred, **asked)
        tried = without_barred(self._cells.search(vectors, n_tried, only)[1], barred)
        found, scores = self._order(vectors, tried, n_found)
        few = np.flatnonzero(scores[:, -1] == -np.inf)
        if len(few):
            bars = None if barred is None else barred[few]
            found[few], scores[few] = rank(
                vectors[few], self.items, barred=bars, **asked
            )
        return found, scores

    def _tune(self, queries: Array) -> None:
        """Increase the number of cells until the recall suffices, and measure it."""
        rng = np.random.default_rng(SEED)
        n_sampled = min(N_SAMPLED, len(queries))
        sample = queries[rng.choice(len(queries), n_sampled, replace=False)]
        true, _ = rank(sample, self.items, n_results=N_RECALLED)
        cells = self._cells
        while self._recall(sample[::2], true[::2]) < TARGET_RECALL:
            if cells.n_probed == cells.n_cells:
                break
            cells.n_probed = min(int(GROWTH * cells.n_probed), cells.n_cells)
        # A sample of one query tunes and measures.
        rest = slice(1, None, 2) if len(sample) > 1 else slice(None)
        self.recall_ = self._recall(sample[rest], true[rest])
        logger.log(
            logging.WARNING if self.recall_ < POOR_RECALL else logging.DEBUG,
            "approximate search: recall %.3f with %d of %d cells; "
            "method='exact' finds all",
            self.recall_,
            cells.n_probed,
            cells.n_cells,
        )

    def _recall(self, vectors: Array, true: Array) -> float:
        """Return the share of the true best items that are found."""
        found = self._cells.search(vectors, true.shape[1])[1]
        return float(np.mean((found[:, :, None] == true[:, None, :]).any(axis=1)))

    def _looks_through_all(self, n_tried: int, only: Array | None) -> bool:
        """Return whether a search must be exact, or is as fast if exact."""
        if self.method_ == "exact" or n_tried > LARGEST_SHARE * len(self.items):
            return True
        return n_tried == 0 or (only is not None and 2 * len(only) <= len(self.items))

    def _order(self, vectors: Array, tried: Array, n_found: int) -> tuple[Array, Array]:
        """Return the best candidates by exact scores; -1 scores -inf."""
        # In order, so that equal scores come in the order of the items.
        tried = np.sort(tried, axis=1)
        scores = np.empty(tried.shape, np.result_type(vectors, self.items))
        step = max(1, BLOCK_ENTRIES // max(tried.shape[1] * vectors.shape[1], 1))
        for start in range(0, len(vectors), step):
            rows = slice(start, start + step)
            near = self.items[tried[rows]]
            scores[rows] = np.matmul(near, vectors[rows][:, :, None])[:, :, 0]
        scores[tried < 0] = -np.inf
        places, scores = best_entries(scores, n_found)
        return np.take_along_axis(tried, places, axis=1), scores


class FaissItems:
    """An index of faiss, by inner product in float32."""

    def __init__(self, index: Any) -> None:
        self.index, self._faiss = index, load_faiss()
        self.n_cells = getattr(index, "nlist", 0)
        self.n_probed = min(MIN_PROBED, self.n_cells)

    @classmethod
    def build(cls, items: Array, kind: str) -> "FaissItems":
        """Build an index: "exact", "hnsw" (a graph) or "cells" (k-means)."""
        rows = np.ascontiguousarray(items, dtype=np.float32)
        return cls(_BUILDERS[kind](load_faiss(), rows))

    def write(self, path: Path) -> None:
        """Write an index file; failures are an OSError."""
        try:
            self._faiss.write_index(self.index, str(path))
        except RuntimeError as error:
            raise OSError(str(error).partition("\n")[0]) from error

    def search(
        self, vectors: Array, n_results: int, only: Array | None = None
    ) -> tuple[Array, Array]:
        """Return scores and positions, -1 if the cells have too few items."""
        rows = np.ascontiguousarray(vectors, dtype=np.float32)
        params: Any = None
        if n_results == 0 or len(rows) == 0:
            shape = (len(rows), n_results)
            return np.zeros(shape, np.float32), np.zeros(shape, np.int64)
        if self.n_cells:
            params = self._faiss.SearchParametersIVF(nprobe=self.n_probed)
        if only is not None:
            is_open = np.zeros(self.index.ntotal, dtype=bool)
            is_open[only] = True
            bits = np.packbits(is_open, bitorder="little")
            # The variable keeps the selector alive, because faiss does not.
            selector = self._faiss.IDSelectorBitmap(bits)
            params.sel = selector
        with limit_faiss(self._faiss, count_threads(None)):
            scores, found = self.index.search(rows, n_results, params=params)
            missed = (found < 0).any(axis=1)
            if missed.any() and not self.n_cells:
                # Queries with unreachable items are searched exactly.
                everyone = self.index.storage
                scores[missed], found[missed] = everyone.search(rows[missed], n_results)
        return scores, found


def _build_exact(faiss: ModuleType, items: Array) -> Any:
    """Return an index that compares a query with all items."""
    index = faiss.IndexFlatIP(items.shape[1])
    index.add(items)
    return index


def _build_graph(faiss: ModuleType, items: Array) -> Any:
    """Return an index that walks a graph of near items."""
    inner = faiss.METRIC_INNER_PRODUCT
    index = faiss.IndexHNSWFlat(items.shape[1], N_EDGES, inner)
    index.hnsw.efConstruction, index.hnsw.efSearch = BUILD_BREADTH, SEARCH_BREADTH
    index.add(items)
    return index


def _build_cells(faiss: ModuleType, items: Array) -> Any:
    """Return items in the cells that k-means finds on a sample."""
    n_cells, inner = int(np.sqrt(len(items))), faiss.METRIC_INNER_PRODUCT
    index = faiss.index_factory(items.shape[1], f"IVF{n_cells},Flat", inner)
    index.cp.seed, index.cp.niter = SEED, 8
    index.cp.min_points_per_centroid = 1
    with limit_faiss(faiss, count_threads(None)):
        index.train(items[_draw_by_norm(items, N_TRAINED * n_cells)])
        index.add(items)
    return index


_BUILDERS = {"exact": _build_exact, "hnsw": _build_graph, "cells": _build_cells}


def _draw_by_norm(items: Array, n_drawn: int) -> Array:
    """Return positions drawn by the squared norms of their vectors, in order."""
    weights = np.einsum("ij,ij->i", items, items, dtype=np.float64)
    total = weights.sum()
    shares = weights / total if total > 0 else None
    rng = np.random.default_rng(SEED)
    return np.sort(rng.choice(len(items), min(n_drawn, len(items)), p=shares))


def choose_method(method: str, items: Array) -> str:
    """Return the method to use, "exact" or "approximate"."""
    check_name(method, METHODS, name="method")
    if method == "exact" or (method == "auto" and items.size < LARGE_ENTRIES):
        return "exact"
    is_large = len(items) >= MIN_ITEMS and items.size
    return "approximate" if has_faiss(method) and is_large else "exact"


def most_barred(barred: Any) -> int:
    """Return the largest number of items that a query may not find."""
    return 0 if barred is None else int(np.diff(barred.indptr).max(initial=0))


def without_barred(tried: Array, barred: Any) -> Array:
    """Return positions with -1 in place of what a query may not find."""
    if barred is None:
        return tried
    tried = tried.copy()
    for i, row in enumerate(tried):
        own = barred.indices[barred.indptr[i] : barred.indptr[i + 1]]
        row[np.isin(row, own)] = -1
    return tried

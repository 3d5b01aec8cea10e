"""Items of a view made ready to be found, exactly or by looking into a few cells."""

import logging
from typing import Any

import numpy as np

from linkspread.graphs.approximate import load_faiss
from linkspread.ground.checks import check_name
from linkspread.ground.errors import MissingDependencyError
from linkspread.search.best import best_entries
from linkspread.search.cells import ItemCells
from linkspread.search.rank import count_open, rank

Array = np.ndarray

METHODS = ("exact", "approximate", "auto")

logger = logging.getLogger("linkspread")

# Numbers that an exact search reads for one query: more take about ten milliseconds.
LARGE_ENTRIES = 1 << 25
# Fewer items than this give cells with nothing in them.
LEAST_ITEMS = 1000
# A query that wants more than this share of the items looks through all of them.
LARGEST_SHARE = 0.01
# Half of the sample chooses the settings, the other half tells the recall.
N_SAMPLED = 512
N_RECALLED = 10
POOR_RECALL = 0.9
BLOCK_ENTRIES = 1 << 22
SEED = 0


class ItemIndex:
    """Find items by inner product, as often as wanted.

    Parameters
    ----------
    items : ndarray of shape (n_items, rank)
        Neither copied nor changed.
    method : {"exact", "approximate", "auto"}, default="auto"
        "approximate" needs faiss; views of fewer than 1,000 items are searched
        exactly. "auto" is approximate for large views where faiss is installed.
    queries : ndarray of shape (n_queries, rank), default=None
        Queries like those to come, by a few hundred of which the approximate search
        is set up and measured; None takes the items themselves.

    Attributes
    ----------
    items : ndarray of shape (n_items, rank)
    method_ : {"exact", "approximate"}
        What the method was resolved to.
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
            self._cells = ItemCells(items)
            self._tune(_sample(queries, items))

    def _tune(self, sample: Array) -> None:
        """Choose how many cells a query looks into, and measure the recall."""
        true, _ = rank(sample, self.items, n_results=N_RECALLED)
        self._cells.tune(sample[::2], true[::2])
        # A sample of one query has nothing left to measure with.
        rest = slice(1, None, 2) if len(sample) > 1 else slice(None)
        self.recall_ = self._cells.recall(sample[rest], true[rest])
        logger.log(
            logging.WARNING if self.recall_ < POOR_RECALL else logging.DEBUG,
            "approximate search: recall %.3f with %d of %d cells; "
            "method='exact' finds all",
            self.recall_,
            self._cells.n_probed,
            self._cells.n_cells,
        )

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
            As of `rank`, which says how long rows are.
        scores : ndarray of the same shape
            Always exact.
        """
        n_found = min(n_results, count_open(len(self.items), only, barred))
        n_tried = n_found + most_barred(barred)
        asked = {"n_results": n_found, "only": only, "barred": barred}
        asked["backend"] = backend
        if self._looks_through_all(n_tried, only) or len(vectors) == 0:
            return rank(vectors, self.items, **asked)
        tried = self._cells.search(vectors, n_tried, only=only)
        found, scores = self._order(vectors, without_barred(tried, barred), n_found)
        few = np.flatnonzero(scores[:, -1] == -np.inf)
        if len(few):
            asked["barred"] = None if barred is None else barred[few]
            found[few], scores[few] = rank(vectors[few], self.items, **asked)
        return found, scores

    def _looks_through_all(self, n_tried: int, only: Array | None) -> bool:
        """Tell whether a search has to be exact, or costs no more if it is."""
        if self.method_ == "exact" or n_tried > LARGEST_SHARE * len(self.items):
            return True
        return n_tried == 0 or (only is not None and 2 * len(only) <= len(self.items))

    def _order(self, vectors: Array, tried: Array, n_found: int) -> tuple[Array, Array]:
        """Return the best of the items tried, by exact scores; -1 scores -inf."""
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


def choose_method(method: str, items: Array) -> str:
    """Return "exact" or "approximate", or say what the latter needs.

    Parameters
    ----------
    method : {"exact", "approximate", "auto"}
    items : ndarray of shape (n_items, rank)

    Returns
    -------
    method : {"exact", "approximate"}
    """
    check_name(method, METHODS, name="method")
    if method == "exact" or (method == "auto" and items.size < LARGE_ENTRIES):
        return "exact"
    try:
        load_faiss()
    except MissingDependencyError as error:
        if method == "approximate":
            raise
        logger.info("%s The search is exact.", error)
        return "exact"
    return "approximate" if len(items) >= LEAST_ITEMS and items.size else "exact"


def _sample(queries: Array | None, items: Array) -> Array:
    """Return a few of the queries, or of the items where there are none."""
    if queries is None or len(queries) == 0:
        queries = items
    rng = np.random.default_rng(SEED)
    n_sampled = min(N_SAMPLED, len(queries))
    return queries[rng.choice(len(queries), n_sampled, replace=False)]


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

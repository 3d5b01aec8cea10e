"""Search by scores: the base class of every estimator that searches between views."""

import threading
from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import Any, Protocol

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from linkspread.compiled.threads import on_own_threads
from linkspread.ground.checks import check_count, check_name
from linkspread.ground.cores import hold_blas
from linkspread.ground.errors import BlockTooLargeError
from linkspread.ground.progress import format_bytes
from linkspread.links import Items
from linkspread.models.queries import (
    barred_pairs,
    choose_open,
    choose_positions,
    is_table,
    read_queries,
)
from linkspread.search.index import METHODS, ItemIndex, choose_method
from linkspread.search.rank import rank_bounded, rank_rows

Array = np.ndarray

# Fitted items whose queries tune an approximate search.
N_SAMPLED = 512
SEED = 0
# Simultaneous searches must build a shared index only once.
_BUILDING = threading.Lock()


class RowScores(Protocol):
    """Scores of two views whose rows are computed on demand."""

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of source and target items."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the scores."""

    @property
    def rows_at_a_time(self) -> int:
        """Rows of scores that fit into a block."""

    def rows(self, positions: Any) -> Array:
        """Return the scores of fitted items with all others."""

    def block(self, rows: Array, columns: Array) -> Array:
        """Return the scores of fitted items with some others."""

    def unseen_rows(self, similarities: Any) -> Array:
        """Return the scores of new items."""


class VectorSearch(BaseEstimator, ABC):
    """Search and score between views, for items that have vectors.

    A score is the inner product of the vector of a source item and the vector of a
    target item. A subclass is fitted when it has `items_`, and provides the vectors.
    """

    items_: dict[str, Items]

    @abstractmethod
    def _vectors_of_fitted(self, positions: Array, source: str, target: str) -> Array:
        """Return the vectors with which fitted items of `source` search `target`."""

    @abstractmethod
    def _vectors_of_new(self, rows: Any, source: str, target: str) -> Array:
        """Return the vectors with which new items of `source` search `target`."""

    @abstractmethod
    def _vectors_found(self, source: str, target: str) -> Array:
        """Return the vectors with which items of `target` are found from `source`."""

    def _vectors_found_at(self, positions: Array, source: str, target: str) -> Array:
        """Return the vectors with which some items of `target` are found."""
        return self._vectors_found(source, target)[positions]

    def _exact_rows(self, source: str, target: str) -> RowScores | None:
        """Return what computes rows of scores, or None where vectors are kept."""
        return None

    def _similarities(self, rows: Any, view: str) -> Any:
        """Return new items in the form that `RowScores.unseen_rows` takes."""
        raise NotImplementedError

    @on_own_threads
    def search(
        self,
        queries: Any,
        *,
        source: str,
        target: str,
        n_results: int = 10,
        only: Any = None,
        exclude: Any = None,
        judged: bool = True,
        method: str = "exact",
    ) -> tuple[Array, Array]:
        """Find the items of one view that belong to queries of another.

        Parameters
        ----------
        queries : id, array-like of ids, feature row, or table of feature rows
            Integers and strings are ids of fitted items; floats, tables, sparse
            matrices and DataFrames are features of new ones.
        source, target : str
            View of the queries and view that is searched. Within one view no query
            finds itself.
        n_results : int, default=10
            Number of results; fewer are returned where there are fewer items.
        only : array-like of ids, boolean mask or slice, default=None
            Items of `target` that may be found; None for all.
        exclude : array-like of ids, boolean mask or slice, default=None
            Items of `target` that no query may find.
        judged : bool, default=True
            Whether items may be found that form a judged pair with the query.
        method : {"exact", "approximate", "auto"}, default="exact"
            "approximate" finds nearly all by faiss, through an :meth:`index` that is
            built once; "auto" does so for large views if faiss is installed.

        Returns
        -------
        ids : ndarray of shape (n_queries, n_found), or (n_found,) for one query
            Best first; equal scores in the order of the items. Where exclusions leave
            a query fewer than `n_results`, all rows have its length.
        scores : ndarray of the same shape
            Inner products; above 0 means that items tend to belong together.
        """
        check_is_fitted(self)
        check_count(n_results, name="n_results", remedy="The default is 10.")
        check_name(method, METHODS, name="method")
        exact = None
        if method != "approximate":
            exact = self._exact_rows(source, target)
        index = None if exact else self.index(source, target, method=method)
        wanted = read_queries(queries)
        own = wanted.positions(self.items_[source])
        items = self.items_[target]
        links = getattr(self, "links_", None)
        limits: dict[str, Any] = {
            "n_results": n_results,
            "only": choose_open(only, exclude, items),
            "barred": barred_pairs(links, own, source, items, judged=judged),
        }
        if exact is not None:
            near = self._similarities(wanted.rows, source) if own is None else None
            found, scores = _rank_by_rows(exact, own, near, limits)
        else:
            assert index is not None
            vectors = self._query_vectors(wanted.rows, own, source, target)
            backend = getattr(self, "backend", "auto")
            found, scores = index.search(vectors, **limits, backend=backend)
        ids = items.ids[found]
        return (ids[0], scores[0]) if wanted.single else (ids, scores)

    @on_own_threads
    def index(self, source: str, target: str, *, method: str = "auto") -> ItemIndex:
        """Build the index of a view, which the first search would do otherwise.

        Parameters
        ----------
        source, target : str
            View that searches and view that is searched.
        method : {"exact", "approximate", "auto"}, default="auto"
            As for :meth:`search`, which uses the same index.

        Returns
        -------
        index : ItemIndex
            With `method_`, and `recall_`, the share of true results that it finds.
        """
        check_is_fitted(self)
        items = self._vectors_found(source, target)
        if choose_method(method, items) == "exact":
            return ItemIndex(items, method="exact")
        kept = self.__dict__.setdefault("_indexes", {})
        with _BUILDING:
            index = kept.get((source, target))
            # A fit or a change replaces the array of vectors.
            if index is None or index.items is not items:
                n_items = self.items_[source].n_items
                rng = np.random.default_rng(SEED)
                sample = rng.choice(n_items, min(N_SAMPLED, n_items), replace=False)
                queries = self._vectors_of_fitted(np.sort(sample), source, target)
                index = ItemIndex(items, method="approximate", queries=queries)
                kept[source, target] = index
        return index

    @on_own_threads
    def scores(
        self,
        source: str,
        target: str,
        *,
        rows: Any = None,
        cols: Any = None,
        max_bytes: float = 2e9,
    ) -> Array:
        """Return a block of the scores between two views.

        Parameters
        ----------
        source, target : str
            View of the rows and view of the columns.
        rows : array-like of ids, boolean mask, slice or table, default=None
            None for all. Where ids are strings, integers are positions. A table holds
            features of new items.
        cols : array-like of ids, boolean mask or slice, default=None
            The same for fitted items of the columns.
        max_bytes : float, default=2e9
            Refuse a block that would be larger.

        Returns
        -------
        block : ndarray of shape (n_rows, n_cols)
        """
        check_is_fitted(self)
        like: Any = self._exact_rows(source, target)
        if like is None:
            like = self._vectors_found_at(np.zeros(1, np.intp), source, target)
        j = choose_positions(cols, self.items_[target], name="cols")
        if is_table(rows):
            _check_block(rows.shape[0], len(j), like.dtype, max_bytes)
            return self._block_of_new(rows, j, source, target)
        i = choose_positions(rows, self.items_[source], name="rows")
        _check_block(len(i), len(j), like.dtype, max_bytes)
        return self._block(i, j, source, target)

    @on_own_threads
    def embeddings(self, source: str, target: str) -> tuple[Array, Array]:
        """Return the vectors of all items of two views.

        Parameters
        ----------
        source, target : str
            View that searches and view that is searched.

        Returns
        -------
        searching : ndarray of shape (n_source, r)
        found : ndarray of shape (n_target, r)
            Scores are inner products, ``searching @ found.T``, not cosines.
        """
        check_is_fitted(self)
        found = self._vectors_found(source, target)
        positions = np.arange(self.items_[source].n_items)
        return self._vectors_of_fitted(positions, source, target), found

    @on_own_threads
    def embed(self, queries: Any, *, source: str, target: str) -> Array:
        """Return the vectors of queries, for instance to search a vector database.

        Parameters
        ----------
        queries : id, array-like of ids, feature row, or table of feature rows
            As for :meth:`search`.
        source, target : str
            View of the queries and view that is searched.

        Returns
        -------
        vectors : ndarray of shape (n_queries, r), or (r,) for one query
            Inner products with `found` of :meth:`embeddings` are scores.
        """
        check_is_fitted(self)
        wanted = read_queries(queries)
        own = wanted.positions(self.items_[source])
        vectors = self._query_vectors(wanted.rows, own, source, target)
        return vectors[0] if wanted.single else vectors

    def _block(self, i: Array, j: Array, source: str, target: str) -> Array:
        """Return the scores of fitted items at positions."""
        exact = self._exact_rows(source, target)
        if exact is not None:
            return exact.block(i, j)
        vectors = self._vectors_of_fitted(i, source, target)
        return vectors @ self._vectors_found_at(j, source, target).T

    def _block_of_new(self, rows: Any, j: Array, source: str, target: str) -> Array:
        """Return the scores of new items with fitted ones at positions."""
        exact = self._exact_rows(source, target)
        if exact is not None:
            return exact.unseen_rows(self._similarities(rows, source))[:, j]
        vectors = self._vectors_of_new(rows, source, target)
        return vectors @ self._vectors_found_at(j, source, target).T

    def _query_vectors(
        self, rows: Any, own: Array | None, source: str, target: str
    ) -> Array:
        """Return the vectors with which fitted items, or else new ones, search."""
        if own is None:
            return self._vectors_of_new(rows, source, target)
        return self._vectors_of_fitted(own, source, target)

    def __getstate__(self) -> dict[str, Any]:
        # Caches are neither stored nor sent to other processes.
        made = ("_indexes", "_chains", "_made_vectors", "_made_within")
        state = super().__getstate__()
        return {name: own for name, own in state.items() if name not in made}


def _rank_by_rows(
    exact: Any, own: Array | None, near: Any, limits: dict[str, Any]
) -> tuple[Array, Array]:
    """Return the best items by rows of scores computed on demand."""
    n_queries = near.shape[0] if own is None else len(own)
    shape = n_queries, exact.shape[1]

    def score(some: slice) -> Array:
        return exact.unseen_rows(near[some]) if own is None else exact.rows(own[some])

    def ask(some: slice) -> Any:
        return (
            exact.prepare_unseen(near[some])
            if own is None
            else exact.prepare(own[some])
        )

    if 0 < n_queries <= getattr(exact, "few_queries", 0):
        return rank_bounded(ask, shape, exact.dtype, **limits)
    step = exact.rows_at_a_time
    # The products of one query are short: threads would cost more than they save.
    with hold_blas(1) if n_queries == 1 else nullcontext():
        return rank_rows(score, shape, exact.dtype, step=step, **limits)


def _check_block(n_rows: int, n_cols: int, dtype: Any, max_bytes: float) -> None:
    """Refuse a block of scores that is larger than allowed."""
    n_bytes = float(n_rows) * n_cols * dtype.itemsize
    if n_bytes > max_bytes:
        raise BlockTooLargeError(
            f"a block of scores must be at most {format_bytes(max_bytes)}, and "
            f"{n_rows:,} x {n_cols:,} takes {format_bytes(n_bytes)}. Give "
            "fewer `rows` or `cols`, use `search`, or raise `max_bytes`."
        )

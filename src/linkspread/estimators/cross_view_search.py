"""The face of every estimator that searches one view from another."""

import threading
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from linkspread.estimators.filters import bar_pairs, choose_open
from linkspread.estimators.queries import (
    Queries,
    choose_positions,
    is_table,
    read_queries,
)
from linkspread.estimators.score_blocks import check_block
from linkspread.kernels.threads import on_own_threads
from linkspread.links import Items
from linkspread.parameter_checks import check_count
from linkspread.retrieval import ItemIndex, choose_method

__all__ = ["CrossViewSearch"]

Array = np.ndarray

# Fitted items whose queries an approximate search is set up by.
N_SAMPLED = 512
SEED = 0
# Two searches at the same time must not both build what one of them can use.
_BUILDING = threading.Lock()


class CrossViewSearch(BaseEstimator, ABC):
    """Search and score between views, for items that have vectors.

    A score is the inner product of the vector with which an item searches and the
    vector with which another is found. A subclass is fitted when it has `items_`; it
    tells where the vectors come from.

    Attributes
    ----------
    items_ : dict from str to Items
        Ids of each view's items.
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
        source : str
            View of the queries.
        target : str
            View that is searched; the same as `source` searches within a view, and
            then leaves out the query itself.
        n_results : int, default=10
            More than there are items returns what there is.
        only : array-like of ids, boolean mask or slice, default=None
            Items of `target` that may be found; None for all.
        exclude : array-like of ids, boolean mask or slice, default=None
            Items of `target` that are not to be found by any query.
        judged : bool, default=True
            Whether items may be found that single pairs of the links have judged for
            the query. Labels judge no single pair, and new items have none.
        method : {"exact", "approximate", "auto"}, default="exact"
            "approximate" finds nearly all through faiss, after an :meth:`index` is
            built once; "auto" does so for large views if faiss is installed.

        Returns
        -------
        ids : ndarray of shape (n_queries, n_found), or (n_found,) for one query
            Best first; equal scores in the order of the items. All rows are as long
            as that of the query with the fewest items left, `n_results` at most.
        scores : ndarray of the same shape
            Inner products; above 0 speaks for belonging together.
        """
        check_is_fitted(self)
        check_count(n_results, name="n_results", remedy="The default is 10.")
        index = self.index(source, target, method=method)
        wanted = read_queries(queries)
        own = self._own_positions(wanted, source)
        found, scores = index.search(
            self._query_vectors(wanted, own, source, target),
            n_results=n_results,
            only=choose_open(only, exclude, self.items_[target]),
            barred=bar_pairs(self, own, source, target, judged=judged),
            backend=getattr(self, "backend", "auto"),
        )
        ids = self.items_[target].ids[found]
        return (ids[0], scores[0]) if wanted.single else (ids, scores)

    @on_own_threads
    def index(self, source: str, target: str, *, method: str = "auto") -> ItemIndex:
        """Make the items of a view ready to be found, before the first search.

        Parameters
        ----------
        source : str
            View that searches.
        target : str
            View that is searched.
        method : {"exact", "approximate", "auto"}, default="auto"
            As for :meth:`search`, which uses the same index.

        Returns
        -------
        index : ItemIndex
            Its `method_` tells how it searches, its `recall_` how much it finds.
        """
        check_is_fitted(self)
        items = self._vectors_found(source, target)
        if choose_method(method, items) == "exact":
            return ItemIndex(items, method="exact")
        kept = self.__dict__.setdefault("_indexes", {})
        with _BUILDING:
            index = kept.get((source, target))
            # Another fit has other vectors, which are another array.
            if index is None or index.items is not items:
                queries = self._sample_queries(source, target)
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
        source : str
            View of the rows.
        target : str
            View of the columns.
        rows : array-like of ids, boolean mask, slice or table, default=None
            None takes all. Integers are positions where ids are strings. A table
            holds the features of new items.
        cols : array-like of ids, boolean mask or slice, default=None
            The same for fitted items of the columns.
        max_bytes : float, default=2e9
            Refuse a block that would be larger.

        Returns
        -------
        block : ndarray of shape (n_rows, n_cols)
        """
        check_is_fitted(self)
        dtype = self._vectors_found_at(np.zeros(1, np.intp), source, target).dtype
        j = choose_positions(cols, self.items_[target], name="cols")
        if is_table(rows):
            check_block(rows.shape[0], len(j), dtype, max_bytes)
            vectors = self._vectors_of_new(rows, source, target)
        else:
            i = choose_positions(rows, self.items_[source], name="rows")
            check_block(len(i), len(j), dtype, max_bytes)
            vectors = self._vectors_of_fitted(i, source, target)
        return vectors @ self._vectors_found_at(j, source, target).T

    @on_own_threads
    def embeddings(self, source: str, target: str) -> tuple[Array, Array]:
        """Return the vectors of all items of two views.

        Parameters
        ----------
        source : str
            View that searches.
        target : str
            View that is searched.

        Returns
        -------
        searching : ndarray of shape (n_source, r)
        found : ndarray of shape (n_target, r)
            Scores are inner products, ``searching @ found.T``, not cosines.
        """
        check_is_fitted(self)
        found = self._vectors_found(source, target)
        everyone = np.arange(self.items_[source].n_items)
        return self._vectors_of_fitted(everyone, source, target), found

    @on_own_threads
    def embed(self, queries: Any, *, source: str, target: str) -> Array:
        """Return the vectors with which queries search, as for a store of vectors.

        Parameters
        ----------
        queries : id, array-like of ids, feature row, or table of feature rows
            As for :meth:`search`.
        source : str
            View of the queries.
        target : str
            View that is searched.

        Returns
        -------
        vectors : ndarray of shape (n_queries, r), or (r,) for one query
            Inner products with the vectors found of :meth:`embeddings` are scores.
        """
        check_is_fitted(self)
        wanted = read_queries(queries)
        own = self._own_positions(wanted, source)
        vectors = self._query_vectors(wanted, own, source, target)
        return vectors[0] if wanted.single else vectors

    def _own_positions(self, wanted: Queries, source: str) -> Array | None:
        """Return the positions of queries that are fitted items; None for new ones."""
        if wanted.ids is None:
            return None
        return self.items_[source].positions(wanted.ids, what="`queries`")

    def _query_vectors(
        self, wanted: Queries, own: Array | None, source: str, target: str
    ) -> Array:
        """Return the vectors with which queries search."""
        if own is None:
            return self._vectors_of_new(wanted.rows, source, target)
        return self._vectors_of_fitted(own, source, target)

    def _sample_queries(self, source: str, target: str) -> Array:
        """Return the vectors with which some fitted items search."""
        n_items = self.items_[source].n_items
        rng = np.random.default_rng(SEED)
        sample = rng.choice(n_items, min(N_SAMPLED, n_items), replace=False)
        return self._vectors_of_fitted(np.sort(sample), source, target)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        # What can be built again is not stored, nor carried to other processes.
        state.pop("_indexes", None)
        return state

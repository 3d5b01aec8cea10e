"""The face of every estimator that searches one view from another."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from linkspread.estimators.queries import (
    choose_positions,
    drop_own,
    is_table,
    read_queries,
)
from linkspread.estimators.score_blocks import check_block
from linkspread.links import Items
from linkspread.parameter_checks import check_count
from linkspread.retrieval import rank

__all__ = ["CrossViewSearch"]

Array = np.ndarray


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

    def search(
        self, queries: Any, *, source: str, target: str, n_results: int = 10
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

        Returns
        -------
        ids : ndarray of shape (n_queries, n_results), or (n_results,) for one query
            Best first; equal scores in the order of the items.
        scores : ndarray of the same shape
            Inner products; above 0 speaks for belonging together.
        """
        check_is_fitted(self)
        check_count(n_results, name="n_results", remedy="The default is 10.")
        vectors_found = self._vectors_found(source, target)
        wanted = read_queries(queries)
        if wanted.ids is None:
            vectors = self._vectors_of_new(wanted.rows, source, target)
            found, scores = rank(vectors, vectors_found, n_results=n_results)
        else:
            own = self.items_[source].positions(wanted.ids, what="`queries`")
            vectors = self._vectors_of_fitted(own, source, target)
            n_found = n_results + (source == target)
            found, scores = rank(vectors, vectors_found, n_results=n_found)
            if source == target:
                found, scores = drop_own(own, found, scores)
        ids = self.items_[target].ids[found]
        return (ids[0], scores[0]) if wanted.single else (ids, scores)

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
        vectors_found = self._vectors_found(source, target)
        j = choose_positions(cols, self.items_[target], name="cols")
        if is_table(rows):
            check_block(rows.shape[0], len(j), vectors_found.dtype, max_bytes)
            vectors = self._vectors_of_new(rows, source, target)
        else:
            i = choose_positions(rows, self.items_[source], name="rows")
            check_block(len(i), len(j), vectors_found.dtype, max_bytes)
            vectors = self._vectors_of_fitted(i, source, target)
        return vectors @ vectors_found[j].T

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
        everyone = np.arange(len(self.items_[source].ids))
        return self._vectors_of_fitted(everyone, source, target), found

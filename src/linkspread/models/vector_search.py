"""The face of every estimator that searches one view from another."""

import threading
from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from linkspread.compiled.threads import on_own_threads
from linkspread.ground.checks import check_count, check_name
from linkspread.ground.cores import hold_blas
from linkspread.ground.errors import BlockTooLargeError
from linkspread.ground.progress import format_bytes
from linkspread.links import Items
from linkspread.models.filters import bar_pairs, choose_open
from linkspread.models.queries import (
    Queries,
    choose_positions,
    is_table,
    read_queries,
)
from linkspread.search.index import METHODS, ItemIndex, choose_method
from linkspread.search.rank import rank_bounded, rank_rows

Array = np.ndarray

# Fitted items whose queries an approximate search is set up by.
N_SAMPLED = 512
SEED = 0
_FIRST = np.zeros(1, np.intp)
# Two searches at the same time must not both build what one of them can use.
_BUILDING = threading.Lock()


class VectorSearch(BaseEstimator, ABC):
    """Search and score between views, for items that have vectors.

    A score is the inner product of the vector with which an item searches and the
    vector with which another is found. A subclass is fitted when it has `items_`; it
    tells where the vectors come from.
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

    def _exact_rows(self, source: str, target: str) -> Any:
        """Return the SpreadRows that make the scores where no short vectors do."""
        return None

    def _similarities(self, rows: Any, view: str) -> Any:
        """Return the similarities of new items to fitted ones, for exact rows."""
        raise NotImplementedError

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
        """Find the items of one view that belong to queries of another."""
        check_is_fitted(self)
        check_count(n_results, name="n_results", remedy="The default is 10.")
        check_name(method, METHODS, name="method")
        exact = None
        if method != "approximate":
            exact = self._exact_rows(source, target)
        index = None if exact else self.index(source, target, method=method)
        wanted = read_queries(queries)
        own = self._own_positions(wanted, source)
        limits: dict[str, Any] = {
            "n_results": n_results,
            "only": choose_open(only, exclude, self.items_[target]),
            "barred": bar_pairs(self, own, source, target, judged=judged),
        }
        if index is None:
            found, scores = self._rank_exactly(exact, wanted, own, source, limits)
        else:
            vectors = self._query_vectors(wanted, own, source, target)
            backend = getattr(self, "backend", "auto")
            found, scores = index.search(vectors, **limits, backend=backend)
        ids = self.items_[target].ids[found]
        return (ids[0], scores[0]) if wanted.single else (ids, scores)

    @on_own_threads
    def index(self, source: str, target: str, *, method: str = "auto") -> ItemIndex:
        """Make the items of a view ready to be found, before the first search."""
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
        """Return a block of the scores between two views."""
        check_is_fitted(self)
        exact = self._exact_rows(source, target)
        like = exact or self._vectors_found_at(_FIRST, source, target)
        j = choose_positions(cols, self.items_[target], name="cols")
        if is_table(rows):
            _check_block(rows.shape[0], len(j), like.dtype, max_bytes)
            return self._block_of_new(rows, j, source, target)
        i = choose_positions(rows, self.items_[source], name="rows")
        _check_block(len(i), len(j), like.dtype, max_bytes)
        return self._block(i, j, source, target)

    @on_own_threads
    def embeddings(self, source: str, target: str) -> tuple[Array, Array]:
        """Return the vectors of all items of two views."""
        check_is_fitted(self)
        found = self._vectors_found(source, target)
        everyone = np.arange(self.items_[source].n_items)
        return self._vectors_of_fitted(everyone, source, target), found

    @on_own_threads
    def embed(self, queries: Any, *, source: str, target: str) -> Array:
        """Return the vectors with which queries search, as for a store of vectors."""
        check_is_fitted(self)
        wanted = read_queries(queries)
        own = self._own_positions(wanted, source)
        vectors = self._query_vectors(wanted, own, source, target)
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

    def _rank_exactly(
        self,
        exact: Any,
        wanted: Queries,
        own: Array | None,
        source: str,
        limits: dict[str, Any],
    ) -> tuple[Array, Array]:
        """Return the best items by rows of scores that are computed now."""
        if own is None:
            near = self._similarities(wanted.rows, source)
            shape = near.shape[0], exact.shape[1]
        else:
            shape = len(own), exact.shape[1]

        def score(some: slice) -> Array:
            if own is None:
                return exact.unseen_rows(near[some])
            return exact.rows(own[some])

        def ask(some: slice) -> Any:
            if own is None:
                return exact.ask_unseen(near[some])
            return exact.ask(own[some])

        if 0 < shape[0] <= getattr(exact, "few_queries", 0):
            return rank_bounded(ask, shape, exact.dtype, **limits)
        step = exact.rows_at_a_time
        # One query has short products: threads would wait for each other longer.
        with hold_blas(1) if shape[0] == 1 else nullcontext():
            return rank_rows(score, shape, exact.dtype, step=step, **limits)

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
        for made in ("_indexes", "_chains"):
            state.pop(made, None)
        return state


def _check_block(n_rows: int, n_cols: int, dtype: Any, max_bytes: float) -> None:
    """Refuse a block of scores that is larger than allowed."""
    n_bytes = float(n_rows) * n_cols * dtype.itemsize
    if n_bytes > max_bytes:
        raise BlockTooLargeError(
            f"a block of scores must be at most {format_bytes(max_bytes)}, and "
            f"{n_rows:,} x {n_cols:,} takes {format_bytes(n_bytes)}. Ask for "
            "fewer `rows` or `cols`, use `search`, or raise `max_bytes`."
        )

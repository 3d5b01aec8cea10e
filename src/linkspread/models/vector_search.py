"""Search by scores: the base class of every estimator that searches between views.

Readers take a view of the model, which shares all arrays, and so see one state of it
from beginning to end. Writers hold the lock of the model, compute, and then replace all
that changed in one step.
"""

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import wraps
from typing import Any, NamedTuple, Self, TypeVar

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from linkspread.compiled.backends import on_own_backend, on_own_threads
from linkspread.ground.checks import check_count, check_name
from linkspread.ground.cores import hold_blas
from linkspread.ground.errors import (
    BlockTooLargeError,
    LinkError,
    LinkspreadError,
    UnknownItemError,
)
from linkspread.ground.progress import format_bytes
from linkspread.links import Items, Links
from linkspread.search.index import METHODS, ItemIndex, choose_method
from linkspread.search.rank import rank_bounded, rank_rows

Array = np.ndarray
Method = TypeVar("Method", bound=Callable[..., Any])

# Fitted items whose queries tune an approximate search.
N_SAMPLED = 512
SEED = 0
# Of a view of a model: the model. Neither this nor caches nor locks are stored.
MODEL, CACHE, LOCK = "_model", "_made", "_changing"
# Simultaneous searches must build a shared index only once.
_BUILDING = threading.Lock()


def reading(method: Method) -> Method:
    """Run a method on the model as it is now, beside any change of it."""

    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        check_is_fitted(self)
        return on_threads(self._as_it_is(), *args, **kwargs)

    on_threads = on_own_threads(method)
    return run  # type: ignore[return-value]


def changing(method: Method) -> Method:
    """Run a method that changes a model, one at a time, on its own backend."""

    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        with self._lock():
            return on_own(self, *args, **kwargs)

    on_own = on_own_backend(on_own_threads(method))
    return run  # type: ignore[return-value]


class Queries(NamedTuple):
    """Queries by id or by feature row, one or many."""

    ids: Array | None
    rows: Any
    single: bool

    def positions(self, items: Items, *, name: str = "queries") -> Array | None:
        """Return the positions of queries that are fitted items; None for new ones."""
        if self.ids is None:
            return None
        return items.positions(self.ids, what=f"`{name}`")


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

    def _exact_rows(self, source: str, target: str) -> Any:
        """Return what computes rows of scores, or None where vectors are kept.

        It has `shape`, `dtype`, `rows_at_a_time`, `rows`, `block` and `unseen_rows`,
        and `prepare` and `prepare_unseen` if it has `few_queries`.
        """
        return None

    def _similarities(self, rows: Any, view: str) -> Any:
        """Return new items in the form that `unseen_rows` takes."""
        raise NotImplementedError

    @reading
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
            "only": _open_positions(only, exclude, items),
            "barred": _barred_pairs(links, own, source, items, judged=judged),
        }
        if index is None:
            near = self._similarities(wanted.rows, source) if own is None else None
            found, scores = _rank_by_rows(exact, own, near, limits)
        else:
            vectors = self._query_vectors(wanted.rows, own, source, target)
            backend = getattr(self, "backend", "auto")
            found, scores = index.search(vectors, **limits, backend=backend)
        ids = items.ids[found]
        return (ids[0], scores[0]) if wanted.single else (ids, scores)

    @reading
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
        items = self._vectors_found(source, target)
        if choose_method(method, items) == "exact":
            return ItemIndex(items, method="exact")

        def build() -> ItemIndex:
            n_items = self.items_[source].n_items
            rng = np.random.default_rng(SEED)
            sample = rng.choice(n_items, min(N_SAMPLED, n_items), replace=False)
            queries = self._vectors_of_fitted(np.sort(sample), source, target)
            return ItemIndex(items, method="approximate", queries=queries)

        with _BUILDING:
            return self._cached(("index", source, target), [items], build)

    @reading
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
        like: Any = self._exact_rows(source, target)
        if like is None:
            like = self._vectors_found_at(np.zeros(1, np.intp), source, target)
        j, i = choose_positions(cols, self.items_[target], name="cols"), None
        if not is_table(rows):
            i = choose_positions(rows, self.items_[source], name="rows")
        n_rows = rows.shape[0] if i is None else len(i)
        n_bytes = float(n_rows) * len(j) * like.dtype.itemsize
        if n_bytes > max_bytes:
            raise BlockTooLargeError(
                f"a block of scores must be at most {format_bytes(max_bytes)}, and "
                f"{n_rows:,} x {len(j):,} takes {format_bytes(n_bytes)}. Give "
                "fewer `rows` or `cols`, use `search`, or raise `max_bytes`."
            )
        if i is None:
            return self._block_of_new(rows, j, source, target)
        return self._block(i, j, source, target)

    @reading
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
        found = self._vectors_found(source, target)
        positions = np.arange(self.items_[source].n_items)
        return self._vectors_of_fitted(positions, source, target), found

    @reading
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

    def _as_it_is(self) -> Self:
        """Return a view of the model: the same arrays, unaffected by later changes."""
        if MODEL in vars(self):
            return self
        self.__dict__.setdefault(CACHE, {})
        view = object.__new__(type(self))
        # One step, so that all parts are of before a change or of after it.
        view.__dict__.update(vars(self).copy())
        view.__dict__[MODEL] = self
        return view

    def _keep(self, **made: Any) -> None:
        """Keep what a reader computed, also in its model unless that has changed."""
        model, before = vars(self).get(MODEL), vars(self).copy()
        self.__dict__.update(made)
        lock = None if model is None else model._lock()
        if lock is not None and lock.acquire(blocking=False):
            try:
                if all(vars(model)[name] is before[name] for name in made):
                    model.__dict__.update(made)
            finally:
                lock.release()

    def _lock(self) -> Any:
        """Return the lock that a change of the model holds."""
        return self.__dict__.setdefault(LOCK, threading.RLock())

    def _cached(self, key: tuple[str, ...], of: Any, make: Callable[[], Any]) -> Any:
        """Return what was made of some parts, made again if one was replaced."""
        kept = self.__dict__.setdefault(CACHE, {})
        parts, value = kept.get(key, ((), None))
        if list(map(id, parts)) != list(map(id, of)):
            value = make()
            kept[key] = tuple(of), value
        return value

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        return {k: own for k, own in state.items() if k not in (MODEL, CACHE, LOCK)}


def read_queries(queries: Any, *, name: str = "queries") -> Queries:
    """Return queries by id or by row, whichever were given."""
    if is_table(queries):
        return Queries(None, queries, single=False)
    try:
        array = np.asarray(queries)
    except ValueError as error:
        raise _unreadable("rows of different lengths") from error
    is_ids = array.dtype.kind in "iuUSOT"
    if array.ndim == 2:
        return Queries(None, array, single=False)
    # An empty list has no type; it holds no query either way.
    if array.ndim == 1 and (is_ids or len(array) == 0):
        return Queries(array, None, single=False)
    if array.ndim == 1 and array.dtype.kind == "f":
        return Queries(None, array[None, :], single=True)
    if array.ndim == 0 and is_ids:
        return Queries(array[None], None, single=True)
    raise _unreadable(f"{array.dtype} of shape {array.shape}")


def is_table(queries: Any) -> bool:
    """Return whether these can only be rows of features."""
    if isinstance(queries, np.ndarray):
        return queries.ndim == 2
    return sparse.issparse(queries) or nw.dependencies.is_into_dataframe(queries)


def choose_positions(chosen: Any, items: Items, *, name: str) -> Array:
    """Return the positions of some items of a view."""
    everything = np.arange(items.n_items)
    if chosen is None:
        return everything
    if isinstance(chosen, slice):
        return everything[chosen]
    array = np.asarray(chosen)
    if array.ndim != 1 or (array.dtype == bool and len(array) != items.n_items):
        raise LinkspreadError(
            f"`{name}` must be a flat list of items of view {items.view!r}, a mask of "
            f"its {items.n_items:,} items or a slice, got {array.dtype} of shape "
            f"{array.shape}. Write [item] for a single one."
        )
    if array.dtype == bool:
        return everything[array]
    if array.dtype.kind not in "iu" or items.ids.dtype.kind != "U":
        return items.positions(array, what=f"`{name}`")
    outside = array[(array < 0) | (array >= items.n_items)]
    if len(outside):
        raise UnknownItemError(
            f"`{name}` must be ids of view {items.view!r} or positions from 0 to "
            f"{items.n_items - 1:,}, got {outside[0]}. Correct it."
        )
    return array


def _open_positions(only: Any, exclude: Any, items: Items) -> Array | None:
    """Return the positions that queries may find, or None for all."""
    if only is None and exclude is None:
        return None
    is_open = np.full(items.n_items, only is None)
    if only is not None:
        is_open[choose_positions(only, items, name="only")] = True
    if exclude is not None:
        is_open[choose_positions(exclude, items, name="exclude")] = False
    return np.flatnonzero(is_open)


def _barred_pairs(
    links: Links | None, own: Array | None, source: str, target: Items, *, judged: bool
) -> sparse.csr_array | None:
    """Return what each query may not find: itself, and judged items if so chosen."""
    if not isinstance(judged, bool | np.bool_) or not (judged or links is not None):
        needs = "True" if links is None else "True or False"
        raise LinkspreadError(
            f"`judged` must be {needs}, got {judged!r:.60}. Name items "
            "that are not to be found in `exclude`."
        )
    barred = None
    if own is not None and source == target.view:
        # One entry in each row, at the query's own position.
        itself = np.ones(len(own)), own, np.arange(len(own) + 1)
        barred = sparse.csr_array(itself, shape=(len(own), target.n_items))
    if own is not None and not judged and links is not None:
        pairs = links.judged(source, target.view)[own]
        # No item is linked to itself, so that nothing cancels.
        barred = pairs if barred is None else (barred + pairs).tocsr()
    return barred


def _rank_by_rows(
    exact: Any, own: Array | None, near: Any, limits: dict[str, Any]
) -> tuple[Array, Array]:
    """Return the best items by rows of scores computed on demand."""
    n_queries = near.shape[0] if own is None else len(own)
    shape = n_queries, exact.shape[1]

    def score(some: slice) -> Array:
        return exact.unseen_rows(near[some]) if own is None else exact.rows(own[some])

    def ask(some: slice) -> Any:
        if own is None:
            return exact.prepare_unseen(near[some])
        return exact.prepare(own[some])

    if 0 < n_queries <= getattr(exact, "few_queries", 0):
        return rank_bounded(ask, shape, exact.dtype, **limits)
    step = exact.rows_at_a_time
    # The products of one query are short: threads would cost more than they save.
    with hold_blas(1) if n_queries == 1 else nullcontext():
        return rank_rows(score, shape, exact.dtype, step=step, **limits)


def _unreadable(got: str) -> LinkspreadError:
    """Return the error for queries that are neither ids nor rows."""
    return LinkspreadError(
        f"`queries` must be ids of fitted items or rows of features, got {got}. Give "
        "an id such as 't7', a list of ids, or a table with one row per new item."
    )


def find_chain(
    is_joined: Callable[[str, str], bool],
    views: Iterable[str],
    source: str,
    target: str,
) -> tuple[str, ...] | None:
    """Return the shortest chain of joined views from one to another, or None.

    Of several the first in the order of the views. A view that is not joined to itself
    reaches itself through another.
    """
    views = list(views)
    chains: deque[tuple[str, ...]] = deque([(source,)])
    seen: set[str] = set()
    while chains:
        chain = chains.popleft()
        for view in views:
            if view in seen or not is_joined(chain[-1], view):
                continue
            if view == target:
                return (*chain, view)
            seen.add(view)
            chains.append((*chain, view))
    return None


def check_reachable(
    links: Links, views: Iterable[str], source: str, target: str
) -> tuple[str, ...]:
    """Return the chain of views from one to another; refuse views without one."""
    check_views_known(views, source, target)
    chain = find_chain(links.connects, views, source, target)
    if chain is None:
        where = f"{source!r} and {target!r}"
        if source == target:
            where = f"items of {source!r}, nor that view and another"
        raise LinkError(
            f"views must be joined by links to be searched, directly or through other "
            f"views, and none join {where}. Add links between them, or between each "
            "and a third view."
        )
    return chain


def check_linked(links: Links, views: Iterable[str], *pair: str) -> None:
    """Refuse views that are unknown or not joined by links of their own."""
    check_views_known(views, *pair)
    if not links.connects(*pair):
        where = f"join {pair[0]!r} and {pair[1]!r}. Add links between them."
        if pair[0] == pair[1]:
            where = f"join items within {pair[0]!r}. Add links within it."
        raise LinkError(f"views must be joined by links of their own, and none {where}")


def check_views_known(views: Iterable[str], *wanted: str) -> None:
    """Refuse names that are no views."""
    for view in wanted:
        if view not in views:
            raise LinkspreadError(
                f"`source` and `target` must be views of the fit, {list(views)}, got "
                f"{view!r}. Correct the name."
            )

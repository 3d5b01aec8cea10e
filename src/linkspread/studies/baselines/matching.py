"""The base classes of baselines, which make a vector for every item of each view."""

from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np

from linkspread.compiled.backends import on_own_threads, small_loops
from linkspread.compiled.cpu import sampled_products
from linkspread.ground.errors import LinkError, LinkspreadError
from linkspread.links import Items, Links
from linkspread.links.collection import choose_links
from linkspread.models.vector_search import VectorSearch, check_linked
from linkspread.tables.validation import (
    check_columns,
    check_table,
    check_varied,
    check_views,
    per_view,
)

Array = np.ndarray
Embed = Callable[[Any], Array]
# The parameters of each view.
Chosen = dict[str, dict[str, Any]]

# Bytes of arrays that the settings of a trial share.
MAX_BYTES = 1e9
# Rows that are embedded at a time. Not a power of 2: tiles are transposed, and columns
# at such distances share cache lines.
TILE_ROWS = 500


class Memory:
    """Results by key; the least recently used arrays are dropped above a size."""

    def __init__(self, max_bytes: float = MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self._kept: OrderedDict[Any, Any] = OrderedDict()

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the result of a key, made on first use."""
        if key not in self._kept:
            self._kept[key] = make()
            self._make_room()
        self._kept.move_to_end(key)
        return self._kept[key]

    def _make_room(self) -> None:
        sizes = {key: getattr(own, "nbytes", 0) for key, own in self._kept.items()}
        total = sum(sizes.values())
        for key, size in list(sizes.items())[:-1]:
            if size and total > self.max_bytes:
                del self._kept[key]
                total -= size


class Side:
    """The vectors of one view.

    `embed` makes vectors from features. Those of the fitted items are given, or made
    from `table` on demand.
    """

    def __init__(
        self, embed: Embed, table: Any = None, *, vectors: Array | None = None
    ) -> None:
        self.embed, self._table, self._vectors = embed, table, vectors

    @property
    def vectors(self) -> Array:
        """Vectors of the fitted items; once all are made, the table is released."""
        if self._vectors is None:
            self._vectors, self._table = in_tiles(self.embed, self._table), None
        return self._vectors

    def vectors_of(self, positions: Array) -> Array:
        """Return the vectors of some items, and make only these if they are few."""
        if self._vectors is None and 2 * len(positions) < self._table.shape[0]:
            return in_tiles(self.embed, self._table[positions])
        return self.vectors[positions]

    def products(self, rows: Array, other: "Side", cols: Array) -> Array:
        """Return the inner products of items with items of another side."""
        return self.vectors_of(rows) @ other.vectors_of(cols).T

    def pair_products(self, rows: Array, other: "Side", cols: Array) -> Array:
        """Return the inner products of single pairs of items."""
        i, rows = np.unique(rows, return_inverse=True)
        j, cols = np.unique(cols, return_inverse=True)
        sides = self.vectors_of(i), other.vectors_of(j)
        left, right = map(np.ascontiguousarray, sides)
        with small_loops(len(rows) * left.shape[1]):
            return sampled_products(left, right, rows, cols)


class Steps:
    """A chain of functions that can be pickled, unlike a closure."""

    def __init__(self, *functions: Callable[[Any], Any]) -> None:
        self.functions = functions

    def __call__(self, value: Any) -> Any:
        """Return the value of the last function."""
        for function in self.functions:
            value = function(value)
        return value


def in_tiles(embed: Embed, rows: Any) -> Array:
    """Return the vectors of rows, made a few rows at a time."""
    starts = range(0, max(1, rows.shape[0]), TILE_ROWS)
    return np.concatenate([embed(rows[i : i + TILE_ROWS]) for i in starts])


def unit_rows(vectors: Array) -> Array:
    """Scale rows to unit norm; rows of zeros stay."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1.0)


class Matching(VectorSearch):
    """A baseline that searches between views by inner products of vectors."""

    # Parameters that take one value, or one for each view.
    PER_VIEW: ClassVar[tuple[str, ...]] = ()
    # Results for the same views and links.
    _memory: Memory | None = None

    view_names_: tuple[str, ...]
    links_: Links
    sides_: dict[Any, Side]

    def sharing_with(self, other: "Matching | None") -> Self:
        """Share results with another setting for the same views and links.

        Vectors are then made on demand, so the views must not be changed.
        """
        memory = None if other is None else other._memory
        self._memory = Memory() if memory is None else memory
        return self

    @on_own_threads
    def fit(
        self,
        views: Any,
        links: Any,
        *,
        ids: Mapping[str, Any] | None = None,
        columns: Mapping[str, Any] | None = None,
    ) -> Self:
        """Learn vectors for the items of all views that links join."""
        read = check_views(views, ids, columns)
        read.report_columns()
        tables, ids = read.tables, read.ids
        if not hasattr(self, "graph"):  # which may be given, and the table unused
            for view, X in tables.items():
                check_varied(X, view=view)
        items = {view: Items(ids[view], view=view) for view in tables}
        resolved = choose_links(links, tables).resolve(items)
        sides = self._learn(self._inputs(tables, resolved), resolved)
        if self._memory is None:
            for side in sides.values():
                side.vectors  # noqa: B018 - made now
        # Set last, so that a fit that fails leaves an earlier one as it was.
        self.view_names_ = tuple(tables)
        self.items_, self.links_, self.sides_ = items, resolved, sides
        self._columns = read.columns
        self._widths = {view: X.shape[1] for view, X in tables.items()}
        return self

    def pair_scores(self, source: str, target: str, rows: Array, cols: Array) -> Array:
        """Return the scores of single pairs of fitted items."""
        queries, items = self._sides(source, target)
        return queries.pair_products(rows, items, cols)

    def _inputs(self, tables: dict[str, Any], links: Links) -> dict[str, Any]:
        """Return what is learnt from in place of the tables, such as graphs."""
        return tables

    @abstractmethod
    def _learn(self, tables: dict[str, Any], links: Links) -> dict[Any, Side]:
        """Return the sides of all views, by view or by pairs of views."""

    @abstractmethod
    def _side(self, view: str, other: str) -> Side:
        """Return the side of a view in a match with another."""

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the entry of a key in the memory, made on first use."""
        return make() if self._memory is None else self._memory.once(key, make)

    def _choose(self, tables: Mapping[str, Any]) -> Chosen:
        """Return the parameters of each view."""
        chosen: Chosen = {view: {} for view in tables}
        for name in self.PER_VIEW:
            for view, value in per_view(getattr(self, name), tables, name=name).items():
                chosen[view][name] = value
        return chosen

    def _sides(self, source: str, target: str) -> tuple[Side, Side]:
        """Return the sides of the queries and of the items that they find."""
        self._check_joined(source, target)
        return self._side(source, target), self._side(target, source)

    def _check_joined(self, source: str, target: str) -> None:
        """Refuse to search views that no links join."""
        check_linked(self.links_, self.view_names_, source, target)

    def _block(self, i: Array, j: Array, source: str, target: str) -> Array:
        queries, items = self._sides(source, target)
        return queries.products(i, items, j)

    def _vectors_of_fitted(self, positions: Array, source: str, target: str) -> Array:
        return self._sides(source, target)[0].vectors_of(positions)

    def _vectors_of_new(self, rows: Any, source: str, target: str) -> Array:
        embed = self._sides(source, target)[0].embed
        rows = check_columns(rows, self._columns[source], view=source)
        width = self._widths[source]
        return in_tiles(embed, check_table(rows, view=source, n_features=width))

    def _vectors_found(self, source: str, target: str) -> Array:
        return self._sides(source, target)[1].vectors

    def _vectors_found_at(self, positions: Array, source: str, target: str) -> Array:
        return self._sides(source, target)[1].vectors_of(positions)


class ViewMatching(Matching):
    """A baseline that learns each view separately, with the same dimensions."""

    def _learn(self, tables: dict[str, Any], links: Links) -> dict[Any, Side]:
        chosen = self._choose(tables)
        params = self.get_params()
        common = {name: params[name] for name in params if name not in self.PER_VIEW}
        sides = {
            view: self._once(
                (view, repr((chosen[view], common))),
                partial(self._learn_view, X, links, view, **chosen[view]),
            )
            for view, X in tables.items()
            if any(links.connects(view, other) for other in tables)
        }
        first = np.zeros(1, dtype=np.intp)
        widths = {v: side.vectors_of(first).shape[1] for v, side in sides.items()}
        if len(set(widths.values())) > 1:
            raise LinkError(
                f"labels of all views must be of the same classes for "
                f"{type(self).__name__}, got {widths} classes. Give one set of labels "
                "for all views."
            )
        return sides

    @abstractmethod
    def _learn_view(self, X: Any, links: Links, view: str, **chosen: Any) -> Side:
        """Return the side of one view, given its parameters."""

    def _side(self, view: str, other: str) -> Side:
        return self.sides_[view]


class PairMatching(Matching):
    """A baseline that learns two views jointly."""

    def _learn(self, tables: dict[str, Any], links: Links) -> dict[Any, Side]:
        chosen, sides = self._choose(tables), {}
        for a, b in self._joined_pairs(tables, links):
            sides[a, b], sides[b, a] = self._learn_pair(tables, links, chosen, a, b)
        return sides

    def _joined_pairs(
        self, tables: dict[str, Any], links: Links
    ) -> list[tuple[str, str]]:
        """Return the pairs of views that links join."""
        pairs = [pair for pair in combinations(tables, 2) if links.connects(*pair)]
        if not pairs:
            raise LinkError(
                f"links must join two different views for {type(self).__name__}, got "
                f"{links!r} for views {list(tables)}. Add links between two views."
            )
        return pairs

    @abstractmethod
    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> Sequence[Side]:
        """Return the sides of two views."""

    def _side(self, view: str, other: str) -> Side:
        if view == other:
            raise LinkspreadError(
                f"`source` and `target` must differ for {type(self).__name__}, which "
                f"learns two views together, got {view!r} twice. Search another view."
            )
        return self.sides_[view, other]


def corrected_scores(scores: Array, n_neighbors: int) -> Array:
    """Return ``2 s(x, y) - r(x) - r(y)``, the hub correction of [Conneau2018].

    r(x) is the mean of the largest scores of x.
    """

    def nearness(table: Array) -> Array:
        n_best = min(n_neighbors, table.shape[1])
        return np.partition(table, -n_best, axis=1)[:, -n_best:].mean(axis=1)

    back = nearness(np.ascontiguousarray(scores.T))
    return 2 * scores - nearness(scores)[:, None] - back

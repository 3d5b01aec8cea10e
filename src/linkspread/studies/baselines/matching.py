"""The base classes of baselines, which make a vector for every item."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np

from linkspread.compiled.threads import on_own_threads
from linkspread.ground.checks import check_count
from linkspread.ground.errors import LinkError, LinkspreadError
from linkspread.links import Items, Links
from linkspread.models.link_choice import check_linked, choose_links
from linkspread.models.vector_search import VectorSearch
from linkspread.studies.baselines.memory import Memory
from linkspread.studies.baselines.side import Side, correct_hubs
from linkspread.tables.validation import (
    check_columns,
    check_table,
    check_varied,
    check_views,
    per_view,
)

Array = np.ndarray
# The parameters of each view.
Chosen = dict[str, dict[str, Any]]


class Matching(VectorSearch):
    """A baseline that searches between views by inner products of vectors."""

    # Parameters that take one value, or one for each view.
    PER_VIEW: ClassVar[tuple[str, ...]] = ()

    # Results for the same views and links; see `sharing`.
    _memory: Memory | None = None

    view_names_: tuple[str, ...]
    links_: Links
    sides_: dict[Any, Side]

    def sharing(self, memory: Memory) -> Self:
        """Share intermediate results through a memory.

        Settings that differ in the parameters of one view share the results of the
        others, as long as views and links are the same. Vectors are made on demand, so
        the views must not be changed.
        """
        self._memory = memory
        return self

    def sharing_with(self, other: "Matching | None") -> Self:
        """Share the results of another setting for the same views and links."""
        memory = None if other is None else other._memory
        return self.sharing(Memory() if memory is None else memory)

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
        sides = self._learn(tables, resolved)
        if self._memory is None:
            for side in sides.values():
                side.vectors  # noqa: B018 - made now
        # Set last, so that a fit that fails leaves an earlier one as it was.
        self.view_names_ = tuple(tables)
        self.items_, self.links_, self.sides_ = items, resolved, sides
        self._columns = read.columns
        return self

    def pair_scores(self, source: str, target: str, rows: Array, cols: Array) -> Array:
        """Return the scores of single pairs of fitted items."""
        queries = self._checked_side(source, target)
        return queries.pair_products(rows, self._side(target, source), cols)

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

    def _block(self, i: Array, j: Array, source: str, target: str) -> Array:
        queries = self._checked_side(source, target)
        return queries.products(i, self._side(target, source), j)

    def _vectors_of_fitted(self, positions: Array, source: str, target: str) -> Array:
        return self._checked_side(source, target).vectors_of(positions)

    def _vectors_of_new(self, rows: Any, source: str, target: str) -> Array:
        side = self._checked_side(source, target)
        rows = check_columns(rows, self._columns[source], view=source)
        return side.embed(check_table(rows, view=source, n_features=side.n_features))

    def _vectors_found(self, source: str, target: str) -> Array:
        self._check_joined(source, target)
        return self._side(target, source).vectors

    def _vectors_found_at(self, positions: Array, source: str, target: str) -> Array:
        self._check_joined(source, target)
        return self._side(target, source).vectors_of(positions)

    def _checked_side(self, source: str, target: str) -> Side:
        """Return the side of the queries; refuse views that cannot be searched."""
        self._check_joined(source, target)
        return self._side(source, target)

    def _check_joined(self, source: str, target: str) -> None:
        """Refuse to search views that no links join."""
        check_linked(self.links_, self.view_names_, source, target)


class ViewMatching(Matching):
    """A baseline that learns each view separately, with the same dimensions."""

    # Parameters of the input of learning, such as the graph of a view.
    BEFORE: ClassVar[tuple[str, ...]] = ()

    def _learn(self, tables: dict[str, Any], links: Links) -> dict[Any, Side]:
        chosen = self._choose(tables)
        sides = {
            view: self._learn_once(tables[view], links, view, chosen[view])
            for view in tables
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

    def _learn_once(
        self, X: Any, links: Links, view: str, chosen: dict[str, Any]
    ) -> Side:
        """Return the side of one view, from the memory if possible."""
        apart = (*self.PER_VIEW, *self.BEFORE)
        common = {n: v for n, v in self.get_params().items() if n not in apart}

        def learn() -> tuple[Side, Any]:
            # X is kept alive, so that its `id` stays unique.
            return self._learn_view(X, links, view, **chosen), X

        return self._once((view, id(X), repr((chosen, common))), learn)[0]

    @abstractmethod
    def _learn_view(self, X: Any, links: Links, view: str, **chosen: Any) -> Side:
        """Return the side of one view, given its parameters."""

    def _side(self, view: str, other: str) -> Side:
        return self.sides_[view]


class PairMatching(Matching):
    """A baseline that learns two views jointly."""

    # Neighbours for hub correction; None, also for baselines without this parameter,
    # means no correction.
    hubs: int | None = None

    def _learn(self, tables: dict[str, Any], links: Links) -> dict[Any, Side]:
        if self.hubs is not None:
            check_count(self.hubs, name="hubs", remedy="None corrects no hubs.")
        chosen, sides = self._choose(tables), {}
        for a, b in self._joined_pairs(tables, links):
            left, right = self._learn_pair(tables, links, chosen, a, b)
            if self.hubs is not None:
                left, right = correct_hubs(left, right, self.hubs)
            sides[a, b], sides[b, a] = left, right
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

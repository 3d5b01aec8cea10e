"""Must- and cannot-links among the items of two or more views."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from linkspread.ground.errors import LinkError, UnknownItemWarning, warn_caller
from linkspread.ground.notebook import html_table
from linkspread.links.labels import (
    Labels,
    check_labels_fit,
    describe_labels,
    grow_rows,
    join_columns,
    label_factors,
    memberships_of,
    without_rows,
)
from linkspread.links.matrix import Balance, LinkMatrix, balance_pairs, check_balance
from linkspread.links.pairs import (
    Conflict,
    Items,
    Pairs,
    PairTable,
    ViewPair,
    check_positions,
    check_same_items,
    conflicts_of,
    describe_pairs,
    find_conflicts,
    hide_pairs,
    join_pairs,
    matched_pairs,
    pair_matrix,
    pick_pairs,
    remove_pairs,
    renumber_pairs,
    warn_of_conflicts,
    with_positions,
)
from linkspread.links.reading import read_pairs


class Links:
    """Must-links and cannot-links between items.

    Make one with :meth:`from_labels`, :meth:`from_pairs` or :meth:`from_matched`;
    ``links + more`` joins two. Links given more than once add up.

    Parameters
    ----------
    labels : sequence of dicts from str to memberships of shape (n, c), default=()
        For each label set the memberships of each view's items.
    pairs : sequence of ((str, str), PairTable), default=()
        Two views and the judged pairs between them.
    items : mapping from str to Items, default=None
        Items of the views, if known.

    Examples
    --------
    >>> import linkspread as ls
    >>> links = ls.Links.from_pairs(
    ...     [("t1", "i1", 1.0), ("t1", "i2", -1.0)], between=("text", "image"))
    >>> links
    Links(1 must and 1 cannot between text and image)
    """

    def __init__(
        self,
        *,
        labels: Sequence[Labels] = (),
        pairs: Pairs = (),
        items: Mapping[str, Items] | None = None,
    ) -> None:
        self._labels = tuple(labels)
        self._pairs = tuple(pairs)
        self._items = dict(items or {})

    @classmethod
    def from_labels(cls, labels: Mapping[str, Any]) -> "Links":
        """Return must-links within classes, cannot-links between classes.

        Parameters
        ----------
        labels : mapping from str to array-like of shape (n,) or (n, c)
            For each view the class of each item: texts, integers or booleans; None,
            NaN, "" or -1 for unknown. The same name or number is the same class in
            all views. Or memberships of at least 0 in c classes, dense or sparse, with
            a row of zeros for unknown.

        Returns
        -------
        links : Links
            Stored as thin factors, never as pairs.
        """
        memberships = memberships_of(labels)
        items = {v: Items(m.shape[0], view=v) for v, m in memberships.items()}
        return cls(labels=[memberships], items=items)

    @classmethod
    def from_pairs(
        cls, pairs: Any, *, between: ViewPair, must_above: float | None = None
    ) -> "Links":
        """Return links of judged pairs.

        Parameters
        ----------
        pairs : sequence of tuples, ndarray, DataFrame, str, Path or PairColumns
            For each pair two ids or positions, and optionally a verdict and a weight.
            A verdict is must, yes, same, True or 1; cannot, no, different, False or 0;
            unsure or empty, which is left out; or a weight, above 0 for must and below
            0 for cannot. Tables have a column named after each view, or the ids in
            their first two columns; and a column ``verdict`` or ``weight`` or both, or
            else the verdict in the third. A str or Path is a CSV, TSV or parquet file;
            CSV and TSV begin with a line of column names.
        between : tuple of two str
            The views of the first and of the second id; twice the same name for
            links within one view.
        must_above : float, default=None
            Threshold for ratings or probabilities: above it must, below it cannot,
            with weight 1; equal to it unsure. Without it, different numbers of one
            sign are refused, except 0 and 1.

        Returns
        -------
        links : Links
            The weights of repeated pairs are added. Those of a pair that is both a
            must- and a cannot-link are added, too, and reported by a ConflictWarning
            and :meth:`conflicts`.
        """
        names = tuple(between) if isinstance(between, tuple | list) else ()
        if len(names) != 2 or not all(isinstance(name, str) for name in names):
            raise LinkError(
                f"`between` must name two views, got {between!r:.60}. "
                'Write ("text", "image"), or ("text", "text") for links within one.'
            )
        between = names[0], names[1]
        table = read_pairs(pairs, between=between, must_above=must_above)
        links = cls(pairs=[(between, table)])
        warn_of_conflicts(links.conflicts())
        return links

    @classmethod
    def from_matched(cls, views: Sequence[str], n_items: int) -> "Links":
        """Link row i of each view with row i of every other.

        Parameters
        ----------
        views : sequence of str
            Two views or more with the same items in the same order.
        n_items : int
            Number of matched rows, from the first on.
        """
        return cls(pairs=matched_pairs(views, n_items))

    def __add__(self, other: "Links") -> "Links":
        if not isinstance(other, Links):
            return NotImplemented
        for view in self._items.keys() & other._items.keys():
            check_same_items(self._items[view], other._items[view])
        joined = Links(
            labels=self._labels + other._labels,
            pairs=join_pairs(self._pairs, other._pairs),
            items=self._items | other._items,
        )
        warn_of_conflicts(joined.conflicts())
        return joined

    def __sub__(self, other: "Links") -> "Links":
        if not isinstance(other, Links):
            return NotImplemented
        if other._labels:
            raise LinkError(
                f"only pairs can be subtracted from links, got {other!r}. Use "
                "`links.hide` for labels."
            )
        return self._with_pairs(remove_pairs(self._pairs, other._pairs))

    def __repr__(self) -> str:
        return f"Links({', '.join(self._parts())})"

    def _repr_html_(self) -> str:
        parts = "".join(f"<li>{escape(part)}</li>" for part in self._parts())
        tables = (
            html_table(
                f"Judged pairs of {a} and {b}",
                (a, b, "weight"),
                zip(table.left, table.right, table.weights, strict=True),
                n_rows=len(table),
            )
            for (a, b), table in self._pairs
        )
        return f"<ul>{parts}</ul>{''.join(tables)}"

    def _parts(self) -> list[str]:
        """Say what each part is of."""
        parts = [describe_labels(labels) for labels in self._labels]
        return parts + [
            describe_pairs(between, table) for between, table in self._pairs
        ]

    @property
    def views(self) -> tuple[str, ...]:
        """Names of the views with links, in order of appearance."""
        names = [view for labels in self._labels for view in labels]
        names += [view for between, _ in self._pairs for view in between]
        return tuple(dict.fromkeys(names))

    @property
    def has_labels(self) -> bool:
        """Whether there are labels."""
        return bool(self._labels)

    @property
    def pair_tables(self) -> tuple[tuple[ViewPair, PairTable], ...]:
        """Pairs of views and the judged pairs between them, as given."""
        return self._pairs

    def connects(self, left: str, right: str) -> bool:
        """Return whether any link joins these two views, or items within one."""
        by_label = any(left in labels and right in labels for labels in self._labels)
        return by_label or any({left, right} == set(b) for b, _ in self._pairs)

    def resolve(self, items: Mapping[str, Any], *, unknown: str = "raise") -> "Links":
        """Turn ids into positions, given the items of each view.

        Parameters
        ----------
        items : mapping from str to int or array-like of shape (n,)
            For each view its number of items or their ids.
        unknown : {"raise", "skip"}, default="raise"
            Whether pairs with unknown items are an error, or are skipped and listed
            by an UnknownItemWarning.

        Returns
        -------
        links : Links
            The same links, ready for :meth:`between`.
        """
        known = {v: i if isinstance(i, Items) else Items(i, view=v)
                 for v, i in items.items()}  # fmt: skip
        for view in self.views:
            if view not in known:
                raise LinkError(
                    f"links must be among the given views, {list(known)}, but some "
                    f"name {view!r}. Add that view or rename it in the links."
                )
        for labels in self._labels:
            check_labels_fit(labels, known)
        pairs, skipped = with_positions(self._pairs, known, unknown=unknown)
        if skipped:
            warn_caller(skipped, UnknownItemWarning)
        return Links(labels=self._labels, pairs=pairs, items=known)

    def between(self, left: str, right: str, *, balance: Balance = "auto") -> Any:
        """Return the balanced links Z of two views, for `propagate`.

        Parameters
        ----------
        left, right : str
            Views of the rows and of the columns; the same name twice gives the
            symmetric links within a view.
        balance : {"auto", "literal"} or float, default="auto"
            Weight of the cannot-links: "auto" balances them against the must-links,
            "literal" keeps -1 against +1, a number multiplies them.

        Returns
        -------
        Z : csr_array or LinkMatrix of shape (n_left, n_right)
            Sparse for pairs; thin factors if there are labels.
        """
        balance = check_balance(balance)
        pairs = balance_pairs(self.judged(left, right), balance)
        factors = label_factors(self._labels, (left, right), balance)
        return pairs if factors is None else LinkMatrix(*factors, pairs)

    def within(self, view: str | None = None, *, balance: Balance = "auto") -> Any:
        """Return the balanced links Z within one view, symmetric.

        Parameters
        ----------
        view : str, default=None
            May be omitted if the links are of one view only.
        balance : {"auto", "literal"} or float, default="auto"
            As in :meth:`between`.

        Returns
        -------
        Z : csr_array or LinkMatrix of shape (n_items, n_items)
        """
        if view is None and len(self.views) == 1:
            view = self.views[0]
        if view is None or not self.connects(view, view):
            raise LinkError(
                f"there must be links within one view, got {self!r} and view {view!r}. "
                "Name the `view`, or add labels or pairs of its items."
            )
        return self.between(view, view, balance=balance)

    def memberships(self, view: str, *, shared_with: str | None = None) -> Any:
        """Return the memberships of a view's items (n_items, n_classes), or None.

        Only of the label sets that the view `shared_with` has, too, if it is given. A
        row of zeros stands for unknown.
        """
        wanted = {view, shared_with or view}
        blocks = [labels[view] for labels in self._labels if wanted <= labels.keys()]
        return join_columns(blocks) if blocks else None

    def labelled(self, view: str, *, shared_with: str | None = None) -> Any:
        """Return which items of a view have labels, or None if none has."""
        memberships = self.memberships(view, shared_with=shared_with)
        if memberships is None:
            return None
        return np.asarray(memberships.sum(axis=1)).ravel() > 0

    def classes(self, view: str, *, shared_with: str | None = None) -> Any:
        """Return the class of each item by its largest membership, -1 for unknown."""
        memberships = self.memberships(view, shared_with=shared_with)
        known = self.labelled(view, shared_with=shared_with)
        return np.where(known, np.asarray(memberships.argmax(axis=1)).ravel(), -1)

    def judged(self, left: str, right: str) -> Any:
        """Return the judged pairs of two views with their given weights, sparse."""
        for view in (left, right):
            if view not in self._items:
                raise LinkError(
                    f"links must be resolved to the items of view {view!r}, got items "
                    f"of {', '.join(map(repr, self._items)) or 'no view'}. Call "
                    "`links.resolve({view: n_items_or_ids, ...})` first."
                )
        shape = self._items[left].n_items, self._items[right].n_items
        return pair_matrix(self._pairs, (left, right), shape)

    def hide(self, positions: Mapping[str, Any]) -> "Links":
        """Return the links without labels and pairs of the items at some positions."""
        hidden = check_positions(positions, self._items)
        labels = self._map_labels(hidden, without_rows)
        pairs = hide_pairs(self._pairs, hidden)
        return Links(labels=labels, pairs=pairs, items=self._items)

    def select(
        self, positions: Mapping[str, Any], *, with_ids: bool = False
    ) -> "Links":
        """Return the links among some items, renumbered; other views keep all items.

        Pairs keep their ids, or name items by their new positions.
        """
        chosen = check_positions(positions, self._items, once=True)
        taken = {view: self._items[view].take(own) for view, own in chosen.items()}
        labels = self._map_labels(chosen, lambda own, kept: own[kept])
        pairs = renumber_pairs(self._pairs, chosen, with_ids=with_ids)
        return Links(labels=labels, pairs=pairs, items=self._items | taken)

    def add_pairs(self, more: "Links") -> "Links":
        """Return links with more pairs by position; only new conflicts are reported."""
        pairs = join_pairs(self._pairs, more._pairs)
        warn_of_conflicts(conflicts_of(pairs, more._pairs))
        return self._with_pairs(pairs)

    def grow(self, items: Mapping[str, Items]) -> "Links":
        """Return the same links among more items, which are last and have none."""
        sizes = {view: own.n_items for view, own in items.items()}
        labels = self._map_labels(sizes, grow_rows)
        return Links(labels=labels, pairs=self._pairs, items=items)

    def pick(self, chosen: Any) -> "Links":
        """Return all labels and the pairs of all `pair_tables` that a mask chooses."""
        return self._with_pairs(pick_pairs(self._pairs, chosen))

    def conflicts(self) -> list[Conflict]:
        """Return the pairs that are both must- and cannot-links.

        Returns
        -------
        conflicts : list of (views, ids, must weight, cannot weight)
            Views in alphabetical order, pairs in order of appearance.
        """
        return find_conflicts(self._pairs)

    def _with_pairs(self, pairs: Pairs) -> "Links":
        """Return the same labels with other pairs of the same items."""
        return Links(labels=self._labels, pairs=pairs, items=self._items)

    def _map_labels(
        self, given: Mapping[str, Any], change: Callable[[Any, Any], Any]
    ) -> list[Labels]:
        """Return the labels with the memberships of the given views changed."""
        return [
            {v: change(m, given[v]) if v in given else m for v, m in labels.items()}
            for labels in self._labels
        ]


def choose_links(links: Any, tables: Mapping[str, Any]) -> Links:
    """Return links, made from labels if labels were given."""
    if isinstance(links, Links):
        return links
    if isinstance(links, Mapping):
        return Links.from_labels(links)
    if links is not None and len(tables) == 1:
        return Links.from_labels({next(iter(tables)): links})
    got = f"{type(links).__name__} for {len(tables)} views"
    if links is None:
        # The estimator checks of scikit-learn look for these words.
        got = "None (the fit requires y to be passed, but the target y is None)"
    raise LinkError(
        f"`links` must be Links or labels by view, got {got}. Make them with "
        "`Links.from_pairs` or `Links.from_labels`."
    )


def linked_pairs(links: Links, views: Iterable[str]) -> list[tuple[str, str]]:
    """Return the pairs of views between which a fit propagates links."""
    views = list(views)
    pairs = [pair for pair in combinations(views, 2) if links.connects(*pair)]
    return pairs or [(view, view) for view in views if links.connects(view, view)]


class PairCount(NamedTuple):
    """Number of judged pairs of two views, or within one."""

    between: ViewPair
    n_must: int
    n_cannot: int

    def __str__(self) -> str:
        views = " and ".join(self.between)
        return f"{views}: {self.n_must:,} must, {self.n_cannot:,} cannot"


class LabelCount(NamedTuple):
    """Number of labelled items of one view."""

    view: str
    n_items: int
    n_classes: int

    def __str__(self) -> str:
        classes = "1 class" if self.n_classes == 1 else f"{self.n_classes:,} classes"
        return f"{self.view}: {self.n_items:,} labels of {classes}"


def count_links(links: Links) -> list[PairCount | LabelCount]:
    """Count links by kind."""
    found: list[PairCount | LabelCount] = []
    for view in links.views:
        memberships = links.memberships(view)
        if memberships is not None:
            rows, columns = (memberships > 0).nonzero()
            counts = len(np.unique(rows)), len(np.unique(columns))
            found.append(LabelCount(view, *counts))
    # Two views may be named in either order.
    for between in {frozenset(b): b for b, _ in links.pair_tables}.values():
        weights = links.judged(*between).data
        twice = 2 if between[0] == between[1] else 1
        n_must, n_cannot = np.sum(weights > 0), np.sum(weights < 0)
        found.append(PairCount(between, int(n_must) // twice, int(n_cannot) // twice))
    return found

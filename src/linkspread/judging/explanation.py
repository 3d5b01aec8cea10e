"""What a score is made of: a sum of links, classes and neighbours, and its words.

Whoever computes a score gives its parts as `Shares`, arrays of amounts of one kind.
`make_split` names the largest of them; an `Explanation` holds the splits of one score.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from linkspread.ground.errors import require

Array = np.ndarray

# Lines of each split that the text shows.
N_SHOWN = 8
# Amounts that need more of them are written in powers of ten.
MAX_DECIMALS = 9
HEADINGS = {
    "links": "What it is made of",
    "source_neighbors": "Through neighbours of {source}",
    "target_neighbors": "Through neighbours of {target}",
    "target_labels": "What labels give, by labelled {target_view} item",
    "classes": "What labels give, by classes",
}
_PHRASES = {
    "cannot-link": "cannot-link of {left} and {right}, weight {size:.3g}",
    "chance": "what classes give by chance",
    "class": "{source} of class {c}, {target} of {d}",
    "hubs": "correction for what everything finds",
    "must-link": "must-link of {left} and {right}, weight {size:.3g}",
    "own": "the item itself",
    "prior": "how alike both are without judgements",
    "same class": "both of class {c}",
    "source label": "{left} of class {c}, with all labelled {target} items",
    "source neighbor": "{left}, similarity {size:.3g}",
    "target label": "{right} of class {d}, with all labelled {source} items",
    "target neighbor": "{right}, similarity {size:.3g}",
}


@dataclass(frozen=True)
class Contribution:
    """One part of a score.

    Attributes
    ----------
    kind : str
        "must-link" or "cannot-link" for a judged pair, "label" for a labelled item,
        "class" for two classes, "neighbor", "own" for what the item knows without its
        neighbours; "prior" for what the views share, "hubs" for what is taken from
        items that everything finds, "chance" for what labels give by chance.
    amount : float
        What it adds to the score.
    weight : float
        Of a link what it was given, balanced; of a label the membership; of two
        classes the weight of a link between them; of a neighbour its similarity.
    source_item, target_item : int, str or None, default=None
        Ids of the items; None where it has none of that view.
    classes : tuple of (int or None), default=(None, None)
        Columns of `Links.memberships`: classes of the source and of the target.
    """

    kind: str
    amount: float
    weight: float
    source_item: Any = None
    target_item: Any = None
    classes: tuple[int | None, int | None] = (None, None)


@dataclass(frozen=True)
class Split:
    """A total in parts, the largest first.

    Attributes
    ----------
    parts : tuple of Contribution
        Without those that add nothing.
    rest : float
        The sum of the parts that are not listed.
    n_rest : int
        How many these are.
    """

    parts: tuple[Contribution, ...]
    rest: float
    n_rest: int

    @property
    def total(self) -> float:
        """What all parts add up to."""
        return sum(part.amount for part in self.parts) + self.rest


@dataclass(frozen=True)
class Explanation:
    """Why an item of one view scores as it does with an item of another.

    `links` adds up to the score, and so does each split by neighbours where links
    were spread over graphs. `target_labels` and `classes` split the part of the score
    that labels give a second and a third time. What there is not is None.

    Attributes
    ----------
    source, target : str
        The views.
    source_item : int, str or None
        Id of the item that searches; None for a new one.
    target_item : int or str
        Id of the item found.
    score : float
        Without truncation of rank.
    search_score : float
        The score that `search` and `scores` give, by vectors of limited length.
    links : Split
        By judged pair, and by labelled item of the source, or by class and by what
        the views share.
    source_neighbors : Split or None, default=None
        By the first step on the graph of the source.
    target_neighbors : Split or None, default=None
        By the first step on the graph of the target.
    target_labels : Split or None, default=None
        What labels give, by labelled item of the target.
    classes : Split or None, default=None
        What labels give, by class of the source and class of the target.
    """

    source: str
    target: str
    source_item: Any
    target_item: Any
    score: float
    search_score: float
    links: Split
    source_neighbors: Split | None = None
    target_neighbors: Split | None = None
    target_labels: Split | None = None
    classes: Split | None = None

    @property
    def contributions(self) -> tuple[Contribution, ...]:
        """The parts of `links`; with `rest` they add up to the score."""
        return self.links.parts

    @property
    def rest(self) -> float:
        """What the links that `n_links` left out contribute."""
        return self.links.rest

    @property
    def splits(self) -> dict[str, Split]:
        """All splits that there are, by the names of their attributes."""
        values = {own.name: getattr(self, own.name) for own in fields(self)}
        return {name: own for name, own in values.items() if isinstance(own, Split)}

    def to_frame(self, *, backend: str = "pandas") -> Any:
        """Return all parts of all splits as one table.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}, default="pandas"
            The package that makes the table.

        Returns
        -------
        frame : DataFrame
            Columns ``split``, ``kind``, ``source_item``, ``target_item``,
            ``source_class``, ``target_class``, ``weight`` and ``amount``; what was
            left out of a split is a row of the kind "rest". Ids are strings.
        """
        package: Any = require(backend, purpose="An explanation as a table")
        columns: dict[str, list[Any]] = defaultdict(list)
        for name, split in self.splits.items():
            left_out = Contribution("rest", split.rest, float("nan"))
            for part in (*split.parts, left_out):
                columns["split"].append(name)
                columns["kind"].append(part.kind)
                columns["source_item"].append(_text(part.source_item))
                columns["target_item"].append(_text(part.target_item))
                columns["source_class"].append(_text(part.classes[0]))
                columns["target_class"].append(_text(part.classes[1]))
                columns["weight"].append(part.weight)
                columns["amount"].append(part.amount)
        return nw.from_dict(columns, backend=package).to_native()

    def __str__(self) -> str:
        names = {
            "source": name_item(self.source, self.source_item),
            "target": name_item(self.target, self.target_item),
            "target_view": self.target,
        }
        lines = [f"{names['source']} and {names['target']} score {self.score:.4g}"]
        for name, split in self.splits.items():
            lines += ["", HEADINGS[name].format(**names)]
            lines += _lines(split, self.source, self.target)
        return "\n".join(lines)


def _text(value: Any) -> str | None:
    """Return ids of any type as what a column of a table can hold."""
    return None if value is None else str(value)


def name_item(view: str, item: Any) -> str:
    """Return how an item is called."""
    return f"the new {view} item" if item is None else f"{view} {item!r}"


def amount_format(amounts: Sequence[float]) -> Callable[[float], str]:
    """Return what writes amounts with equal decimals, three figures of the largest."""
    unit = max(map(abs, amounts), default=0.0)
    decimals = 2 - math.floor(math.log10(unit)) if unit > 0 else 2
    if decimals > MAX_DECIMALS:
        return lambda amount: f"{amount:+.2e}"
    return lambda amount: f"{amount:+.{max(decimals, 0)}f}"


def _lines(split: Split, source: str, target: str) -> Iterator[str]:
    """Yield a line for each of the first parts, and one for all others."""
    write = amount_format([part.amount for part in split.parts])
    for part in split.parts[:N_SHOWN]:
        yield f"  {write(part.amount)}  {_describe(part, source, target)}"
    more = split.parts[N_SHOWN:]
    n_more = len(more) + split.n_rest
    if n_more:
        amount = sum(part.amount for part in more) + split.rest
        others = "another" if n_more == 1 else f"{n_more:,} others"
        yield f"  {write(amount)}  {others}"
    if not split.parts and not n_more:
        yield "  nothing"


def _describe(part: Contribution, source: str, target: str) -> str:
    """Return what a part of a score is, without its amount."""
    kind, (c, d) = part.kind, part.classes
    if kind in ("label", "neighbor"):
        kind = f"{'target' if part.source_item is None else 'source'} {kind}"
    return _PHRASES["same class" if kind == "class" and c == d else kind].format(
        source=source,
        target=target,
        left=name_item(source, part.source_item),
        right=name_item(target, part.target_item),
        c=c,
        d=d,
        size=abs(part.weight),
    )


@dataclass(frozen=True, eq=False)
class Shares:
    """Amounts of one kind, with items and classes of the source (0) and target (1)."""

    kind: str  # of a Contribution; "pair" for must-links and cannot-links
    amounts: Array
    weights: Array
    items: Mapping[int, Array] = field(default_factory=dict)  # positions
    classes: Mapping[int, Array] = field(default_factory=dict)

    def name(self, row: int, ids: tuple[Array, Array]) -> Contribution:
        """Return one share with the ids of its items."""
        kind, weight = self.kind, float(self.weights[row])
        if kind == "pair":
            kind = "must-link" if weight > 0 else "cannot-link"
        items = {k: ids[k][own[row]].item() for k, own in self.items.items()}
        classes = {k: int(own[row]) for k, own in self.classes.items()}
        return Contribution(
            kind=kind,
            amount=float(self.amounts[row]),
            weight=weight,
            source_item=items.get(0),
            target_item=items.get(1),
            classes=(classes.get(0), classes.get(1)),
        )


def single_share(kind: str, amount: float) -> Shares:
    """Return a share that is of no item."""
    return Shares(kind, np.array([amount]), np.ones(1))


def make_split(
    shares: Sequence[Shares],
    source_ids: Array,
    target_ids: Array,
    *,
    n_links: int | None,
) -> Split:
    """Name the largest shares, and add up the others."""
    amounts = np.concatenate([own.amounts for own in shares] or [np.zeros(0)])
    order = np.argsort(-np.abs(amounts), kind="stable")[: np.count_nonzero(amounts)]
    n_named = len(order) if n_links is None else min(n_links, len(order))
    starts = np.cumsum([0, *(len(own.amounts) for own in shares)])
    parts = []
    for place in order[:n_named]:
        k = int(np.searchsorted(starts, place, side="right")) - 1
        row = int(place - starts[k])
        parts.append(shares[k].name(row, (source_ids, target_ids)))
    rest = float(np.sum(amounts[order[n_named:]]))
    return Split(tuple(parts), rest, len(order) - n_named)

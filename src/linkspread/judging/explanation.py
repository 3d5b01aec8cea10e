"""Explanations: a score as a sum over links, classes and neighbours, and its text.

Models return the parts of a score as `Shares`, arrays of amounts of one kind.
`make_split` names the largest; an `Explanation` holds the splits of one score.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from linkspread.ground.notebook import html_text

Array = np.ndarray

# Lines of each split that the text shows.
N_SHOWN = 8
# Amounts with more decimals are written in powers of ten.
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
    "chance": "expected by chance",
    "class": "{source} of class {c}, {target} of {d}",
    "hubs": "hub correction",
    "must-link": "must-link of {left} and {right}, weight {size:.3g}",
    "own": "the item itself",
    "prior": "prior, without judgements",
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
        "class" for two classes, "neighbor", "own" for the item without its
        neighbours, "prior", "hubs" for the hub correction, "chance" for what is
        subtracted from label scores.
    amount : float
        What it adds to the score.
    weight : float
        Balanced weight of a link; membership of a label; weight of a link between
        two classes; similarity of a neighbour.
    source_item, target_item : int, str or None, default=None
        Ids of the items; None if the part has none of that view.
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
        Without parts of amount 0.
    rest : float
        Sum of the parts that are not listed.
    n_rest : int
        Number of parts that are not listed.
    """

    parts: tuple[Contribution, ...]
    rest: float
    n_rest: int

    @property
    def total(self) -> float:
        """Sum of all parts."""
        return sum(part.amount for part in self.parts) + self.rest


@dataclass(frozen=True)
class Explanation:
    """Why an item of one view scores as it does with an item of another.

    `links` adds up to the score, and so does each split by neighbours, if links were
    propagated over graphs. `target_labels` and `classes` are two more splits of what
    labels add. Splits that do not apply are None.

    Attributes
    ----------
    source, target : str
        The views.
    source_item : int, str or None
        Id of the query; None for a new item.
    target_item : int or str
        Id of the item found.
    score : float
        Without truncation of rank.
    search_score : float
        The score of `search` and `scores`, by vectors of limited rank.
    links : Split
        By judged pair and labelled item of the source, or by class and prior.
    source_neighbors : Split or None, default=None
        By the first step on the graph of the source.
    target_neighbors : Split or None, default=None
        By the first step on the graph of the target.
    target_labels : Split or None, default=None
        What labels add, by labelled item of the target.
    classes : Split or None, default=None
        What labels add, by class of the source and class of the target.
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
        """Sum of the links beyond `n_links`."""
        return self.links.rest

    @property
    def splits(self) -> dict[str, Split]:
        """All splits, by the names of their attributes."""
        values = {own.name: getattr(self, own.name) for own in fields(self)}
        return {name: own for name, own in values.items() if isinstance(own, Split)}

    def _repr_html_(self) -> str:
        # Imported here because the drawing imports this module.
        from linkspread.judging.explanation_picture import explanation_picture

        return explanation_picture(self) + html_text(str(self))

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


def name_item(view: str, item: Any) -> str:
    """Return the name of an item."""
    return f"the new {view} item" if item is None else f"{view} {item!r}"


def amount_format(amounts: Sequence[float]) -> Callable[[float], str]:
    """Return a formatter with equal decimals, three digits of the largest."""
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
    """Return the description of a part, without its amount."""
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
    """Return a single share without items."""
    return Shares(kind, np.array([amount]), np.ones(1))


def pair_shares(
    i: Array, j: Array, weights: Array, amounts: Array, *, within: bool
) -> Shares:
    """Return the shares of judged pairs; within a view (a, b) and (b, a) are one."""
    if not within:
        return Shares("pair", amounts, weights, {0: i, 1: j})
    ends = np.sort(np.stack([i, j], axis=1), axis=1)
    once, first, place = np.unique(ends, axis=0, return_index=True, return_inverse=True)
    added = np.bincount(place.ravel(), amounts, minlength=len(once))
    return Shares("pair", added, weights[first], dict(enumerate(once.T)))


def make_split(
    shares: Sequence[Shares],
    source_ids: Array,
    target_ids: Array,
    *,
    n_links: int | None,
) -> Split:
    """Return the largest shares by name, and the sum of the others."""
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

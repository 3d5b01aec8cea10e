"""What a score is made of: links, classes and neighbours, each with its amount."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import narwhals.stable.v1 as nw

from linkspread.ground.errors import require
from linkspread.judging.explanation_text import describe_explanation


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
        values = {field.name: getattr(self, field.name) for field in fields(self)}
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
        package: Any = require(
            backend, extra="tables", purpose="An explanation as a table"
        )
        rows = list(_rows(self.splits))
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        return nw.from_dict(columns, backend=package).to_native()

    def __str__(self) -> str:
        return describe_explanation(self)


def _rows(splits: dict[str, Split]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table."""
    for name, split in splits.items():
        left_out = Contribution("rest", split.rest, float("nan"))
        for part in (*split.parts, left_out):
            yield {
                "split": name,
                "kind": part.kind,
                "source_item": _text(part.source_item),
                "target_item": _text(part.target_item),
                "source_class": _text(part.classes[0]),
                "target_class": _text(part.classes[1]),
                "weight": part.weight,
                "amount": part.amount,
            }


def _text(value: Any) -> str | None:
    """Return ids of any type as what a column of a table can hold."""
    return None if value is None else str(value)

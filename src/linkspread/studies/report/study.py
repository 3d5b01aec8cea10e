"""Results of a study: methods, amounts of supervision, splits, printed figures.

>>> from linkspread.studies.report import Cell, Run, Study
>>> cells = (Cell("ours", "links", 100, (Run("standard", 0.3),)),
...          Cell("baseline", "links", 100, (Run("standard", 0.2),)))
>>> study = Study("", "", "", "", {}, ours="ours", cells=cells)
>>> study.cell(("links", 100), "ours").standard.score
0.3
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any, NamedTuple

from linkspread.ground.errors import LinkspreadError

STANDARD_SPLIT = "standard"
# Name of a printed average, beside those of the directions.
AVERAGE = "average"
N_RECALL_LEVELS = 11
# Singular, plural and "all" of each kind of supervision.
KINDS = {
    "labels per class": ("label per class", "labels per class", "all labels"),
    "links": ("link", "links", "all links"),
    "matched pairs": ("matched pair", "matched pairs", "all matched pairs"),
    "judged pairs": ("judged pair", "judged pairs", "all judged pairs"),
}


class Budget(NamedTuple):
    """An amount of supervision; None means all."""

    kind: str
    amount: int | None

    @property
    def text(self) -> str:
        """The budget in words, such as "1 label per class" or "all links"."""
        one, several, everything = KINDS[self.kind]
        if self.amount == 0:
            return f"no {several}"
        if self.amount is None:
            return everything
        return f"{self.amount:,} {one if self.amount == 1 else several}"


@dataclass(frozen=True)
class Card:
    """One item for display."""

    title: str
    caption: str
    picture: str | None = None


@dataclass(frozen=True)
class Hit:
    """One result of a search."""

    card: Card
    score: float
    right: bool


@dataclass(frozen=True)
class Search:
    """A query and its results."""

    source: str
    target: str
    query: Card
    hits: Sequence[Hit]


@dataclass(frozen=True)
class Run:
    """The result of one method on one split, by the measure of the study."""

    split: str
    score: float
    details: dict[str, float] = field(default_factory=dict)  # of other measures
    seconds: dict[str, float] = field(default_factory=dict)  # by step
    parameters: dict[str, Any] = field(default_factory=dict)
    per_class: dict[str, dict[str, float]] = field(default_factory=dict)
    curve: dict[str, list[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for direction, levels in self.curve.items():
            if len(levels) != N_RECALL_LEVELS:
                raise LinkspreadError(
                    f"`curve` {direction!r} must have {N_RECALL_LEVELS} values, got "
                    f"{len(levels)}. Give the precision at recall 0, 0.1, ..., 1."
                )

    @property
    def total_seconds(self) -> float:
        """Time of all steps."""
        return sum(self.seconds.values())


@dataclass(frozen=True)
class Cell:
    """The runs of one method with one amount of supervision."""

    method: str
    kind: str
    amount: int | None
    runs: tuple[Run, ...]

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise LinkspreadError(
                f"`kind` must be one of {list(KINDS)}, got {self.kind!r}. Choose one."
            )
        if self.amount is not None and self.amount < 0:
            raise LinkspreadError(
                f"`amount` must not be negative, got {self.amount}. Use None for all."
            )
        if not self.runs:
            raise LinkspreadError(
                f"`runs` of {self.method!r} must be at least one, got none. Leave out "
                "cells that were not computed."
            )
        _refuse_repeated([run.split for run in self.runs], f"splits of {self.method!r}")

    @property
    def budget(self) -> Budget:
        """The amount of supervision."""
        return Budget(self.kind, self.amount)

    @property
    def standard(self) -> Run | None:
        """The run on the published split."""
        return next((run for run in self.runs if run.split == STANDARD_SPLIT), None)

    @property
    def resplits(self) -> tuple[Run, ...]:
        """The runs on all other splits."""
        return tuple(run for run in self.runs if run.split != STANDARD_SPLIT)

    @property
    def mean(self) -> float | None:
        """Mean over the re-splits, None without any."""
        scores = [run.score for run in self.resplits]
        return fmean(scores) if scores else None

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation over the re-splits, None for fewer than two."""
        scores = [run.score for run in self.resplits]
        return stdev(scores) if len(scores) > 1 else None

    def detail(self, name: str) -> float | None:
        """Return the mean of another measure, None where it was not measured."""
        values = [run.details[name] for run in self.resplits if name in run.details]
        return fmean(values) if values else None


@dataclass(frozen=True)
class ParameterCurve:
    """The cross-validated score of a method against one parameter."""

    method: str
    parameter: str
    values: tuple[Any, ...]
    scores: tuple[float, ...]
    chosen: Any

    def __post_init__(self) -> None:
        if len(self.values) != len(self.scores):
            raise LinkspreadError(
                f"`scores` of {self.parameter!r} must be as many as its values, "
                f"{len(self.values)}, got {len(self.scores)}. Give one score per value."
            )
        if self.chosen not in self.values:
            raise LinkspreadError(
                f"`chosen` of {self.parameter!r} must be one of its values, got "
                f"{self.chosen!r}. Add it to the values with its score."
            )


@dataclass(frozen=True)
class Study:
    """A comparison of methods, with all that its page shows.

    A table names `directions` and has one amount of supervision, a row per method and
    the published split; any other study compares growing amounts, over several splits.
    """

    title: str
    introduction: str
    command: str
    collection: str
    environment: dict[str, str]
    measure: str = "mean average precision"
    ours: str = ""
    had: str = ""  # the search before any judgement
    directions: tuple[str, ...] = ()
    groups: dict[str, str] = field(default_factory=dict)  # by method
    printed: dict[str, dict[str, float]] = field(default_factory=dict)
    cells: tuple[Cell, ...] = ()
    curves: tuple[ParameterCurve, ...] = ()
    examples: tuple[Search, ...] = ()

    def __post_init__(self) -> None:
        _refuse_repeated([(c.method, c.kind, c.amount) for c in self.cells], "cells")
        _refuse_repeated([(c.method, c.parameter) for c in self.curves], "curves")
        if self.directions:
            self._check_directions()

    def _check_directions(self) -> None:
        """Refuse figures of directions other than those of the study."""
        known = set(self.directions)
        found = [(c.method, set(r.details) - known) for c in self.cells for r in c.runs]
        found += [
            (c.method, known - set(r.details)) for c in self.cells for r in c.runs
        ]
        found += [(m, set(own) - {*known, AVERAGE}) for m, own in self.printed.items()]
        wrong = [(method, sorted(names)) for method, names in found if names]
        if wrong:
            raise LinkspreadError(
                f"The figures of {wrong[0][0]!r} must be for the directions "
                f"{list(self.directions)}, got others in {wrong[0][1]}. Use the names "
                "of the study."
            )

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of supervision, in the order of their first cell."""
        return tuple(dict.fromkeys(cell.kind for cell in self.cells))

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods in the order of their first cell."""
        return tuple(dict.fromkeys(cell.method for cell in self.cells))

    @property
    def variants(self) -> tuple[str, ...]:
        """Our method and its variants."""
        own = f"{self.ours} ("
        return tuple(m for m in self.methods if m == self.ours or m.startswith(own))

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """Budgets kind by kind, amounts increasing, all of a kind last."""

        def place(budget: Budget) -> tuple[int, bool, int]:
            kind, amount = budget
            return self.kinds.index(kind), amount is None, amount or 0

        return tuple(sorted({cell.budget for cell in self.cells}, key=place))

    def cell(self, budget: tuple[str, int | None], method: str) -> Cell | None:
        """Return the result of a method with a budget, or None."""
        wanted = (*budget, method)
        cells = (c for c in self.cells if (*c.budget, c.method) == wanted)
        return next(cells, None)

    def best(
        self, budget: tuple[str, int | None], *, besides: Sequence[str] = ()
    ) -> Cell | None:
        """Return the cell of a budget with the highest mean, without some methods."""
        cells = [c for c in self.cells if c.budget == budget]
        cells = [c for c in cells if c.mean is not None and c.method not in besides]
        return max(cells, key=lambda cell: cell.mean or 0.0, default=None)

    def best_baseline(self, budget: tuple[str, int | None]) -> Cell | None:
        """Return the baseline of a budget with the highest mean."""
        return self.best(budget, besides=self.variants)

    def ratio(
        self, budget: tuple[str, int | None], method: str | None = None
    ) -> float | None:
        """Return our mean divided by that of the best baseline."""
        return _ratio(
            self.cell(budget, method or self.ours), self.best_baseline(budget)
        )

    def gain(
        self, budget: tuple[str, int | None], method: str | None = None
    ) -> float | None:
        """Return our mean divided by that of the search before any judgement."""
        return _ratio(
            self.cell(budget, method or self.ours), self.cell(budget, self.had)
        )


def _ratio(ours: Cell | None, other: Cell | None) -> float | None:
    """Return the quotient of two means, None where one is missing or 0."""
    if ours is None or other is None or ours.mean is None or not other.mean:
        return None
    return ours.mean / other.mean


def _refuse_repeated(names: Iterable[Any], what: str) -> None:
    """Refuse names of which one occurs twice."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise LinkspreadError(
            f"The {what} must differ, got {repeated[0]!r} twice. Rename one."
        )

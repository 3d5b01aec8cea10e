"""Results of a comparison at growing amounts of supervision.

>>> from linkspread.studies.report import BudgetCell, BudgetStudy
>>> cells = (BudgetCell("links", 100, "ours", (0.3,), 1.0, ({},)),
...          BudgetCell("links", 100, "rival", (0.2,), 1.0, ({},)))
>>> study = BudgetStudy("", "", "", "", "ours", cells, {})
>>> round(study.ratio(("links", 100)), 3)
1.5
"""

from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, NamedTuple

from linkspread.ground.errors import LinkspreadError
from linkspread.studies.report.results import refuse_repeated

# What one, several and all of each kind of supervision are called.
KINDS = {
    "labels per class": ("label per class", "labels per class", "all labels"),
    "links": ("link", "links", "all links"),
    "matched pairs": ("matched pair", "matched pairs", "all matched pairs"),
    "judged pairs": ("judged pair", "judged pairs", "all judged pairs"),
}


class Budget(NamedTuple):
    """Hold an amount of supervision."""

    kind: str
    amount: int | None


@dataclass(frozen=True)
class BudgetCell:
    """Hold what one method reached with one amount of supervision."""

    kind: str
    amount: int | None
    method: str
    scores: tuple[float, ...]
    seconds: float
    parameters: tuple[dict[str, Any], ...]
    details: tuple[dict[str, float], ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise LinkspreadError(
                f"`kind` must be one of {list(KINDS)}, got {self.kind!r}. Choose one."
            )
        if self.amount is not None and self.amount < 0:
            raise LinkspreadError(
                f"`amount` must not be negative, got {self.amount}. Use None for all."
            )
        if not self.scores:
            raise LinkspreadError(
                f"`scores` of {self.method!r} must have one value per repetition, got "
                "none. Leave out cells that were not computed."
            )

    @property
    def budget(self) -> Budget:
        """The amount of supervision."""
        return Budget(self.kind, self.amount)

    @property
    def mean(self) -> float:
        """Mean over the repetitions."""
        return fmean(self.scores)

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation, None with one repetition."""
        return stdev(self.scores) if len(self.scores) > 1 else None

    def detail(self, name: str) -> float | None:
        """Return the mean of another measure, None where it was not measured."""
        values = [own[name] for own in self.details if name in own]
        return fmean(values) if values else None


@dataclass(frozen=True)
class BudgetStudy:
    """Hold a comparison of methods at growing amounts of supervision."""

    title: str
    introduction: str
    command: str
    collection: str
    ours: str
    cells: tuple[BudgetCell, ...]
    environment: dict[str, str]
    measure: str = "mean average precision"
    had: str = ""

    def __post_init__(self) -> None:
        names = [(cell.method, cell.kind, cell.amount) for cell in self.cells]
        refuse_repeated(names, "cells")

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
        return tuple(
            method
            for method in self.methods
            if method == self.ours or method.startswith(f"{self.ours} (")
        )

    @property
    def budgets(self) -> tuple[Budget, ...]:
        """Budgets kind by kind, amounts increasing, all of a kind last."""

        def place(budget: Budget) -> tuple[int, bool, int]:
            kind, amount = budget
            return self.kinds.index(kind), amount is None, amount or 0

        return tuple(sorted({cell.budget for cell in self.cells}, key=place))

    def cell(self, budget: tuple[str, int | None], method: str) -> BudgetCell | None:
        """Return the result of a method with a budget, None where it has none."""
        cells = self._cells(budget)
        return next((cell for cell in cells if cell.method == method), None)

    def best(self, budget: tuple[str, int | None]) -> BudgetCell:
        """Return the cell with the highest mean of a budget, whoever it is."""
        return max(self._cells(budget), key=lambda cell: cell.mean)

    def best_baseline(self, budget: tuple[str, int | None]) -> BudgetCell | None:
        """Return the cell with the highest mean of a budget that is not ours."""
        cells = [c for c in self._cells(budget) if c.method not in self.variants]
        return max(cells, key=lambda cell: cell.mean, default=None)

    def gain(
        self, budget: tuple[str, int | None], method: str | None = None
    ) -> float | None:
        """Return our mean divided by that of what the user had, on the same queries."""
        ours = self.cell(budget, method or self.ours)
        had = self.cell(budget, self.had)
        return ours.mean / had.mean if ours and had and had.mean > 0 else None

    def ratio(
        self, budget: tuple[str, int | None], method: str | None = None
    ) -> float | None:
        """Return our mean divided by that of the best method of others."""
        ours = self.cell(budget, method or self.ours)
        best = self.best_baseline(budget)
        return ours.mean / best.mean if ours and best and best.mean > 0 else None

    def _cells(self, budget: tuple[str, int | None]) -> list[BudgetCell]:
        """Return the cells of a budget."""
        return [cell for cell in self.cells if cell.budget == budget]


def budget_text(budget: tuple[str, int | None]) -> str:
    """Return a budget in words, such as "1 label per class" or "all links"."""
    kind, amount = budget
    one, several, everything = KINDS[kind]
    if amount == 0:
        return f"no {several}"
    if amount is None:
        return everything
    return f"{amount:,} {one if amount == 1 else several}"

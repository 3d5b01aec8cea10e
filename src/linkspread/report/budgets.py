"""Results of a comparison at growing amounts of supervision.

>>> from linkspread.report import BudgetCell, BudgetStudy
>>> cells = (BudgetCell("links", 100, "ours", (0.3,), 1.0, ({},)),
...          BudgetCell("links", 100, "rival", (0.2,), 1.0, ({},)))
>>> study = BudgetStudy("", "", "", "", "ours", cells, {})
>>> round(study.ratio(("links", 100)), 3)
1.5
"""

from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, NamedTuple

from linkspread.exceptions import LinkspreadError
from linkspread.report.results import refuse_repeated

__all__ = ["Budget", "BudgetCell", "BudgetStudy", "budget_text"]

# What one, several and all of each kind of supervision are called.
KINDS = {
    "labels per class": ("label per class", "labels per class", "all labels"),
    "links": ("link", "links", "all links"),
    "matched pairs": ("matched pair", "matched pairs", "all matched pairs"),
    "judged pairs": ("judged pair", "judged pairs", "all judged pairs"),
}


class Budget(NamedTuple):
    """Hold an amount of supervision.

    Parameters
    ----------
    kind : str
        "labels per class", "links", "matched pairs" or "judged pairs".
    amount : int or None
        How many; None is all there are.
    """

    kind: str
    amount: int | None


@dataclass(frozen=True)
class BudgetCell:
    """Hold what one method reached with one amount of supervision.

    Parameters
    ----------
    kind : {"labels per class", "links", "matched pairs", "judged pairs"}
        What is given to the method.
    amount : int or None
        How many; None is all there are.
    method : str
        Name of the method.
    scores : tuple of float
        What the study measures, of each repetition.
    seconds : float
        Mean time of a repetition.
    parameters : tuple of dict from str to object
        Chosen parameters, one dict per repetition; may be empty.
    details : tuple of dict from str to float, default=()
        Other measures, one dict per repetition.
    """

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
        """Return the mean of another measure, None where it was not measured.

        Parameters
        ----------
        name : str

        Returns
        -------
        mean : float or None
        """
        values = [own[name] for own in self.details if name in own]
        return fmean(values) if values else None


@dataclass(frozen=True)
class BudgetStudy:
    """Hold a comparison of methods at growing amounts of supervision.

    Parameters
    ----------
    title : str
        Heading.
    introduction : str
        A paragraph: data, protocol, what to look for.
    command : str
        Command that computes the study anew.
    collection : str
        Name of the data.
    ours : str
        The method whose ratio to the best of the others is shown, as are those of
        its variants: methods of the same name with a remark in parentheses.
    cells : tuple of BudgetCell
        Results; a method need not have one for each budget.
    environment : dict from str to str
        Machine and versions.
    measure : str, default="mean average precision"
        What the scores of the cells are.
    had : str, default=""
        The method that learns nothing: what the user had before. Its ratio to ours is
        shown where it is named.
    """

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
        """Return the result of a method with a budget, None where it has none.

        Parameters
        ----------
        budget : Budget or tuple of kind and amount
        method : str

        Returns
        -------
        cell : BudgetCell or None
        """
        cells = self._cells(budget)
        return next((cell for cell in cells if cell.method == method), None)

    def best(self, budget: tuple[str, int | None]) -> BudgetCell:
        """Return the cell with the highest mean of a budget, whoever it is.

        Parameters
        ----------
        budget : Budget or tuple of kind and amount
            One of `budgets`.

        Returns
        -------
        cell : BudgetCell
        """
        return max(self._cells(budget), key=lambda cell: cell.mean)

    def best_baseline(self, budget: tuple[str, int | None]) -> BudgetCell | None:
        """Return the cell with the highest mean of a budget that is not ours.

        Parameters
        ----------
        budget : Budget or tuple of kind and amount

        Returns
        -------
        cell : BudgetCell or None
            None where there is none.
        """
        cells = [c for c in self._cells(budget) if c.method not in self.variants]
        return max(cells, key=lambda cell: cell.mean, default=None)

    def gain(
        self, budget: tuple[str, int | None], method: str | None = None
    ) -> float | None:
        """Return our mean divided by that of what the user had, on the same queries.

        Parameters
        ----------
        budget : Budget or tuple of kind and amount
        method : str, default=None
            One of `variants`; None is `ours`.

        Returns
        -------
        ratio : float or None
            None where one of the two is missing.
        """
        ours = self.cell(budget, method or self.ours)
        had = self.cell(budget, self.had)
        return ours.mean / had.mean if ours and had and had.mean > 0 else None

    def ratio(
        self, budget: tuple[str, int | None], method: str | None = None
    ) -> float | None:
        """Return our mean divided by that of the best method of others.

        Parameters
        ----------
        budget : Budget or tuple of kind and amount
        method : str, default=None
            One of `variants`; None is `ours`.

        Returns
        -------
        ratio : float or None
            None where one of the two is missing, or no rival is above 0.
        """
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

"""Results of a reproduced table: methods, splits, and figures printed elsewhere.

>>> from linkspread.report import MethodResult, Run
>>> precision = {"image to text": 0.5, "text to image": 0.25}
>>> run = Run("standard", precision, {"fit": 1.5}, {"alpha": 0.05}, {}, {})
>>> MethodResult("k-NN", "paper", None, (run,)).standard.average
0.375
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from linkspread.exceptions import LinkspreadError
from linkspread.report.page import Search

__all__ = ["MethodResult", "ParameterCurve", "Run", "TableStudy", "refuse_repeated"]

STANDARD_SPLIT = "standard"
# Key of `MethodResult.printed` for an average that is printed itself.
PRINTED_AVERAGE = "average"
N_RECALL_LEVELS = 11


@dataclass(frozen=True)
class Run:
    """Hold what one method reached on one split.

    Parameters
    ----------
    split : str
        Name of the split; "standard" is the published one, all others are re-splits.
    precision : dict from str to float
        Mean average precision by direction, such as ``{"image to text": 0.33}``.
    seconds : dict from str to float
        Time by step, such as ``{"choose": 30.1, "fit": 1.2}``.
    parameters : dict from str to object
        Chosen parameters: plain values, lists and dicts of them.
    per_class : dict from str to dict from str to float
        Mean average precision by direction and name of the query's class; may be empty.
    curve : dict from str to list of 11 float
        Precision at the recall levels 0, 0.1, ..., 1 by direction; may be empty.
    """

    split: str
    precision: dict[str, float]
    seconds: dict[str, float]
    parameters: dict[str, Any]
    per_class: dict[str, dict[str, float]]
    curve: dict[str, list[float]]

    def __post_init__(self) -> None:
        if not self.precision:
            raise LinkspreadError(
                f"`precision` of the split {self.split!r} must name a direction, got "
                "none. Measure at least one."
            )
        for direction, levels in self.curve.items():
            if len(levels) != N_RECALL_LEVELS:
                raise LinkspreadError(
                    f"`curve` {direction!r} must have {N_RECALL_LEVELS} values, got "
                    f"{len(levels)}. Give the precision at recall 0, 0.1, ..., 1."
                )

    @property
    def average(self) -> float:
        """Mean over the directions."""
        return fmean(self.precision.values())


@dataclass(frozen=True)
class MethodResult:
    """Hold the runs of one method, beside what a paper prints for it.

    Parameters
    ----------
    method : str
        Name of the method.
    group : str
        What it belongs to, such as "the paper's graphs" or "rivals".
    printed : dict from str to float or None
        Printed mean average precision by direction, and under "average" if the average
        is printed too; None if the paper has none.
    runs : tuple of Run
        One per split; none for a method that is only printed.
    note : str, default=""
        A sentence for the reader of the table.
    """

    method: str
    group: str
    printed: dict[str, float] | None
    runs: tuple[Run, ...]
    note: str = ""

    def __post_init__(self) -> None:
        refuse_repeated([run.split for run in self.runs], f"splits of {self.method!r}")

    @property
    def standard(self) -> Run | None:
        """The run on the published split."""
        runs = (run for run in self.runs if run.split == STANDARD_SPLIT)
        return next(runs, None)

    @property
    def resplits(self) -> tuple[Run, ...]:
        """The runs on all other splits."""
        return tuple(run for run in self.runs if run.split != STANDARD_SPLIT)

    def mean(self, direction: str | None = None) -> float | None:
        """Return the mean over the re-splits, None without any.

        Parameters
        ----------
        direction : str, default=None
            Direction to look at; None is the average of all.

        Returns
        -------
        mean : float or None
        """
        scores = self._scores(direction)
        return fmean(scores) if scores else None

    def deviation(self, direction: str | None = None) -> float | None:
        """Return the sample standard deviation over the re-splits.

        Parameters
        ----------
        direction : str, default=None
            Direction to look at; None is the average of all.

        Returns
        -------
        deviation : float or None
            None with fewer than two re-splits.
        """
        scores = self._scores(direction)
        return stdev(scores) if len(scores) > 1 else None

    def _scores(self, direction: str | None) -> list[float]:
        """Return the score of each re-split."""
        if direction is None:
            return [run.average for run in self.resplits]
        return [run.precision[direction] for run in self.resplits]


@dataclass(frozen=True)
class ParameterCurve:
    """Hold the cross-validated score of a method against one parameter.

    Parameters
    ----------
    method : str
        Name of the method.
    parameter : str
        Name of the parameter.
    values : tuple
        Values tried, in order.
    scores : tuple of float
        Cross-validated mean average precision of each value.
    chosen : object
        The value of `values` that was chosen.
    """

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
class TableStudy:
    """Hold a reproduced table with all that is shown beside it.

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
    directions : tuple of str
        Directions of search, in the order of the columns.
    methods : tuple of MethodResult
        Rows of the table.
    curves : tuple of ParameterCurve
        How parameters were chosen; may be empty.
    examples : tuple of Search
        Searches to look at; may be empty.
    environment : dict from str to str
        Machine and versions.
    """

    title: str
    introduction: str
    command: str
    collection: str
    directions: tuple[str, ...]
    methods: tuple[MethodResult, ...]
    curves: tuple[ParameterCurve, ...]
    examples: tuple[Search, ...]
    environment: dict[str, str]

    def __post_init__(self) -> None:
        refuse_repeated([result.method for result in self.methods], "methods")
        refuse_repeated([(c.method, c.parameter) for c in self.curves], "curves")
        for result in self.methods:
            _check_directions(result, self.directions)


def refuse_repeated(names: Iterable[Any], what: str) -> None:
    """Refuse names of which one occurs twice."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise LinkspreadError(
            f"The {what} must differ, but {repeated[0]!r} occurs twice. Rename one."
        )


def _check_directions(result: MethodResult, directions: tuple[str, ...]) -> None:
    """Refuse figures of directions that are not those of the study."""
    got = [list(run.precision) for run in result.runs]
    wrong = [names for names in got if set(names) != set(directions)]
    extra = set(result.printed or ()) - {*directions, PRINTED_AVERAGE}
    if wrong or extra:
        raise LinkspreadError(
            f"The figures of {result.method!r} must be for the directions "
            f"{list(directions)}, got {wrong[0] if wrong else sorted(extra)}. Use the "
            "names of the study."
        )

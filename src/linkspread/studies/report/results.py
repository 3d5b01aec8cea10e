"""Results of a reproduced table: methods, splits, and figures printed elsewhere.

>>> from linkspread.studies.report import MethodResult, Run
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

from linkspread.ground.errors import LinkspreadError
from linkspread.studies.report.page import Search

STANDARD_SPLIT = "standard"
# Key of `MethodResult.printed` for an average that is printed itself.
PRINTED_AVERAGE = "average"
N_RECALL_LEVELS = 11


@dataclass(frozen=True)
class Run:
    """Hold what one method reached on one split."""

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
    """Hold the runs of one method, beside what a paper prints for it."""

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
        """Return the mean over the re-splits, None without any."""
        scores = self._scores(direction)
        return fmean(scores) if scores else None

    def deviation(self, direction: str | None = None) -> float | None:
        """Return the sample standard deviation over the re-splits."""
        scores = self._scores(direction)
        return stdev(scores) if len(scores) > 1 else None

    def _scores(self, direction: str | None) -> list[float]:
        """Return the score of each re-split."""
        if direction is None:
            return [run.average for run in self.resplits]
        return [run.precision[direction] for run in self.resplits]


@dataclass(frozen=True)
class ParameterCurve:
    """Hold the cross-validated score of a method against one parameter."""

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
    """Hold a reproduced table with all that is shown beside it."""

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

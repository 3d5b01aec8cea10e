"""Results of a study, and their JSON files: methods, amounts of supervision, splits.

>>> from linkspread.studies.report.study import Cell, Run, Study
>>> cells = (Cell("ours", "links", 100, (Run("standard", 0.3),)),
...          Cell("baseline", "links", 100, (Run("standard", 0.2),)))
>>> study = Study("", "", "", "", {}, ours="ours", cells=cells)
>>> study.cell(("links", 100), "ours").standard.score
0.3
"""

import json
import tempfile
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from linkspread.ground.errors import LinkspreadError
from linkspread.storage.files import FilePath, new_file

FORMAT = 2
# What values of other types than those of the fields raise.
DAMAGED = (ArithmeticError, LookupError, RecursionError, TypeError, ValueError)
STANDARD_SPLIT = "standard"
# Name of a printed average, beside those of the directions.
AVERAGE = "average"
# Singular, plural and "all" of each kind of supervision.
KINDS = {
    "labels per class": ("label per class", "labels per class", "all labels"),
    "links": ("link", "links", "all links"),
    "matched pairs": ("matched pair", "matched pairs", "all matched pairs"),
    "judged pairs": ("judged pair", "judged pairs", "all judged pairs"),
    "random judgements": ("random judgement", "random judgements", "all candidates"),
    "suggested judgements": (
        "suggested judgement",
        "suggested judgements",
        "all candidates",
    ),
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
    # The precision at recall 0, 0.1, ..., 1, by direction.
    curve: dict[str, list[float]] = field(default_factory=dict)

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
        splits = [run.split for run in self.runs]
        if self.kind not in KINDS or not splits or len(set(splits)) < len(splits):
            raise LinkspreadError(
                f"a cell must be of {', '.join(KINDS)} and have one run for each "
                f"split, got {self.kind!r} and {splits!r:.80}. Compute the study again."
            )

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
        keys = [(*cell.budget, cell.method) for cell in self.cells]
        ways = {frozenset(run.details) for cell in self.cells for run in cell.runs}
        is_table = not self.directions or ways <= {frozenset(self.directions)}
        if len(set(keys)) < len(keys) or not is_table:
            raise LinkspreadError(
                "a study must have one cell for each method and amount, with figures "
                f"for the directions {self.directions}, got {keys!r:.80}. Compute the "
                "study again."
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
        self, budget: tuple[str, int | None], *, besides: str | None = None
    ) -> Cell | None:
        """Return the cell of a budget with the highest mean, without one method."""
        cells = [c for c in self.cells if c.budget == budget and c.method != besides]
        cells = [c for c in cells if c.mean is not None]
        return max(cells, key=lambda cell: cell.mean or 0.0, default=None)

    def best_baseline(self, budget: tuple[str, int | None]) -> Cell | None:
        """Return the baseline of a budget with the highest mean."""
        return self.best(budget, besides=self.ours)

    def ratio(self, budget: tuple[str, int | None]) -> float | None:
        """Return our mean divided by that of the best baseline."""
        return _ratio(self.cell(budget, self.ours), self.best_baseline(budget))

    def gain(self, budget: tuple[str, int | None]) -> float | None:
        """Return our mean divided by that of the search before any judgement."""
        return _ratio(self.cell(budget, self.ours), self.cell(budget, self.had))


def _ratio(ours: Cell | None, other: Cell | None) -> float | None:
    """Return the quotient of two means, None where one is missing or 0."""
    if ours is None or other is None or ours.mean is None or not other.mean:
        return None
    return ours.mean / other.mean


def check_folder(folder: FilePath) -> Path:
    """Make a folder; refuse one that cannot be written, before long work."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise LinkspreadError(
            f"The report must go to a folder that can be written, got "
            f"{str(folder)!r}: {error.strerror}. Choose another folder."
        ) from error
    return folder


def write_page(path: FilePath, text: str) -> Path:
    """Write a text file in one step."""
    with new_file(path, overwrite=True) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return Path(path)


def write_study(path: FilePath, study: Study) -> Path:
    """Write a study as JSON."""
    return write_page(path, to_json(study) + "\n")


def read_study(path: FilePath) -> Study:
    """Read a study that `write_study` wrote."""
    try:
        return from_json(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise LinkspreadError(
            f"A study must be a file that can be read, got {str(path)!r}: "
            f"{error.strerror}. Correct the path, or compute the study first."
        ) from error
    except LinkspreadError:
        raise
    except DAMAGED as error:
        raise _malformed(str(path), error) from error


def to_json(study: Study) -> str:
    """Return a study as JSON; the fields of the data classes define the format."""
    content = {"format": FORMAT, **_encode(study)}
    try:
        return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _malformed("the study", error) from error


def from_json(text: str) -> Study:
    """Return the study of a JSON text."""
    content = json.loads(text, parse_constant=_refuse)
    if content.pop("format", None) != FORMAT:
        _refuse(f"another format than {FORMAT}")
    study: Study = _decode(Study, content)
    return study


def _encode(value: Any) -> Any:
    """Return a value for JSON, data classes without fields that have their default."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if is_dataclass(value):
        own = ((field, getattr(value, field.name)) for field in fields(value))
        return {f.name: _encode(x) for f, x in own if x != _default(f)}
    if isinstance(value, Mapping):
        return {key: _encode(own) for key, own in value.items()}
    return [_encode(x) for x in value] if isinstance(value, list | tuple) else value


def _default(field: Any) -> Any:
    """Return the default of a field, MISSING where it has none."""
    made = field.default_factory
    return field.default if made is MISSING else made()


def _decode(hint: Any, value: Any) -> Any:
    """Return a value of JSON in the type of a field, or refuse it."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if origin in (Union, types.UnionType):  # only `X | None` occurs
        return None if value is None else _decode(inner[0], value)
    expected = {float: (int, float), Sequence: list, tuple: list}.get(origin or hint)
    kinds: Any = expected or (dict if is_dataclass(hint) else origin or hint)
    if not isinstance(value, kinds) or (isinstance(value, bool) and hint is not bool):
        _refuse(f"{value!r:.80} where {hint} is needed")
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        return cast(type, hint)(**{k: _decode(hints[k], v) for k, v in value.items()})
    if origin is dict:
        return {key: _decode(inner[1], own) for key, own in value.items()}
    if isinstance(value, list):
        found = [_decode(inner[0], own) for own in value]
        return found if origin is list else tuple(found)
    return float(value) if hint is float else value


def _refuse(got: str) -> None:
    """Refuse a value that no study has."""
    raise ValueError(got)


def _malformed(name: str, error: Exception) -> LinkspreadError:
    """Return the error about a study with a value that none can have."""
    return LinkspreadError(
        f"A study must be JSON with the fields of `Study`, plain values and finite "
        f"numbers, got {name} with {error!s:.120}. Compute the study again."
    )

"""Results of a study, and their JSON files: methods, amounts of supervision, splits.

>>> from linkspread.studies.report.study import Cell, Run, Study
>>> cells = (Cell("ours", "links", 100, (Run("standard", 0.3),)),
...          Cell("baseline", "links", 100, (Run("standard", 0.2),)))
>>> study = Study("", "", "", "", {}, ours="ours", cells=cells)
>>> study.cell(("links", 100), "ours").standard.score
0.3
"""

import json
import sys
import tempfile
import types
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from linkspread.ground.errors import LinkspreadError
from linkspread.storage.files import FilePath, new_file

FORMAT = 2
WORDS = {str: "a text", bool: "true or false", int: "a whole number"}
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
            _check(
                len(levels) == N_RECALL_LEVELS,
                f"`curve` {direction!r} must have {N_RECALL_LEVELS} values",
                len(levels),
                "Give the precision at recall 0, 0.1, ..., 1.",
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
        kinds, amount = list(KINDS), self.amount
        _check(
            self.kind in KINDS, f"`kind` must be one of {kinds}", repr(self.kind), ""
        )
        rule, remedy = "`amount` must not be negative", "Use None for all."
        _check(amount is None or amount >= 0, rule, amount, remedy)
        rule = f"`runs` of {self.method!r} must be at least one"
        _check(bool(self.runs), rule, "none", "Leave out cells without any.")
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
        rule = f"{self.parameter!r} must have one score for each value"
        n_scores = len(self.scores)
        _check(len(self.values) == n_scores, rule, n_scores, "Compute them again.")
        rule = f"`chosen` of {self.parameter!r} must be one of its values"
        _check(self.chosen in self.values, rule, self.chosen, "Add it with its score.")


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
        if not self.directions:
            return
        known = set(self.directions)
        found = [(c.method, known ^ set(r.details)) for c in self.cells for r in c.runs]
        found += [(m, set(own) - {*known, AVERAGE}) for m, own in self.printed.items()]
        for method, names in found:
            rule = f"figures of {method!r} must be for the directions {sorted(known)}"
            _check(not names, rule, f"others in {sorted(names)}", "Use these names.")

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


def _check(holds: bool, rule: str, got: Any, remedy: str) -> None:
    """Refuse a value that breaks a rule."""
    if not holds:
        raise LinkspreadError(f"{rule}, got {got}. {remedy or 'Choose one.'}")


def _refuse_repeated(names: Iterable[Any], what: str) -> None:
    """Refuse names of which one occurs twice."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    got = f"{repeated[0]!r} twice" if repeated else ""
    _check(not repeated, f"{what} must differ", got, "Rename one.")


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
    text = json.dumps(to_json(study), ensure_ascii=False, indent=1)
    return write_page(path, text + "\n")


def read_study(path: FilePath) -> Study:
    """Read a study that `write_study` wrote."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise LinkspreadError(
            f"A study must be a file that can be read, got {str(path)!r}: "
            f"{error.strerror}. Correct the path, or compute the study first."
        ) from error
    except (ValueError, RecursionError) as error:
        raise LinkspreadError(
            f"A study must be a JSON file, got {str(path)!r}: {error}. "
            "Compute the study again."
        ) from error
    return from_json(content)


def to_json(study: Study) -> dict[str, Any]:
    """Return a study as plain values: dicts, lists, texts, finite numbers."""
    return {"format": FORMAT, **_encode(study, "study")}


def from_json(content: Any) -> Study:
    """Return the study that `to_json` turned into plain values."""
    content = dict(_expect(dict, content, "study", "an object"))
    version = content.pop("format", None)
    if type(version) is not int or version != FORMAT:
        raise _malformed("study.format", f"{FORMAT}", version)
    return _decode(Study, content, "study")


def _encode(value: Any, where: str) -> Any:
    """Return a value for JSON, without fields that have their default."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if is_dataclass(value):
        own = [(field, getattr(value, field.name)) for field in fields(value)]
        value = {field.name: x for field, x in own if x != _default(field)}
    if isinstance(value, Mapping):
        for key in value:  # JSON would convert others silently
            _expect(str, key, where, "an object with texts as keys")
        return {key: _encode(own, f"{where}.{key}") for key, own in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_encode(own, f"{where}[{i}]") for i, own in enumerate(value)]
    return _scalar(value, where)


def _default(field: Any) -> Any:
    """Return the default of a field, MISSING where it has none."""
    made = field.default_factory
    return field.default if made is MISSING else made()


def _decode(hint: Any, value: Any, where: str) -> Any:
    """Return a value of JSON in the type of a field, or refuse it.

    The types of the data classes define the format.
    """
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        kinds: dict[type, Any] = {dict: dict[str, Any], list: list[Any]}
        kind = kinds.get(type(value))
        return _decode(kind, value, where) if kind else _scalar(value, where)
    if origin in (Union, types.UnionType):  # only `X | None` occurs
        return None if value is None else _decode(inner[0], value, where)
    if is_dataclass(hint):
        return _decode_fields(cast(type, hint), value, where)
    if origin is dict:
        items = _expect(dict, value, where, "an object").items()
        return {key: _decode(inner[1], own, f"{where}.{key}") for key, own in items}
    if origin in (tuple, list, Sequence):
        items = enumerate(_expect(list, value, where, "a list"))
        found = [_decode(inner[0], own, f"{where}[{i}]") for i, own in items]
        return found if origin is list else tuple(found)
    if hint is float:
        if type(value) not in (int, float):
            raise _malformed(where, "a number", value)
        return float(_scalar(value, where))
    return _expect(hint, value, where, WORDS[hint])


def _decode_fields(cls: type, value: Any, where: str) -> Any:
    """Return a data class from an object; fields with a default may be missing."""
    hints = get_type_hints(cls)
    unknown = _expect(dict, value, where, "an object").keys() - hints.keys()
    needed = {field.name for field in fields(cls) if _default(field) is MISSING}
    missing = needed - value.keys()
    if unknown:
        rule = f"without other fields than {list(hints)}"
        raise _malformed(where, rule, min(unknown))
    if missing:
        raise _malformed(where, f"with the field {min(missing)!r}", list(value))
    return cls(**{k: _decode(hints[k], v, f"{where}.{k}") for k, v in value.items()})


def _scalar(value: Any, where: str) -> Any:
    """Return None, a text, a bool or a finite number; refuse other values."""
    if value is None or isinstance(value, str | bool):
        return value
    if not isinstance(value, int | float):
        raise _malformed(where, "a plain value", value)
    # Also refuses whole numbers beyond all floats.
    if not abs(value) <= sys.float_info.max:
        raise _malformed(where, "a finite number", value)
    return value


def _expect(kind: type, value: Any, where: str, rule: str) -> Any:
    """Return a value of exactly this type; refuse others."""
    if type(value) is not kind:
        raise _malformed(where, rule, value)
    return value


def _malformed(where: str, rule: str, value: Any) -> LinkspreadError:
    """Return the error about a value that no study can have."""
    return LinkspreadError(
        f"`{where}` must be {rule}, got {value!r:.80}. Compute the study again, or "
        "correct this entry."
    )

"""The tables of a study, before they are Markdown or HTML."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from statistics import fmean
from typing import Any

from linkspread.studies.report.budgets import Budget, BudgetStudy, budget_text
from linkspread.studies.report.results import (
    PRINTED_AVERAGE,
    MethodResult,
    Run,
    TableStudy,
)

EMPTY = "–"
# Beyond so many methods budgets are the columns.
MOST_COLUMNS = 12
Scores = Sequence[float | None]


@dataclass(frozen=True)
class Cell:
    """Hold one cell: a figure, whether it is the best, and a remark behind it."""

    text: str = EMPTY
    is_best: bool = False
    remark: str = ""


@dataclass(frozen=True)
class Row:
    """Hold the name of a row, the group it stands in and its cells."""

    name: str
    group: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """Hold a table; the first heading stands above the names of the rows."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]


@singledispatch
def results_table(study: Any) -> Table:
    """Return the main table of a study, the best figures marked whoever has them."""
    raise TypeError(f"`study` must be a study, got {type(study).__name__}.")


@results_table.register
def _(study: TableStudy) -> Table:
    methods = _by_group(study.methods)
    columns = [
        *(_direction_column(methods, direction) for direction in study.directions),
        _average_column(methods, study.directions),
    ]
    head = ["Method", *study.directions, "average"]
    caption = "Mean average precision on the standard split; the best in bold."
    if any(result.printed for result in methods):
        caption += " In parentheses: as printed in the paper."
    if any(result.resplits for result in methods):
        columns.append(_resplit_column(methods))
        head.append("average, re-splits")
        caption += " Re-splits: mean ± standard deviation (number)."
    columns.append([_seconds_cell(result.standard) for result in methods])
    cells = zip(*columns, strict=True)
    rows = [Row(r.method, r.group, row) for r, row in zip(methods, cells, strict=True)]
    return Table(caption, (*head, "seconds"), tuple(rows))


@results_table.register
def _(study: BudgetStudy) -> Table:
    caption = (
        f"{study.measure.capitalize()}, mean ± standard deviation (repetitions); the "
        f"best in bold. Ratio: {study.ours} divided by the best of the others."
    )
    head = ("Given", *study.methods, *_ratio_heads(study.variants))
    rows = tuple(_budget_row(study, b) for b in study.budgets)
    if study.had:
        caption += f" Gain: divided by what the user had, {study.had}."
        head += tuple(f"gain of {name}" for name in study.variants)
    table = Table(caption, head, rows)
    return _turned(table) if len(study.methods) > MOST_COLUMNS else table


def details_table(study: BudgetStudy) -> Table:
    """Return every measure of ours, of the best baseline and of what there was."""
    names = list(
        dict.fromkeys(n for c in study.cells for own in c.details for n in own)
    )
    rows = []
    for budget in study.budgets:
        best = study.best_baseline(budget)
        methods = [study.had, best.method if best else "", *study.variants]
        found = [study.cell(budget, m) for m in dict.fromkeys(methods)]
        for cell in filter(None, found):
            values = [cell.detail(name) for name in names]
            cells = (Cell() if v is None else Cell(f"{v:.3f}") for v in values)
            rows.append(Row(cell.method, budget_text(budget), tuple(cells)))
    caption = "All measures: what the user had, the best baseline, ours."
    return Table(caption, ("Method", *names), tuple(rows) if names else ())


def _turned(table: Table) -> Table:
    """Return a table with its rows as columns."""
    columns = zip(*(row.cells for row in table.rows), strict=True)
    head = (table.head[0], *(row.name for row in table.rows))
    rows = zip(table.head[1:], columns, strict=True)
    return Table(table.caption, head, tuple(Row(n, "", tuple(c)) for n, c in rows))


def seconds_table(study: BudgetStudy) -> Table:
    """Return the mean time of a repetition, by budget and method."""
    rows = []
    for budget in study.budgets:
        found = [study.cell(budget, method) for method in study.methods]
        cells = (Cell(_seconds(c.seconds)) if c else Cell() for c in found)
        rows.append(Row(budget_text(budget), "", tuple(cells)))
    return Table("Seconds per repetition.", ("Given", *study.methods), tuple(rows))


@singledispatch
def parameter_list(study: Any) -> list[tuple[str, str]]:
    """Return what was chosen for each row of a study, as (name, text)."""
    raise TypeError(f"`study` must be a study, got {type(study).__name__}.")


@parameter_list.register
def _(study: TableStudy) -> list[tuple[str, str]]:
    methods = _by_group(study.methods)
    chosen = [(result.method, _choice_text(result)) for result in methods]
    return [(method, text) for method, text in chosen if text]


@parameter_list.register
def _(study: BudgetStudy) -> list[tuple[str, str]]:
    cells = [study.cell(b, method) for method in study.methods for b in study.budgets]
    return [
        (f"{cell.method}, {budget_text(cell.budget)}", parameters_text(cell.parameters))
        for cell in cells
        if cell is not None and any(cell.parameters)
    ]


def parameters_text(choices: Sequence[dict[str, Any]]) -> str:
    """Return parameters in words, with how often each value was chosen."""
    names = dict.fromkeys(name for choice in choices for name in choice)
    texts = []
    for name in names:
        chosen = Counter(_value_text(c[name]) for c in choices if name in c)
        counted = [f"{value} ({n}×)" for value, n in chosen.most_common()]
        is_unanimous = chosen.most_common(1)[0][1] == len(choices)
        texts.append(f"{name} {' or '.join(chosen if is_unanimous else counted)}")
    return ", ".join(texts)


def _by_group(methods: Iterable[MethodResult]) -> list[MethodResult]:
    """Return methods with those of one group together, groups in their order."""
    methods = list(methods)
    groups = list(dict.fromkeys(result.group for result in methods))
    return sorted(methods, key=lambda result: groups.index(result.group))


def _direction_column(methods: Sequence[MethodResult], direction: str) -> list[Cell]:
    """Return the figures of one direction beside the printed ones."""
    scores = [_score(result.standard, direction) for result in methods]
    printed = [_printed((r.printed or {}).get(direction)) for r in methods]
    return _score_column(scores, printed)


def _score(run: Run | None, direction: str | None = None) -> float | None:
    """Return what a run reached in one direction or on average, None without it."""
    if run is None:
        return None
    return run.average if direction is None else run.precision[direction]


def _average_column(
    methods: Sequence[MethodResult], directions: Sequence[str]
) -> list[Cell]:
    """Return the averages of the directions beside the printed ones."""
    scores = [_score(result.standard) for result in methods]
    printed = [_printed_average(result.printed or {}, directions) for result in methods]
    return _score_column(scores, [_printed(value) for value in printed])


def _printed_average(
    printed: dict[str, float], directions: Sequence[str]
) -> float | None:
    """Return the printed average, or that of the directions if all are printed."""
    if PRINTED_AVERAGE in printed:
        return printed[PRINTED_AVERAGE]
    is_complete = all(direction in printed for direction in directions)
    return fmean(printed.values()) if is_complete else None


def _resplit_column(methods: Sequence[MethodResult]) -> list[Cell]:
    """Return mean, deviation and number of the re-splits of each method."""
    means = [result.mean() for result in methods]
    remarks = [_spread(r.deviation(), len(r.resplits)) for r in methods]
    return _score_column(means, remarks)


def _budget_row(study: BudgetStudy, budget: Budget) -> Row:
    """Return the cells of one budget and the ratios of ours to the best rival."""
    found = [study.cell(budget, method) for method in study.methods]
    means = [c.mean if c else None for c in found]
    remarks = [_spread(c.deviation, len(c.scores)) if c else "" for c in found]
    cells = _score_column(means, remarks)
    ratios = [study.ratio(budget, method) for method in study.variants]
    if study.had:
        ratios += [study.gain(budget, method) for method in study.variants]
    last = [Cell() if ratio is None else Cell(f"{ratio:.2f}") for ratio in ratios]
    return Row(budget_text(budget), "", (*cells, *last))


def _ratio_heads(variants: Sequence[str]) -> list[str]:
    """Return the heads of the ratios of our method and its variants."""
    if len(variants) < 2:
        return ["ratio to best rival"] * len(variants)
    return [f"ratio of {name} to best rival" for name in variants]


def _score_column(scores: Scores, remarks: Sequence[str]) -> list[Cell]:
    """Return figures; those that look the same as the best are marked too."""
    shown = ["" if score is None else f"{score:.3f}" for score in scores]
    best = max(shown, default="", key=lambda text: float(text or "-inf"))
    return [
        Cell(text or EMPTY, bool(text) and text == best, remark)
        for text, remark in zip(shown, remarks, strict=True)
    ]


def _spread(deviation: float | None, number: int) -> str:
    """Return the deviation, where there is one, and the number of values."""
    text = "" if deviation is None else f"± {deviation:.3f} "
    return f"{text}({number})" if number else ""


def _printed(value: float | None) -> str:
    """Return a printed figure as a remark."""
    return "" if value is None else f"({value:.3f})"


def _seconds_cell(run: Run | None) -> Cell:
    """Return the time of all steps of a run."""
    return Cell(_seconds(sum(run.seconds.values()))) if run and run.seconds else Cell()


def _seconds(seconds: float) -> str:
    """Return a time with as many digits as say something."""
    if seconds < 1:
        return f"{seconds:.2g}"
    return f"{seconds:.1f}" if seconds < 10 else f"{seconds:,.0f}"


def _choice_text(result: MethodResult) -> str:
    """Return the parameters, the time of each step and the note of a method."""
    run, parts = result.standard, []
    if run is not None:
        steps = [f"{step} {_seconds(time)} s" for step, time in run.seconds.items()]
        parts += [parameters_text([run.parameters]), ", ".join(steps)]
    if any(other.parameters for other in result.resplits):
        chosen = parameters_text([other.parameters for other in result.resplits])
        parts.append(f"re-splits: {chosen}")
    return "; ".join(part for part in (*parts, result.note) if part)


def _value_text(value: Any) -> str:
    """Return the value of a parameter as a person would write it."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        return "/".join(f"{k} {_value_text(v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return "/".join(map(_value_text, value))
    return str(value)

"""The tables of a study, as data and as Markdown."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from linkspread.studies.report.study import AVERAGE, Cell, Run, Study

EMPTY = "–"
# With more methods than this, budgets are the columns.
MOST_COLUMNS = 12
# Markdown's special characters; an underscore within a word is none.
SIGNS = re.compile(r"[\\|*`<>\[\]~]|(?<!\w)_|_(?!\w)")


@dataclass(frozen=True)
class Figure:
    """One figure of a table, whether it is the best, and a remark."""

    text: str = EMPTY
    is_best: bool = False
    remark: str = ""


@dataclass(frozen=True)
class Row:
    """Name, group and figures of a row."""

    name: str
    group: str
    cells: tuple[Figure, ...]


@dataclass(frozen=True)
class Table:
    """A table; the first heading is that of the names of the rows."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]


def results_table(study: Study) -> Table:
    """Return the main table of a study, with the best figures marked."""
    return _methods_table(study) if study.directions else _budgets_table(study)


def _methods_table(study: Study) -> Table:
    """Return a row per method and a column per direction."""
    cells = _by_group(study)
    own = [cell.standard for cell in cells]
    printed = [study.printed.get(cell.method, {}) for cell in cells]
    columns = []
    for way in study.directions:
        scores = [run.details[way] if run else None for run in own]
        columns.append(_score_column(scores, [_printed(p.get(way)) for p in printed]))
    averages = [_printed(_printed_average(p, study.directions)) for p in printed]
    columns.append(_score_column([run.score if run else None for run in own], averages))
    head = ["Method", *study.directions, "average"]
    caption = "Mean average precision on the standard split; the best in bold."
    if any(printed):
        caption += " In parentheses: as printed in the paper."
    if any(cell.resplits for cell in cells):
        columns.append(_score_column([c.mean for c in cells], [*map(_spread, cells)]))
        head.append("average, re-splits")
        caption += " Re-splits: mean ± standard deviation (number)."
    columns.append([_seconds_figure(run.total_seconds if run else 0) for run in own])
    rows = zip(cells, zip(*columns, strict=True), strict=True)
    return Table(
        caption,
        (*head, "seconds"),
        tuple(Row(c.method, study.groups.get(c.method, ""), row) for c, row in rows),
    )


def _budgets_table(study: Study) -> Table:
    """Return a row per budget and a column per method, or the other way round."""
    # The last columns compare ours, where it was measured.
    quotients = {"ratio to best baseline": study.ratio}
    caption = (
        f"{study.measure.capitalize()}, mean ± standard deviation (repetitions); the "
        f"best in bold. Ratio: {study.ours} divided by the best of the others."
    )
    if study.had:
        caption += f" Gain: divided by what the user had, {study.had}."
        quotients[f"gain of {study.ours}"] = study.gain
    if study.ours not in study.methods:
        quotients = {}
    head = ["Given", *study.methods, *quotients]
    rows = []
    for budget in study.budgets:
        found = [study.cell(budget, method) for method in study.methods]
        means = [cell.mean if cell else None for cell in found]
        figures = _score_column(means, [_spread(c) if c else "" for c in found])
        last = [quotient(budget) for quotient in quotients.values()]
        figures += [Figure() if x is None else Figure(f"{x:.2f}") for x in last]
        rows.append(Row(budget.text, "", tuple(figures)))
    table = Table(caption, tuple(head), tuple(rows))
    if len(study.methods) <= MOST_COLUMNS:
        return table
    # The rows as columns.
    columns = zip(*(row.cells for row in rows), strict=True)
    turned = zip(table.head[1:], columns, strict=True)
    return Table(
        table.caption,
        (table.head[0], *(row.name for row in rows)),
        tuple(Row(name, "", tuple(cells)) for name, cells in turned),
    )


def details_table(study: Study) -> Table:
    """Return every measure of ours, the best baseline and the search before."""
    runs = [run for cell in study.cells for run in cell.runs]
    names = list(dict.fromkeys(name for run in runs for name in run.details))
    rows = []
    for budget in study.budgets:
        best = study.best_baseline(budget)
        methods = [study.had, best.method if best else "", study.ours]
        found = [study.cell(budget, m) for m in dict.fromkeys(methods)]
        for cell in filter(None, found):
            values = [cell.detail(name) for name in names]
            figures = (Figure() if v is None else Figure(f"{v:.3f}") for v in values)
            rows.append(Row(cell.method, budget.text, tuple(figures)))
    caption = "All measures: what the user had, the best baseline, ours."
    # The details of a table are its directions, which its main table shows.
    is_shown = names and not study.directions
    return Table(caption, ("Method", *names), tuple(rows) if is_shown else ())


def seconds_table(study: Study) -> Table:
    """Return the mean time of a repetition, by budget and method."""
    rows = []
    for budget in study.budgets:
        found = [study.cell(budget, method) for method in study.methods]
        means = [fmean(r.total_seconds for r in c.runs) if c else 0.0 for c in found]
        rows.append(Row(budget.text, "", tuple(map(_seconds_figure, means))))
    return Table("Seconds per repetition.", ("Given", *study.methods), tuple(rows))


def parameter_list(study: Study) -> list[tuple[str, str]]:
    """Return the chosen parameters of each row of a study, as (name, text)."""
    if study.directions:
        chosen = [(cell.method, _choice_text(cell)) for cell in _by_group(study)]
        return [(method, text) for method, text in chosen if text]
    cells = [study.cell(b, method) for method in study.methods for b in study.budgets]
    return [
        (f"{cell.method}, {cell.budget.text}", parameters_text(cell.runs))
        for cell in cells
        if cell is not None and any(run.parameters for run in cell.runs)
    ]


def parameters_text(runs: Sequence[Run]) -> str:
    """Return parameters in words, with how often each value was chosen."""
    names = dict.fromkeys(name for run in runs for name in run.parameters)
    texts = []
    for name in names:
        values = [run.parameters[name] for run in runs if name in run.parameters]
        chosen = Counter(map(_value_text, values))
        counted = [f"{value} ({n}×)" for value, n in chosen.most_common()]
        is_unanimous = chosen.most_common(1)[0][1] == len(runs)
        texts.append(f"{name} {' or '.join(chosen if is_unanimous else counted)}")
    return ", ".join(texts)


def results_markdown(study: Study) -> str:
    """Return the main table of a study with its legend."""
    table = results_table(study)
    return f"{markdown_table(table)}\n\n{_escape(table.caption)}"


def details_markdown(study: Study) -> str:
    """Return every measure of a study of budgets, where it has several."""
    table = details_table(study)
    return f"{markdown_table(table)}\n\n{table.caption}" if table.rows else ""


def parameters_markdown(study: Study) -> str:
    """Return the list of chosen parameters of a study."""
    chosen = parameter_list(study)
    return "\n".join(f"- {_escape(name)}: {_escape(text)}" for name, text in chosen)


def markdown_table(table: Table) -> str:
    """Return a table as Markdown; several groups get headings."""
    head = [_escape(text) for text in table.head]
    # Names to the left, figures to the right.
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    are_shown = len({row.group for row in table.rows}) > 1
    group = None
    for row in table.rows:
        if are_shown and row.group != group:
            lines.append([f"*{_escape(row.group)}*", *[""] * (len(head) - 1)])
        group = row.group
        texts = [f"**{c.text}**" if c.is_best else c.text for c in row.cells]
        cells = zip(texts, row.cells, strict=True)
        shown = [f"{text} {cell.remark}".rstrip() for text, cell in cells]
        lines.append([_escape(row.name), *shown])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _by_group(study: Study) -> list[Cell]:
    """Return the cells sorted by group, groups in their order."""
    own = [study.groups.get(cell.method, "") for cell in study.cells]
    order = list(dict.fromkeys(own))
    return sorted(
        study.cells, key=lambda cell: order.index(study.groups.get(cell.method, ""))
    )


def _score_column(
    scores: Sequence[float | None], remarks: Sequence[str]
) -> list[Figure]:
    """Return figures; all that are printed like the best are marked."""
    shown = ["" if score is None else f"{score:.3f}" for score in scores]
    best = max(shown, default="", key=lambda text: float(text or "-inf"))
    return [
        Figure(text or EMPTY, bool(text) and text == best, remark)
        for text, remark in zip(shown, remarks, strict=True)
    ]


def _spread(cell: Cell) -> str:
    """Return the deviation of a cell, if any, and the number of values."""
    text = "" if cell.deviation is None else f"± {cell.deviation:.3f} "
    return f"{text}({len(cell.resplits)})" if cell.resplits else ""


def _printed(value: float | None) -> str:
    """Return a printed figure as a remark."""
    return "" if value is None else f"({value:.3f})"


def _printed_average(
    printed: dict[str, float], directions: Sequence[str]
) -> float | None:
    """Return the printed average, or that of the directions if all are printed."""
    if AVERAGE in printed:
        return printed[AVERAGE]
    is_complete = all(direction in printed for direction in directions)
    return fmean(printed.values()) if is_complete else None


def _seconds_figure(seconds: float) -> Figure:
    """Return a time as a figure, empty if not measured."""
    return Figure(_seconds(seconds)) if seconds else Figure()


def _seconds(seconds: float) -> str:
    """Return a time with a useful number of digits."""
    if seconds < 1:
        return f"{seconds:.2g}"
    return f"{seconds:.1f}" if seconds < 10 else f"{seconds:,.0f}"


def _choice_text(cell: Cell) -> str:
    """Return the parameters and the time of each step of a method."""
    run, parts = cell.standard, []
    if run is not None:
        steps = [f"{step} {_seconds(time)} s" for step, time in run.seconds.items()]
        parts += [parameters_text([run]), ", ".join(steps)]
    if any(other.parameters for other in cell.resplits):
        parts.append(f"re-splits: {parameters_text(cell.resplits)}")
    return "; ".join(part for part in parts if part)


def _value_text(value: Any) -> str:
    """Return the value of a parameter in words."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        return "/".join(f"{k} {_value_text(v)}" for k, v in value.items())
    if isinstance(value, list | tuple):
        return "/".join(map(_value_text, value))
    return str(value)


def _escape(text: str) -> str:
    """Return a text on one line with Markdown escaped."""
    return SIGNS.sub(r"\\\g<0>", " ".join(text.split()))

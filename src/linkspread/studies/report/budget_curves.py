"""The figure of a comparison at growing amounts of supervision."""

import math
from functools import partial
from statistics import fmean
from typing import Any

from linkspread.studies.report.budgets import BudgetCell, BudgetStudy, budget_text
from linkspread.studies.report.drawing import draw, label, line_looks

# Where "all" stands: this many times the largest amount, on an axis in powers. 0 stands
# as far to the left of the smallest.
STEP_TO_ALL = 3
# Of more methods than this only ours, what there was and the best are drawn.
MOST_LINES = 11


def budget_figures(study: BudgetStudy) -> dict[str, str]:
    """Draw the measure against the amount of supervision, a line per method."""
    best_known = (study.variants or (study.ours,))[-1]
    drawn = _drawn_methods(study)
    looks = line_looks(drawn, ours=best_known)
    figures = {}
    for kind in study.kinds:
        lines = _budget_lines(study, kind, drawn)
        figures[kind] = draw(
            partial(
                _paint_budgets,
                kind=kind,
                measure=study.measure,
                lines=lines,
                looks=looks,
            ),
            title=f"{study.measure.capitalize()} against {kind}",
            description=_budget_description(study, kind),
            size=(4.1, 3.1),
            n_legend=len(lines),
        )
    return figures


def _paint_budgets(
    axes: Any, *, kind: str, measure: str, lines: dict, looks: dict
) -> None:
    """Draw mean and deviation of each method; all there are stand at the right."""
    amounts = sorted({c.amount for line in lines.values() for c in line if c.amount})
    right = amounts[-1] * STEP_TO_ALL if amounts else 1
    left = amounts[0] / STEP_TO_ALL if amounts else 1
    places = {0: left, None: right}
    for method, line in lines.items():
        axes.errorbar(
            [places.get(cell.amount, cell.amount) for cell in line],
            [cell.mean for cell in line],
            [cell.deviation or math.nan for cell in line],
            label=label(method),
            capsize=2.5,
            elinewidth=1,
            **looks[method],
        )
    axes.set_xscale("log")
    ticks = {amount: f"{amount:,}" for amount in amounts}
    if any(cell.amount == 0 for line in lines.values() for cell in line):
        ticks[left] = "0"
    if any(cell.amount is None for line in lines.values() for cell in line):
        ticks[right] = "all"
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.minorticks_off()
    axes.set(xlabel=kind, ylabel=measure, ylim=(0, None))


def _drawn_methods(study: BudgetStudy) -> list[str]:
    """Return the methods to draw, in the order of the study."""
    if len(study.methods) <= MOST_LINES:
        return list(study.methods)
    always = [m for m in study.methods if m == study.had or m in study.variants]
    means = {
        m: fmean(cell.mean for cell in study.cells if cell.method == m)
        for m in study.methods
    }
    others = sorted(set(study.methods) - set(always), key=lambda m: -means[m])
    kept = {*always, *others[: MOST_LINES - len(always)]}
    return [m for m in study.methods if m in kept]


def _budget_lines(
    study: BudgetStudy, kind: str, drawn: list[str]
) -> dict[str, list[BudgetCell]]:
    """Return the cells of each method that has any of a kind, amounts increasing."""
    budgets = [budget for budget in study.budgets if budget.kind == kind]
    found = {m: [study.cell(b, m) for b in budgets] for m in drawn}
    lines = {m: [cell for cell in cells if cell] for m, cells in found.items()}
    return {method: cells for method, cells in lines.items() if cells}


def _budget_description(study: BudgetStudy, kind: str) -> str:
    """Return the best method of each budget in words."""
    budgets = [budget for budget in study.budgets if budget.kind == kind]
    best = [(budget_text(budget), study.best(budget)) for budget in budgets]
    texts = [f"{text}: {cell.method} {cell.mean:.3f}" for text, cell in best]
    return f"The best with {'; '.join(texts)}."

"""Small studies and tables to draw and to write."""

from linkspread.studies.report import BudgetCell, BudgetStudy, Run, TableStudy


def make_cell(kind, amount, method, *scores, **changes):
    """Return a cell with as little beside its scores as possible."""
    parts = {"seconds": 1.0, "parameters": ()} | changes
    return BudgetCell(kind, amount, method, scores, **parts)


def make_budgets(*cells, ours="ours", **changes):
    """Return a study of cells with as little beside them as possible."""
    parts = dict.fromkeys(("title", "introduction", "command", "collection"), "")
    parts |= {"environment": {}} | changes
    return BudgetStudy(ours=ours, cells=cells, **parts)


DIRECTIONS = ("there", "back")


def make_run(split="standard", there=0.4, back=0.2, **changes):
    """Return a run with as little beside its figures as possible."""
    parts = {"seconds": {}, "parameters": {}, "per_class": {}, "curve": {}} | changes
    return Run(split, {"there": there, "back": back}, **parts)


def make_study(*methods, **changes):
    """Return a study of methods with as little beside them as possible."""
    parts = {
        "title": "Pets",
        "introduction": "",
        "command": "",
        "collection": "pets",
        "directions": DIRECTIONS,
        "curves": (),
        "examples": (),
        "environment": {},
    }
    return TableStudy(methods=methods, **(parts | changes))

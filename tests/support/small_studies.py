"""Small studies and tables to draw and to write."""

from linkspread.studies.report.study import Cell, Run, Study

DIRECTIONS = ("there", "back")


def make_cell(kind, amount, method, *scores, parameters=(), seconds=1.0):
    """Return a cell with as little beside its scores as possible."""
    chosen = [*parameters, *[{}] * (len(scores) - len(parameters))]
    runs = tuple(
        Run(f"re-split {k}", score, seconds={"total": seconds}, parameters=own)
        for k, (score, own) in enumerate(zip(scores, chosen, strict=True))
    )
    return Cell(method, kind, amount, runs)


def make_budgets(*cells, ours="ours", **changes):
    """Return a study of cells with as little beside them as possible."""
    parts = dict.fromkeys(("title", "introduction", "command", "collection"), "")
    parts |= {"environment": {}} | changes
    return Study(ours=ours, cells=cells, **parts)


def make_run(split="standard", there=0.4, back=0.2, **changes):
    """Return a run with as little beside its figures as possible."""
    details = {"there": there, "back": back}
    return Run(split, (there + back) / 2, details, **changes)


def make_row(method, *runs):
    """Return the runs of a method in a table."""
    return Cell(method, "labels per class", None, runs)


def make_study(*rows, **changes):
    """Return a table of rows with as little beside them as possible."""
    parts = {"title": "Pets", "introduction": "", "command": "", "collection": "pets"}
    parts |= {"directions": DIRECTIONS, "environment": {}}
    return Study(cells=rows, **(parts | changes))

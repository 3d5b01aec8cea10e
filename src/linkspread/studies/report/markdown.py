r"""Studies as Markdown, and parts of a page that a command keeps up to date.

>>> from linkspread.studies.report import replace_between
>>> page = "before\n<!-- study: by a command -->\nold\n<!-- end of study -->"
>>> print(replace_between(page, "study", "new"))
before
<!-- study: by a command -->
<BLANKLINE>
new
<BLANKLINE>
<!-- end of study -->
"""

import re

from linkspread.ground.errors import LinkspreadError
from linkspread.studies.report.budgets import BudgetStudy
from linkspread.studies.report.results import TableStudy
from linkspread.studies.report.tables import (
    Cell,
    Row,
    Table,
    details_table,
    parameter_list,
    results_table,
)

# An underscore within a word is only an underscore.
SIGNS = re.compile(r"[\\|*`<>\[\]~]|(?<!\w)_|_(?!\w)")


def results_markdown(study: TableStudy | BudgetStudy) -> str:
    """Return the main table of a study with its legend.

    The rows of a `TableStudy` are methods, those of a `BudgetStudy` are budgets. The
    best figure of each column, or of each budget, is bold whoever has it.
    """
    table = results_table(study)
    return f"{markdown_table(table)}\n\n{_escape(table.caption)}"


def details_markdown(study: TableStudy | BudgetStudy) -> str:
    """Return every measure of a study of budgets, where it has several."""
    if not isinstance(study, BudgetStudy):
        return ""
    table = details_table(study)
    return f"{markdown_table(table)}\n\n{table.caption}" if table.rows else ""


def parameters_markdown(study: TableStudy | BudgetStudy) -> str:
    """Return the list of chosen parameters of a study."""
    chosen = parameter_list(study)
    return "\n".join(f"- {_escape(name)}: {_escape(text)}" for name, text in chosen)


def replace_between(text: str, name: str, content: str) -> str:
    """Replace what stands between the two marks of a part of a page.

    The marks are ``<!-- NAME -->`` or ``<!-- NAME: anything -->``, and
    ``<!-- end of NAME -->``.
    """
    start = rf"<!-- {re.escape(name)}(?:: [^\n]*?)? -->"
    parts = re.compile(rf"({start}).*?(<!-- end of {re.escape(name)} -->)", re.DOTALL)
    n_found = len(parts.findall(text))
    if n_found != 1:
        raise LinkspreadError(
            f"The page must have one part named {name!r}, got {n_found}. Mark it with "
            f"`<!-- {name} -->` and `<!-- end of {name} -->`."
        )
    # A function, because backslashes in a replacement text would be read as groups.
    return parts.sub(lambda found: f"{found[1]}\n\n{content}\n\n{found[2]}", text)


def markdown_table(table: Table) -> str:
    """Return a table as Markdown; groups have a line of their own if there are two."""
    head = [_escape(text) for text in table.head]
    # Names to the left, figures to the right.
    lines = [head, ["---", *["---:"] * (len(head) - 1)]]
    are_shown = len({row.group for row in table.rows}) > 1
    group = None
    for row in table.rows:
        if are_shown and row.group != group:
            lines.append([f"*{_escape(row.group)}*", *[""] * (len(head) - 1)])
        group = row.group
        lines.append(_line(row))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _line(row: Row) -> list[str]:
    """Return the name of a row and its cells."""
    return [_escape(row.name), *map(_cell, row.cells)]


def _cell(cell: Cell) -> str:
    """Return a cell, the best in bold."""
    text = f"**{cell.text}**" if cell.is_best else cell.text
    return f"{text} {cell.remark}".rstrip()


def _escape(text: str) -> str:
    """Return a text on one line in which no sign is Markdown."""
    return SIGNS.sub(r"\\\g<0>", " ".join(text.split()))

"""One self-contained page about a study: tables, figures, searches to look at.

The page needs no script and nothing from elsewhere. Every text is escaped; figures
are SVG within the page.
"""

from functools import singledispatch
from html import escape
from typing import Any

from linkspread.studies.report.budget_curves import budget_figures
from linkspread.studies.report.budgets import BudgetStudy
from linkspread.studies.report.figures import (
    class_figures,
    parameter_figures,
    recall_figures,
)
from linkspread.studies.report.page import document_html, search_html
from linkspread.studies.report.results import TableStudy
from linkspread.studies.report.style import STUDY_STYLE, WIDE_STYLE
from linkspread.studies.report.tables import (
    Cell,
    Row,
    Table,
    details_table,
    parameter_list,
    results_table,
    seconds_table,
)


def build_study_page(study: TableStudy | BudgetStudy) -> str:
    """Build the page of a study as HTML text."""
    parts = [
        _command(study.collection, study.command),
        _table(results_table(study)),
        *_parts(study),
        _environment(study.environment),
    ]
    body = "\n".join(part for part in parts if part)
    # Budgets have a column per method, tables a row.
    style = STUDY_STYLE + WIDE_STYLE * isinstance(study, BudgetStudy)
    return document_html(study.title, study.introduction, body, style=style)


@singledispatch
def _parts(study: Any) -> list[str]:
    """Return what stands below the main table of a study."""
    raise TypeError(f"`study` must be a study, got {type(study).__name__}.")


@_parts.register
def _(study: TableStudy) -> list[str]:
    return [
        _folded("Chosen parameters, time of each step", _choices(study)),
        _figures("Precision against recall", recall_figures(study)),
        _figures("Mean average precision by class", class_figures(study)),
        _figures("Choosing parameters", parameter_figures(study), size="small"),
        "<h2>Examples of searches</h2>" if study.examples else "",
        *map(search_html, study.examples),
    ]


@_parts.register
def _(study: BudgetStudy) -> list[str]:
    return [
        _figures(
            f"{study.measure.capitalize()} against supervision", budget_figures(study)
        ),
        _folded("All measures", _table(details_table(study))),
        _folded("Time", _table(seconds_table(study))),
        _folded("Chosen parameters", _choices(study)),
    ]


def _command(collection: str, command: str) -> str:
    """Return how to compute the study anew."""
    return (
        f'<p class="caption">Data: {escape(collection)}. Compute it anew:</p>\n'
        f'<pre tabindex="0"><code>{escape(command)}</code></pre>'
    )


def _table(table: Table) -> str:
    """Return a table, or nothing without rows."""
    if not table.rows:
        return ""
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in table.head)
    caption = escape(table.caption)
    return (
        f'<p class="caption">{caption}</p>\n'
        f'<div class="scroll" role="region" aria-label="{caption}" tabindex="0">\n'
        f"<table><thead><tr>{head}</tr></thead>\n{_groups(table)}\n</table></div>"
    )


def _groups(table: Table) -> str:
    """Return the rows; groups have a heading if there are several."""
    groups = dict.fromkeys(row.group for row in table.rows)
    bodies = []
    for group in groups:
        rows = [_row(row) for row in table.rows if row.group == group]
        if len(groups) > 1:
            heading = f'<th scope="rowgroup" colspan="{len(table.head)}">'
            rows.insert(0, f'<tr class="group">{heading}{escape(group)}</th></tr>')
        bodies.append("<tbody>\n" + "\n".join(rows) + "\n</tbody>")
    return "\n".join(bodies)


def _row(row: Row) -> str:
    """Return the name of a row and its cells."""
    cells = "".join(map(_cell, row.cells))
    return f'<tr><th scope="row">{escape(row.name)}</th>{cells}</tr>'


def _cell(cell: Cell) -> str:
    """Return a cell, the best in bold."""
    text = escape(cell.text)
    text = f"<strong>{text}</strong>" if cell.is_best else text
    remark = f" <span>{escape(cell.remark)}</span>" if cell.remark else ""
    return f"<td>{text}{remark}</td>"


def _choices(study: TableStudy | BudgetStudy) -> str:
    """Return what was chosen, as a list of names and texts."""
    chosen = parameter_list(study)
    items = [f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in chosen]
    return "<dl>\n" + "\n".join(items) + "\n</dl>" if items else ""


def _folded(title: str, content: str) -> str:
    """Return a part that opens on demand, or nothing without content."""
    if not content:
        return ""
    return f"<details><summary>{escape(title)}</summary>\n{content}\n</details>"


def _figures(title: str, figures: dict[str, str], *, size: str = "large") -> str:
    """Return figures with their captions side by side, or nothing without any."""
    if not figures:
        return ""
    cards = "\n".join(
        f"<figure><figcaption>{escape(caption)}</figcaption>\n{svg}</figure>"
        for caption, svg in figures.items()
    )
    return f'<h2>{escape(title)}</h2>\n<div class="figures {size}">\n{cards}\n</div>'


def _environment(facts: dict[str, str]) -> str:
    """Return machine and versions in one line, or nothing without them."""
    if not facts:
        return ""
    texts = [f"{escape(name)} {escape(value)}" for name, value in facts.items()]
    return f'<footer class="caption">{" · ".join(texts)}</footer>'

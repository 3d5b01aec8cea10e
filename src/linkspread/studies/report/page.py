"""Self-contained pages: a demonstration of searches, and a study with its figures.

A page has no scripts and no external files, so it can be mailed or opened from a
folder. Every text is escaped; pictures are data URIs, figures are SVG.
"""

import base64
import io
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from string import Template

import numpy as np

from linkspread.ground.errors import ViewError, require
from linkspread.studies.report.comparison import ComparisonRow
from linkspread.studies.report.figures import (
    budget_figures,
    class_figures,
    parameter_figures,
    recall_figures,
)
from linkspread.studies.report.study import Card, Hit, Search, Study
from linkspread.studies.report.tables import (
    Figure,
    Row,
    Table,
    details_table,
    parameter_list,
    results_table,
    seconds_table,
)

_DOCUMENT = Template("""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title</title>
<style>
$style</style>
</head>
<body>
<main class="$kind">
<h1>$title</h1>
<p class="introduction">$introduction</p>
$body
</main>
</body>
</html>
""")

_SEARCH = Template("""\
<section>
<h2>$source <span aria-label="to">→</span> $target</h2>
<div class="query">$query<p class="tally">$tally</p></div>
<ol>
$hits
</ol>
</section>""")


def build_page(
    title: str,
    introduction: str,
    rows: Sequence[ComparisonRow],
    searches: Sequence[Search],
    *,
    directions: Sequence[str],
) -> str:
    """Build the page of a demonstration: a table of methods, and searches."""
    best = max((row.average for row in rows), default=None)
    lines = []
    for row in rows:
        values = [f"{v:.3f}" for v in (row.forward, row.backward, row.average)]
        values.append("" if row.seconds is None else f"{row.seconds:.1f}")
        cells = tuple(Figure(text, row.average == best) for text in values)
        lines.append(Row(row.method, "", cells))
    caption = "Mean average precision; higher is better"
    head = ("Method", *directions, "Average", "Seconds")
    parts = [_table(Table(caption, head, tuple(lines))), *map(_search, searches)]
    return _document(title, introduction, parts)


def build_study_page(study: Study) -> str:
    """Build the page of a study."""
    parts = [
        f'<p class="caption">Data: {escape(study.collection)}. Compute again:</p>\n'
        f'<pre tabindex="0"><code>{escape(study.command)}</code></pre>',
        _table(results_table(study)),
    ]
    if study.directions:
        parts += [
            _folded("Chosen parameters, time of each step", _choices(study)),
            _figures("Precision against recall", recall_figures(study)),
            _figures("Mean average precision by class", class_figures(study)),
            _figures("Choosing parameters", parameter_figures(study), size="small"),
            "<h2>Examples of searches</h2>" if study.examples else "",
            *map(_search, study.examples),
        ]
    else:
        measure = study.measure.capitalize()
        parts += [
            _figures(f"{measure} against supervision", budget_figures(study)),
            _folded("All measures", _table(details_table(study))),
            _folded("Time", _table(seconds_table(study))),
            _folded("Chosen parameters", _choices(study)),
        ]
    facts = [f"{escape(k)} {escape(v)}" for k, v in study.environment.items()]
    if facts:
        parts.append(f'<footer class="caption">{" · ".join(facts)}</footer>')
    # Studies of budgets have a column per method, tables a row.
    kind = "study" if study.directions else "study wide"
    return _document(study.title, study.introduction, parts, kind=kind)


def ink_data_uri(image: np.ndarray) -> str:
    """Encode a drawing as a data URI that a page can show.

    The ink is black on a transparent background, so a page with a dark background can
    invert it.
    """
    if image.ndim != 2 or not (0 <= image.min() and image.max() <= 1):
        raise ViewError(
            "`image` must have two dimensions and ink between 0 and 1, got shape "
            f"{image.shape} with values from {image.min():g} to {image.max():g}. "
            "Divide grey levels by 255."
        )
    pil = require("PIL.Image", purpose="Writing pictures")
    ink = pil.fromarray(np.round(image * 255).astype(np.uint8))
    picture = pil.new("LA", ink.size)
    picture.putalpha(ink)
    file = io.BytesIO()
    picture.save(file, format="PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def picture_data_uri(path: str | os.PathLike[str], *, size: int = 160) -> str:
    """Encode a picture file, reduced in size, as a data URI."""
    pil = require("PIL.Image", purpose="Reading pictures")
    try:
        with pil.open(path) as picture:
            picture.thumbnail((size, size))
            file = io.BytesIO()
            picture.convert("RGB").save(file, format="PNG", optimize=True)
    except Exception as error:  # damaged bytes can fail anywhere in a reader
        raise ViewError(
            f"a picture must be a readable picture file, got {str(path)!r} "
            f"({type(error).__name__}). Correct the path or save it again."
        ) from error
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def _document(
    title: str, introduction: str, parts: Sequence[str], *, kind: str = ""
) -> str:
    """Return a whole document around parts in HTML."""
    return _DOCUMENT.substitute(
        title=escape(title),
        introduction=escape(introduction),
        kind=kind,
        style=Path(__file__).with_name("page.css").read_text(encoding="utf-8"),
        body="\n".join(part for part in parts if part),
    )


def _table(table: Table) -> str:
    """Return a table, or nothing without rows; several groups get headings."""
    if not table.rows:
        return ""
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in table.head)
    groups = dict.fromkeys(row.group for row in table.rows)
    bodies = []
    for group in groups:
        rows = [_row(row) for row in table.rows if row.group == group]
        if len(groups) > 1:
            heading = f'<th scope="rowgroup" colspan="{len(table.head)}">'
            rows.insert(0, f'<tr class="group">{heading}{escape(group)}</th></tr>')
        bodies.append("<tbody>\n" + "\n".join(rows) + "\n</tbody>")
    caption, body = escape(table.caption), "\n".join(bodies)
    return (
        f'<p class="caption">{caption}</p>\n'
        f'<div class="scroll" role="region" aria-label="{caption}" tabindex="0">\n'
        f"<table><thead><tr>{head}</tr></thead>\n{body}\n</table></div>"
    )


def _row(row: Row) -> str:
    """Return the name of a row and its figures, the best in bold."""
    cells = []
    for cell in row.cells:
        text = escape(cell.text)
        text = f"<strong>{text}</strong>" if cell.is_best and text else text
        remark = f" <span>{escape(cell.remark)}</span>" if cell.remark else ""
        cells.append(f"<td>{text}{remark}</td>")
    return f'<tr><th scope="row">{escape(row.name)}</th>{"".join(cells)}</tr>'


def _search(search: Search) -> str:
    """Return a query with its results."""
    n_right = sum(hit.right for hit in search.hits)
    hits = "\n".join(_hit(rank, hit) for rank, hit in enumerate(search.hits, start=1))
    return _SEARCH.substitute(
        source=escape(search.source),
        target=escape(search.target),
        query=_card(search.query),
        tally=f"{n_right} of {len(search.hits)} right",
        hits=hits,
    )


def _hit(rank: int, hit: Hit) -> str:
    """Return one result, marked by a sign, a word and a colour."""
    mark, word = ("✓", "right") if hit.right else ("✗", "wrong")
    return (
        f'<li class="{word}">{_card(hit.card)}'
        f'<p class="score"><span class="mark">{mark} {word}</span>'
        f"<span>#{rank} · {hit.score:.2g}</span></p></li>"
    )


def _card(card: Card) -> str:
    """Return the picture, the title and the caption of an item."""
    picture = ""
    if card.picture is not None:
        picture = f'<img src="{escape(card.picture)}" alt="">'
    return (
        f'<div class="item">{picture}<div><p class="title">{escape(card.title)}</p>'
        f'<p class="caption">{escape(card.caption)}</p></div></div>'
    )


def _choices(study: Study) -> str:
    """Return the chosen parameters as a list."""
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

"""One self-contained page: a table of results and searches to look at.

The page needs no script and nothing from elsewhere, so it can be mailed or opened
from a folder. Every text is escaped; pictures are data URIs.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template

from linkspread.studies.report.comparison import ComparisonRow
from linkspread.studies.report.files import replace_file
from linkspread.studies.report.style import STYLE


@dataclass(frozen=True)
class Card:
    """Describe one item for people."""

    title: str
    caption: str
    picture: str | None = None


@dataclass(frozen=True)
class Hit:
    """Hold one result of a search."""

    card: Card
    score: float
    right: bool


@dataclass(frozen=True)
class Search:
    """Hold a query and its results."""

    source: str
    target: str
    query: Card
    hits: Sequence[Hit]


def build_page(
    title: str,
    introduction: str,
    rows: Sequence[ComparisonRow],
    searches: Sequence[Search],
    *,
    directions: Sequence[str],
) -> str:
    """Build the page as HTML text."""
    parts = [_table(rows, directions), *map(search_html, searches)]
    return document_html(title, introduction, "\n".join(parts))


def document_html(title: str, introduction: str, body: str, *, style: str = "") -> str:
    """Return a whole document around a body that is HTML already."""
    return _DOCUMENT.substitute(
        title=escape(title),
        introduction=escape(introduction),
        style=STYLE + style,
        body=body,
    )


def write_page(path: str | os.PathLike[str], html: str) -> Path:
    """Write a page so that a reader sees the old one or the new one, never half."""
    return replace_file(path, html, what="page")


def _table(rows: Sequence[ComparisonRow], directions: Sequence[str]) -> str:
    """Return the table of methods, or nothing without methods."""
    if not rows:
        return ""
    headings = ("Method", *directions, "Average", "Seconds")
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in headings)
    best = max(row.average for row in rows)
    body = "\n".join(_table_row(row, is_best=row.average == best) for row in rows)
    return (
        '<div class="scroll"><table>'
        "<caption>Mean average precision; higher is better</caption>\n"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def _table_row(row: ComparisonRow, *, is_best: bool) -> str:
    """Return one method as a row of the table."""
    seconds = "" if row.seconds is None else f"{row.seconds:.1f}"
    values = [f"{v:.3f}" for v in (row.forward, row.backward, row.average)]
    cells = "".join(f"<td>{value}</td>" for value in (*values, seconds))
    mark = ' class="best"' if is_best else ""
    return f'<tr{mark}><th scope="row">{escape(row.method)}</th>{cells}</tr>'


def search_html(search: Search) -> str:
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
    """Return one result; a sign and a word go with the colour."""
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
<main>
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

"""HTML for notebooks: texts, tables, and results with thumbnails."""

import base64
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice
from typing import Any

import numpy as np

# A page of a notebook stays light: at most so many rows, queries and pictures.
MAX_ROWS, MAX_QUERIES, MAX_PICTURES = 20, 10, 60
THUMBNAIL = 96
CARD = (
    "display:inline-block;vertical-align:top;width:128px;margin:4px;padding:4px;"
    "overflow-wrap:anywhere;font-size:12px"
)


def html_text(text: str) -> str:
    """Return a text of several lines as HTML."""
    return f"<pre>{escape(text)}</pre>"


def html_table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, n_rows: int
) -> str:
    """Return the first rows of a table, and how many there are, as HTML."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(shown(cell))}</td>" for cell in row) + "</tr>"
        for row in islice(rows, MAX_ROWS)
    )
    more = f"<p>The first {MAX_ROWS} of {n_rows:,}.</p>" if n_rows > MAX_ROWS else ""
    return (
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>{more}"
    )


def html_model(model: Any) -> str:
    """Return a model's views, what is known and what was chosen, as HTML."""
    if not hasattr(model, "items_"):
        return html_text(repr(model))
    facts = model.facts_
    columns = ["view", *next(iter(facts.values()))]
    rows = [[view, *own.values()] for view, own in facts.items()]
    table = html_table(repr(model), columns, rows, n_rows=len(rows))
    said = [str(model.links_), getattr(model, "summary_", ""), *model.notes_]
    return table + "".join(f"<p>{escape(line)}</p>" for line in said if line)


def shown(cell: Any) -> str:
    """Return a cell as a text, numbers with four digits."""
    is_number = isinstance(cell, (float, np.floating))
    return f"{cell:.4g}" if is_number else str(cell)


class ShownAsText:
    """A report whose text notebooks show, in place of its fields."""

    def _repr_html_(self) -> str:
        return html_text(str(self))


@dataclass(frozen=True)
class Results:
    """Results of a search for a notebook, with pictures where there are some.

    Attributes
    ----------
    ids, scores : ndarray of shape (n_results,) or (n_queries, n_results)
        As `search` returns them.
    caption : callable, default=str
        The text of an item, from its id.
    picture : callable, default=None
        The PIL image of an item, from its id.

    Examples
    --------
    >>> from linkspread.search import Results
    >>> Results(["a", "b"], [0.9, 0.1])._repr_html_().count("<figure")
    2
    """

    ids: Any
    scores: Any
    caption: Callable[[Any], str] = str
    picture: Callable[[Any], Any] | None = None

    def _repr_html_(self) -> str:
        ids, scores = np.atleast_2d(self.ids), np.atleast_2d(self.scores)
        parts: list[str] = []
        left = MAX_PICTURES
        for row in range(min(len(ids), MAX_QUERIES)):
            results = zip(ids[row][:left], scores[row][:left], strict=True)
            cards = [self._card(item, score) for item, score in results]
            left -= len(cards)
            parts.append(f"<div>{''.join(cards)}</div>")
        if ids.size > MAX_PICTURES - left:
            parts.append(f"<p>The first {MAX_PICTURES - left} of {ids.size:,}.</p>")
        return "".join(parts)

    def _card(self, item: Any, score: Any) -> str:
        """Return a result: its picture or nothing, its text and its score."""
        text = escape(self.caption(item))
        image = ""
        if self.picture is not None:
            source = thumbnail(self.picture(item))
            image = f'<img src="{source}" alt="{text}">'
        return (
            f'<figure style="{CARD}">{image}<figcaption>{text}<br>{shown(score)}'
            "</figcaption></figure>"
        )


def thumbnail(image: Any) -> str:
    """Return a small copy of a PIL image as the address of its data."""
    small = image.convert("RGB")
    small.thumbnail((THUMBNAIL, THUMBNAIL))
    data = io.BytesIO()
    small.save(data, "JPEG")
    return f"data:image/jpeg;base64,{base64.b64encode(data.getvalue()).decode()}"

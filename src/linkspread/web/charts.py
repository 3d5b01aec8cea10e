"""Small pictures of numbers, as SVG that the style sheet colours."""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

Points = Sequence[tuple[float, float]]
WIDTH, HEIGHT = 560, 240
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 30, 40


def line_chart(
    points: Points, *, title: str, x_label: str, y_label: str, from_zero: bool = False
) -> str:
    """Return a line through points, with axes that say what they are."""
    x, y = np.array(points, dtype=float).T
    x_low, x_high = x.min(), max(x.max(), x.min() + 1)
    y_low, y_high = (0.0, 1.0) if from_zero else _ends(y, 0.02)
    across = LEFT + (x - x_low) / (x_high - x_low) * (WIDTH - LEFT - RIGHT)
    up = HEIGHT - BOTTOM - (y - y_low) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM)
    path = " ".join(f"{u:.1f},{v:.1f}" for u, v in zip(across, up, strict=True))
    last = f'<circle class="last" cx="{across[-1]:.1f}" cy="{up[-1]:.1f}" r="4"/>'
    shapes = [
        *_axis(y_low, y_high, vertical=True),
        *_axis(x_low, x_high, vertical=False),
        f'<polyline class="line" points="{path}"/>{last}',
        _text(LEFT, HEIGHT - 6, x_label),
        _text(4, 13, y_label),
    ]
    words = f"{title}: {y[0]:.3g} at {x[0]:.6g}, {y[-1]:.3g} at {x[-1]:.6g}."
    return _svg(WIDTH, HEIGHT, title, words, shapes)


def curve_chart(points: Sequence[Any]) -> str:
    """Draw how the validation score has moved, "" where it is not measured."""
    if not points:
        return ""
    return line_chart(
        [(own.n_judgements, own.score) for own in points],
        title="Mean average precision since this server was started",
        x_label="judgements",
        y_label="mean average precision",
    )


def scatter_map(
    points: np.ndarray,
    views: Sequence[str],
    titles: Sequence[str],
    urls: Sequence[str],
    *,
    shapes: dict[str, str],
    size: int = 560,
) -> str:
    """Return items as marks, one shape for each view, that lead to their searches."""
    low, high = points.min(axis=0), points.max(axis=0)
    places = 12 + (points - low) / np.maximum(high - low, 1e-12) * (size - 24)
    marks = [
        f'<a href="{escape(url)}" tabindex="-1" data-title="{escape(title)}" '
        f'class="{shapes[view]}"><title>{escape(title)}</title>'
        f"{_mark(shapes[view], *place)}</a>"
        for place, view, title, url in zip(places, views, titles, urls, strict=True)
    ]
    words = f"{len(marks):,} items; those near each other score alike."
    return _svg(size, size, "Map of the items", words, marks, role="group")


def _mark(shape: str, x: float, y: float) -> str:
    """Return a mark around a point."""
    if shape == "round":
        return f'<circle cx="{x:.0f}" cy="{y:.0f}" r="3.5"/>'
    return f'<rect x="{x - 3:.0f}" y="{y - 3:.0f}" width="6.5" height="6.5"/>'


def _axis(low: float, high: float, *, vertical: bool) -> list[str]:
    """Return lines and numbers at the ends and the middle of an axis."""
    shapes = []
    for share in (0.0, 0.5, 1.0):
        value = f"{low + share * (high - low):.3g}"
        if vertical:
            y = HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)
            line = f'x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"'
            shapes.append(f'<line class="grid" {line}/>')
            shapes.append(_text(LEFT - 6, y + 4, value, anchor="end"))
        else:
            x = LEFT + share * (WIDTH - LEFT - RIGHT)
            anchor = ("start", "middle", "end")[round(2 * share)]
            shapes.append(_text(x, HEIGHT - BOTTOM + 16, value, anchor=anchor))
    return shapes


def _ends(values: np.ndarray, least: float) -> tuple[float, float]:
    """Return the ends of an axis, which never makes much of small changes."""
    low, high = float(values.min()), float(values.max())
    room = max(least - (high - low), 0.0) / 2
    return low - room, high + room


def _text(x: float, y: float, words: str, *, anchor: str = "start") -> str:
    """Return one line of text."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'
    )


def _svg(
    width: int,
    height: int,
    title: str,
    words: str,
    shapes: Sequence[str],
    *,
    role: str = "img",
) -> str:
    """Return shapes as a picture that says what it shows."""
    label = escape(f"{title}. {words}")
    return (
        f'<svg class="chart" viewBox="0 0 {width} {height}" role="{role}" '
        f'aria-label="{label}">{"".join(shapes)}</svg>'
    )

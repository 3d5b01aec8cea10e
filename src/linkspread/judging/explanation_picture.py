"""An explanation as a picture: links between two items, and their neighbours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from textwrap import shorten, wrap
from typing import Any

from linkspread.ground.checks import check_count
from linkspread.judging.explanation import (
    Contribution,
    Explanation,
    Split,
    amount_format,
)

Names = Mapping[str, Mapping[Any, str]]
Points = list[tuple[float, float]]

INK, QUIET, PAPER, LINE = "#1c1e21", "#5f6670", "#ffffff", "#d5d8de"
# Colours of Okabe and Ito for positive and for negative amounts.
FOR, AGAINST = "#0072B2", "#D55E00"
WIDTH, TOP, ROW = 1120, 78, 58
CARD_WIDTH, CARD_HEIGHT, THUMB = 190, 46, 36
# Left edges of the four columns of cards, and the middle, for the amounts.
COLUMNS = (12, 262, 668, 918)
MIDDLE = 560
# Room for the name of a class beside an amount.
CLASS_WIDTH = 125
# Widths of the thinnest and of the thickest line.
THIN, THICK = 1.2, 13.0
PANEL_ROW, BAR_WIDTH = 32, 400
# Mean widths of capital and small letters of 12 pixels, as in wide fonts.
CAPITAL, SMALL = 8.8, 6.6
# Names of parts without judgements.
UNLINKED = {"prior": "prior", "hubs": "hubs", "chance": "chance"}
PANELS = {
    "source_neighbors": "Through neighbours of the item on the left",
    "target_neighbors": "Through neighbours of the item on the right",
}


@dataclass(frozen=True)
class _Look:
    """How items and classes are shown."""

    source: str
    target: str
    titles: Names = field(default_factory=dict)
    pictures: Names = field(default_factory=dict)
    class_names: Sequence[str] = ()

    def title(self, view: str, item: Any) -> str:
        """Return the title of an item."""
        own = "new item" if item is None else str(item)
        return _shortened(self.titles.get(view, {}).get(item, f"{view} {own}"), 60)

    def item(self, x: float, y: float, view: str, item: Any, **looks: Any) -> str:
        """Return the card of an item."""
        picture = self.pictures.get(view, {}).get(item)
        return _card(x, y, self.title(view, item), picture=picture, **looks)

    def neighbor(self, part: Contribution) -> tuple[str, str | None]:
        """Return the name and the picture of the item of a part."""
        view, item = self.target, part.target_item
        if part.source_item is not None:
            view, item = self.source, part.source_item
        name = "the item itself" if part.kind == "own" else self.title(view, item)
        return name, self.pictures.get(view, {}).get(item)

    def middle(self, part: Contribution, amount: str) -> str:
        """Return the text in the middle of a line, with its amount."""
        names = [
            str(self.class_names[c]) if self.class_names else f"class {c}"
            for c in part.classes
            if c is not None
        ]
        names += [UNLINKED[part.kind]] if part.kind in UNLINKED else []
        if not names:
            return amount
        return f"{_fitted(' '.join(dict.fromkeys(names)), CLASS_WIDTH)} {amount}"

    def headline(self, explanation: Explanation) -> str:
        """Return the two items and their score."""
        source = _shortened(self.title(self.source, explanation.source_item), 44)
        target = _shortened(self.title(self.target, explanation.target_item), 44)
        return f"Score {explanation.score:.3g}: {source} and {target}"


def explanation_picture(
    explanation: Explanation,
    *,
    n_links: int = 6,
    titles: Names | None = None,
    pictures: Names | None = None,
    class_names: Sequence[str] = (),
) -> str:
    """Draw an explanation as SVG.

    Links are lines between the two items, through the linked ones, as thick as their
    amount; blue is positive, orange negative. Below are the neighbours, if links were
    propagated over graphs.

    Parameters
    ----------
    explanation : Explanation
    n_links : int, default=6
        Number of links, and of neighbours, that are drawn; the rest is summed.
    titles, pictures : dict from view to dict from id to str, default=None
        Titles instead of ids, and addresses of pictures such as data URIs.
    class_names : sequence of str, default=()
        By class number.

    Returns
    -------
    svg : str

    Examples
    --------
    >>> import linkspread as ls
    >>> from linkspread.judging import explanation_picture
    >>> data = ls.datasets.make_views(60, n_classes=3, random_state=0)
    >>> model = ls.LinkSpreading().fit(data.views(), data.labels)
    >>> explanation_picture(model.explain(0, 1, source="text", target="image"))[:4]
    '<svg'
    """
    n_links = check_count(n_links, name="n_links", remedy="The default is 6.")
    look = _Look(
        explanation.source,
        explanation.target,
        titles or {},
        pictures or {},
        class_names,
    )
    parts, rest, n_rest = _shorten_split(explanation.links, n_links)
    # Parts of one source item are adjacent.
    first: dict[Any, int] = {}
    for place, part in enumerate(parts):
        first.setdefault(part.source_item, place)
    parts = sorted(parts, key=lambda part: first[part.source_item])
    write = amount_format([part.amount for part in parts])
    shapes = _draw_links(explanation, parts, look)
    bottom = TOP + ROW * max(len(parts), 1)
    if n_rest:
        words = f"{n_rest:,} more, {write(rest)} together"
        shapes.append(_text(MIDDLE, bottom + 2, words, color=QUIET, anchor="middle"))
    heights = [0.0]
    for x, name in zip((COLUMNS[0], COLUMNS[2]), PANELS, strict=True):
        if name in explanation.splits:
            split = explanation.splits[name]
            panel = _draw_panel(split, PANELS[name], look, n_links, x, bottom + 44)
            shapes += panel[0]
            heights.append(panel[1])
    return _svg_page(
        shapes,
        size=(WIDTH, bottom + 44 + max(heights)),
        title=look.headline(explanation),
        description=str(explanation),
    )


def _draw_links(
    explanation: Explanation, parts: Sequence[Contribution], look: _Look
) -> list[str]:
    """Draw both items, and a line for each link through the items it is of."""
    rows = [TOP + ROW * (k + 0.5) for k in range(len(parts))]
    centre = TOP + ROW * max(len(parts), 1) / 2
    left = _places([part.source_item for part in parts], rows)
    right = _places([part.target_item for part in parts], rows)
    write = amount_format([part.amount for part in parts])
    unit = max((abs(part.amount) for part in parts), default=1.0)
    lines, pills = [], []
    for part, y in zip(parts, rows, strict=True):
        path: Points = [(COLUMNS[0] + CARD_WIDTH, centre)]
        path += [*_through(COLUMNS[1], left, part.source_item, y), (MIDDLE, y)]
        path += _through(COLUMNS[2], right, part.target_item, y)
        path.append((COLUMNS[3], centre))
        width = THIN + (THICK - THIN) * abs(part.amount) / unit
        color = _tint(part.amount)
        ways = zip(path, path[1:], strict=False)
        lines += [_curve(*ends, width=width, color=color) for ends in ways]
        words = look.middle(part, write(part.amount))
        pills.append(_pill(MIDDLE, y, words, color=color))
    source, target = explanation.source_item, explanation.target_item
    cards = [look.item(COLUMNS[1], y, look.source, k) for k, y in left.items()]
    cards += [look.item(COLUMNS[2], y, look.target, k) for k, y in right.items()]
    cards.append(look.item(COLUMNS[0], centre, look.source, source, bold=True))
    cards.append(look.item(COLUMNS[3], centre, look.target, target, bold=True))
    heads = [(COLUMNS[0], look.source), (COLUMNS[3], look.target)]
    heads += [(COLUMNS[1], f"known: {look.source}")] if left else []
    heads += [(COLUMNS[2], f"known: {look.target}")] if right else []
    headline = _text(12, 30, look.headline(explanation), size=15, weight=650)
    names = [_text(x, 62, words, color=QUIET) for x, words in heads]
    return [headline, *names, *lines, *cards, *pills]


def _draw_panel(
    split: Split, title: str, look: _Look, n_shown: int, x: float, top: float
) -> tuple[list[str], float]:
    """Draw one split as bars; return the shapes and the height."""
    parts, rest, n_rest = _shorten_split(split, n_shown)
    write = amount_format([part.amount for part in parts])
    rows = [(*look.neighbor(p), p.amount, _tint(p.amount)) for p in parts]
    rows += [(f"{n_rest:,} more", None, rest, QUIET)] if n_rest else []
    unit = max((abs(amount) for _, _, amount, _ in rows), default=1.0) or 1.0
    shapes = [_text(x, top, title, weight=650)]
    for k, (name, picture, amount, color) in enumerate(rows):
        y, left, room = top + 34 + PANEL_ROW * k, x, float(BAR_WIDTH)
        if picture is not None:
            shapes.append(_image(x, y - 18, 24, picture))
            left, room = x + 32, room - 32
        words = _fitted(f"{write(amount)}  {name}", room)
        shapes.append(_text(left, y - 5, words, color=QUIET, size=11.5))
        length = max(abs(amount) / unit * room, 1.0)
        shapes.append(_rect(left, y, length, 5, rx=2, fill=color))
    return shapes, 54 + PANEL_ROW * len(rows)


def _through(x: float, places: dict[Any, float], item: Any, row: float) -> Points:
    """Return the points where a line enters and leaves a column of cards."""
    y = places.get(item, row)
    return [(x, y), (x + CARD_WIDTH, y)] if places else []


def _shorten_split(split: Split, n: int) -> tuple[Sequence[Contribution], float, int]:
    """Return the first parts, and the sum and number of the others."""
    more = split.parts[n:]
    rest = split.rest + sum(part.amount for part in more)
    return split.parts[:n], rest, split.n_rest + len(more)


def _places(items: Sequence[Any], rows: Sequence[float]) -> dict[Any, float]:
    """Return the heights of items, at the mean of their rows without overlap."""
    own: dict[Any, list[float]] = {}
    for item, y in zip(items, rows, strict=True):
        if item is not None:
            own.setdefault(item, []).append(y)
    means = {item: sum(heights) / len(heights) for item, heights in own.items()}
    places: dict[Any, float] = {}
    least = 0.0
    for item in sorted(means, key=lambda item: means[item]):
        least = max(means[item], least + CARD_HEIGHT + 6)
        places[item] = least
    return places


def _tint(amount: float) -> str:
    """Return the colour of an amount by its sign."""
    return FOR if amount >= 0 else AGAINST


def _tag(name: str, content: str = "", **attributes: Any) -> str:
    """Return an element; underscores stand for hyphens, numbers have one decimal."""
    written = [
        f'{key.replace("_", "-")}="{round(own, 1) if isinstance(own, float) else own}"'
        for key, own in attributes.items()
    ]
    return f"<{name} {' '.join(written)}>{content}</{name}>"


def _rect(x: float, y: float, width: float, height: float, **looks: Any) -> str:
    """Return a rectangle with its left upper corner at (x, y)."""
    return _tag("rect", x=x, y=y, width=width, height=height, **looks)


def _text(
    x: float,
    y: float,
    words: str,
    *,
    size: float = 12,
    color: str = INK,
    anchor: str = "start",
    weight: int = 400,
) -> str:
    """Return one line of text; y is that of its baseline."""
    looks = {"fill": color, "text_anchor": anchor, "font_weight": weight}
    return _tag("text", _escaped(words), x=x, y=y, font_size=size, **looks)


def _card(
    x: float, y: float, title: str, *, picture: str | None = None, bold: bool = False
) -> str:
    """Return an item: a frame around (x, y) on its left edge, a picture, a title."""
    frame = {"rx": 7, "fill": PAPER, "stroke": INK if bold else LINE}
    top, wide = y - CARD_HEIGHT / 2, 2 if bold else 1
    shapes = [_rect(x, top, CARD_WIDTH, CARD_HEIGHT, **frame, stroke_width=wide)]
    left = x + 9
    if picture is not None:
        shapes.append(_image(x + 6, y - THUMB / 2, THUMB, picture))
        left = x + THUMB + 12
    n_letters = _letters(title, x + CARD_WIDTH - 6 - left)
    lines = wrap(title, n_letters) or [""]
    if len(lines) > 2:
        lines = [lines[0], f"{lines[1][: n_letters - 2]} …"]
    start = y + 4 - 7.5 * (len(lines) - 1)
    shapes += [
        _text(left, start + 15 * k, line, weight=650 if bold else 400)
        for k, line in enumerate(lines)
    ]
    return "".join(shapes)


def _curve(
    start: tuple[float, float], end: tuple[float, float], *, width: float, color: str
) -> str:
    """Return a curve with horizontal ends."""
    (x, y), (u, v) = start, end
    middle = (x + u) / 2
    path = f"M{x:.1f} {y:.1f}C{middle:.1f} {y:.1f} {middle:.1f} {v:.1f} {u:.1f} {v:.1f}"
    looks = {"fill": "none", "stroke": color, "stroke_opacity": "0.55"}
    return _tag("path", d=path, stroke_width=f"{width:.2f}", **looks)


def _pill(x: float, y: float, words: str, *, color: str) -> str:
    """Return a short text on a coloured background, centred at (x, y)."""
    width = 7.0 * len(words) + 18
    return _rect(x - width / 2, y - 12, width, 24, rx=12, fill=color) + _text(
        x, y + 4, words, color=PAPER, anchor="middle", weight=600
    )


def _image(x: float, y: float, side: float, picture: str) -> str:
    """Return a square picture with its left upper corner at (x, y)."""
    return _tag("image", x=x, y=y, width=side, height=side, href=escape(picture))


def _svg_page(
    shapes: list[str], *, size: tuple[float, float], title: str, description: str
) -> str:
    """Return shapes as an SVG with a title and a description."""
    width, height = size
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        'role="img" font-family="system-ui, sans-serif">'
        f"<title>{_escaped(title)}</title><desc>{_escaped(description)}</desc>"
        f"{_rect(0, 0, width, height, fill=PAPER)}"
        f"{''.join(shapes)}</svg>\n"
    )


def _fitted(words: str, room: float) -> str:
    """Return words on one line, cut to the available room."""
    n_letters = _letters(words, room)
    return words if len(words) <= n_letters else f"{words[: n_letters - 2].rstrip()} …"


def _letters(words: str, room: float) -> int:
    """Return how many characters fit, by their mean width."""
    width = sum(CAPITAL if c.isupper() else SMALL for c in words)
    return max(int(room / max(width / max(len(words), 1), 1.0)), 4)


def _shortened(words: str, width: int) -> str:
    """Return a text on one line, cut between words if too long."""
    return shorten(_printable(words), width, placeholder=" …")


def _printable(words: str) -> str:
    """Return words without characters that are invalid in XML."""
    return "".join(c if c.isprintable() else " " for c in words)


def _escaped(words: str) -> str:
    """Return words escaped for XML."""
    return escape(_printable(words), quote=False)

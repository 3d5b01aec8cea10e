"""An explanation as a picture: links between two items, and their neighbours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from linkspread.ground.checks import check_count
from linkspread.judging.explanation import (
    Contribution,
    Explanation,
    Split,
    amount_format,
)
from linkspread.studies.report.drawing import QUIET, label
from linkspread.studies.report.picture_shapes import (
    CARD_HEIGHT,
    CARD_WIDTH,
    bar,
    card,
    curve,
    fitted,
    pill,
    svg_page,
    text,
    tint,
)

Names = Mapping[str, Mapping[Any, str]]
Points = list[tuple[float, float]]

WIDTH, TOP, ROW = 1120, 78, 58
# Left edges of the four columns of cards, and the middle, where amounts stand.
COLUMNS = (12, 262, 668, 918)
MIDDLE = 560
# Room for the name of a class there, beside its amount.
CLASS_WIDTH = 125
# Widths of the thinnest and of the thickest line.
THIN, THICK = 1.2, 13.0
PANEL_ROW, BAR_WIDTH = 32, 400
# Parts that are of no judgement.
UNLINKED = {"prior": "both alike", "hubs": "found by all", "chance": "by chance"}
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
        return label(self.titles.get(view, {}).get(item, f"{view} {own}"), 60)

    def item(self, x: float, y: float, view: str, item: Any, **looks: Any) -> str:
        """Return the card of an item."""
        picture = self.pictures.get(view, {}).get(item)
        return card(x, y, self.title(view, item), picture=picture, **looks)

    def picture(self, part: Contribution) -> str | None:
        """Return the picture of the item of a part, if it has one."""
        if part.source_item is not None:
            return self.pictures.get(self.source, {}).get(part.source_item)
        return self.pictures.get(self.target, {}).get(part.target_item)

    def name(self, part: Contribution) -> str:
        """Return what stands beside the bar of a part."""
        if part.kind == "own":
            return "the item itself"
        if part.source_item is not None:
            return self.title(self.source, part.source_item)
        return self.title(self.target, part.target_item)

    def middle(self, part: Contribution, amount: str) -> str:
        """Return what stands in the middle of a line, beside its amount."""
        names = [self.class_name(c) for c in part.classes if c is not None]
        names += [UNLINKED[part.kind]] if part.kind in UNLINKED else []
        if not names:
            return amount
        return f"{fitted(' '.join(dict.fromkeys(names)), CLASS_WIDTH)} {amount}"

    def class_name(self, c: int) -> str:
        """Return the name of a class."""
        return str(self.class_names[c]) if self.class_names else f"class {c}"


def explanation_picture(
    explanation: Explanation,
    *,
    n_links: int = 6,
    titles: Names | None = None,
    pictures: Names | None = None,
    class_names: Sequence[str] = (),
) -> str:
    """Draw what a score is made of, as SVG.

    Links are lines between the two items, through the linked ones, as thick as what
    they add; blue speaks for the score, orange against it. Below are the neighbours,
    where links were spread over graphs.
    """
    n_links = check_count(n_links, name="n_links", remedy="The default is 6.")
    look = _Look(
        explanation.source,
        explanation.target,
        titles or {},
        pictures or {},
        class_names,
    )
    parts, rest, n_rest = _shorten(explanation.links, n_links)
    write = amount_format([part.amount for part in parts])
    ordered = _group(parts)
    bottom = TOP + ROW * max(len(ordered), 1)
    shapes = _links(explanation, ordered, look)
    if n_rest:
        words = f"{n_rest:,} more, {write(rest)} together"
        shapes.append(text(MIDDLE, bottom + 2, words, color=QUIET, anchor="middle"))
    panels, height = _panels(explanation, look, n_links, bottom + 44)
    return svg_page(
        shapes + panels,
        size=(WIDTH, height),
        title=_headline(explanation, look),
        description=str(explanation),
    )


def _links(
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
        lines += _line([*path, (COLUMNS[3], centre)], part.amount, unit)
        words = look.middle(part, write(part.amount))
        pills.append(pill(MIDDLE, y, words, color=tint(part.amount)))
    cards = [look.item(COLUMNS[1], y, look.source, k) for k, y in left.items()]
    cards += [look.item(COLUMNS[2], y, look.target, k) for k, y in right.items()]
    cards += _ends(explanation, look, centre)
    headline = text(12, 30, _headline(explanation, look), size=15, weight=650)
    return [headline, *_column_heads(look, left, right), *lines, *cards, *pills]


def _line(path: Points, amount: float, unit: float) -> list[str]:
    """Draw a line through points, as thick as its amount in units of the largest."""
    width = THIN + (THICK - THIN) * abs(amount) / unit
    return [
        curve(*ends, width=width, color=tint(amount))
        for ends in zip(path, path[1:], strict=False)
    ]


def _ends(explanation: Explanation, look: _Look, y: float) -> list[str]:
    """Draw the two items that the score is of."""
    return [
        look.item(COLUMNS[0], y, look.source, explanation.source_item, bold=True),
        look.item(COLUMNS[3], y, look.target, explanation.target_item, bold=True),
    ]


def _through(x: float, places: dict[Any, float], item: Any, row: float) -> Points:
    """Return where a line enters and leaves a column of cards, if there is one."""
    y = places.get(item, row)
    return [(x, y), (x + CARD_WIDTH, y)] if places else []


def _column_heads(look: _Look, left: dict, right: dict) -> list[str]:
    """Say what stands in each column."""
    heads = [(COLUMNS[0], look.source), (COLUMNS[3], look.target)]
    heads += [(COLUMNS[1], f"known: {look.source}")] if left else []
    heads += [(COLUMNS[2], f"known: {look.target}")] if right else []
    return [text(x, 62, words, color=QUIET) for x, words in heads]


def _panels(
    explanation: Explanation, look: _Look, n_shown: int, top: float
) -> tuple[list[str], float]:
    """Draw bars for the neighbours of both items, beside each other."""
    shapes, heights = [], []
    for x, name in zip((COLUMNS[0], COLUMNS[2]), PANELS, strict=True):
        split = explanation.splits.get(name)
        if split is None:
            continue
        panel, height = _panel(split, PANELS[name], look, n_shown, x, top)
        shapes += panel
        heights.append(height)
    return shapes, top + max(heights, default=0)


def _panel(
    split: Split, title: str, look: _Look, n_shown: int, x: float, top: float
) -> tuple[list[str], float]:
    """Draw one split as bars, and tell how high it is."""
    parts, rest, n_rest = _shorten(split, n_shown)
    write = amount_format([part.amount for part in parts])
    rows = [(look.name(p), p.amount, look.picture(p)) for p in parts]
    rows += [(f"{n_rest:,} more", rest, None)] if n_rest else []
    unit = max((abs(amount) for _, amount, _ in rows), default=1.0) or 1.0
    shapes = [text(x, top, title, weight=650)]
    for k, (name, amount, picture) in enumerate(rows):
        looks: dict[str, Any] = {
            "title": f"{write(amount)}  {name}",
            "picture": picture,
        }
        looks["color"] = QUIET if k == len(parts) else tint(amount)
        y = top + 34 + PANEL_ROW * k
        shapes.append(bar(x, y, abs(amount) / unit, width=BAR_WIDTH, **looks))
    return shapes, 54 + PANEL_ROW * len(rows)


def _shorten(split: Split, n: int) -> tuple[tuple[Contribution, ...], float, int]:
    """Return the first parts, what the others add up to, and how many they are."""
    more = split.parts[n:]
    rest = split.rest + sum(part.amount for part in more)
    return split.parts[:n], rest, split.n_rest + len(more)


def _group(parts: Sequence[Contribution]) -> list[Contribution]:
    """Return the parts with those of one source item after each other."""
    first: dict[Any, int] = {}
    for place, part in enumerate(parts):
        first.setdefault(part.source_item, place)
    return sorted(parts, key=lambda part: first[part.source_item])


def _places(items: Sequence[Any], rows: Sequence[float]) -> dict[Any, float]:
    """Return the heights of items, each at the mean of its rows, none on another."""
    own: dict[Any, list[float]] = {}
    for item, y in zip(items, rows, strict=True):
        if item is not None:
            own.setdefault(item, []).append(y)
    places: dict[Any, float] = {}
    least = 0.0
    for item, heights in sorted(
        own.items(), key=lambda pair: sum(pair[1]) / len(pair[1])
    ):
        least = max(sum(heights) / len(heights), least + CARD_HEIGHT + 6)
        places[item] = least
    return places


def _headline(explanation: Explanation, look: _Look) -> str:
    """Return the two items and their score."""
    source = look.title(look.source, explanation.source_item)
    target = look.title(look.target, explanation.target_item)
    return f"Score {explanation.score:.3g}: {label(source)} and {label(target)}"

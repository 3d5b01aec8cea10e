"""Shapes of which pictures of small graphs are put together, as SVG."""

from html import escape
from textwrap import wrap

from linkspread.studies.report.drawing import INK, QUIET

# Colours of Okabe and Ito: what speaks for a score, and what against it.
FOR, AGAINST = "#0072B2", "#D55E00"
PAPER, LINE = "#ffffff", "#d5d8de"
CARD_WIDTH, CARD_HEIGHT, THUMB = 190, 46, 36
# Mean widths of letters of 12 pixels, as wide as fonts have them.
CAPITAL, SMALL = 8.8, 6.6


def tint(amount: float) -> str:
    """Return the colour of an amount by its sign."""
    return FOR if amount >= 0 else AGAINST


def text(
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
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{color}" '
        f'text-anchor="{anchor}" font-weight="{weight}">{_plain(words)}</text>'
    )


def card(
    x: float, y: float, title: str, *, picture: str | None = None, bold: bool = False
) -> str:
    """Return an item: a frame around (x, y) on its left edge, a picture, a title."""
    top = y - CARD_HEIGHT / 2
    frame = (
        f'<rect x="{x:.1f}" y="{top:.1f}" width="{CARD_WIDTH}" height="{CARD_HEIGHT}" '
        f'rx="7" fill="{PAPER}" stroke="{INK if bold else LINE}" '
        f'stroke-width="{2 if bold else 1}"/>'
    )
    shapes, left = [frame], x + 9
    if picture is not None:
        shapes.append(_image(x + 6, y - THUMB / 2, THUMB, picture))
        left = x + THUMB + 12
    lines = _two_lines(title, x + CARD_WIDTH - 6 - left)
    start = y + 4 - 7.5 * (len(lines) - 1)
    shapes += [
        text(left, start + 15 * k, line, weight=650 if bold else 400)
        for k, line in enumerate(lines)
    ]
    return "".join(shapes)


def curve(
    start: tuple[float, float], end: tuple[float, float], *, width: float, color: str
) -> str:
    """Return a line that leaves and arrives level."""
    (x, y), (u, v) = start, end
    middle = (x + u) / 2
    return (
        f'<path d="M{x:.1f} {y:.1f}C{middle:.1f} {y:.1f} {middle:.1f} {v:.1f} '
        f'{u:.1f} {v:.1f}" fill="none" stroke="{color}" stroke-width="{width:.2f}" '
        'stroke-opacity="0.55"/>'
    )


def pill(x: float, y: float, words: str, *, color: str) -> str:
    """Return a short text on a coloured ground, centred at (x, y)."""
    width = 7.0 * len(words) + 18
    return (
        f'<rect x="{x - width / 2:.1f}" y="{y - 12:.1f}" width="{width:.1f}" '
        f'height="24" rx="12" fill="{color}"/>'
        + text(x, y + 4, words, color=PAPER, anchor="middle", weight=600)
    )


def bar(
    x: float,
    y: float,
    share: float,
    *,
    width: float,
    color: str,
    title: str,
    picture: str | None = None,
) -> str:
    """Return a bar, `share` of the width long, and above it a title that fits it."""
    shape, room = "", width
    if picture is not None:
        shape, x, room = _image(x, y - 18, 24, picture), x + 32, width - 32
    length = max(share * width, 1.0)
    shape += text(x, y - 5, fitted(title, room), color=QUIET, size=11.5)
    return shape + (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{length:.1f}" height="5" rx="2" '
        f'fill="{color}"/>'
    )


def svg_page(
    shapes: list[str], *, size: tuple[float, float], title: str, description: str
) -> str:
    """Return shapes as an SVG that says in words what it shows."""
    width, height = size
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        'role="img" font-family="system-ui, sans-serif">'
        f"<title>{_plain(title)}</title><desc>{_plain(description)}</desc>"
        f'<rect width="{width:g}" height="{height:g}" fill="{PAPER}"/>'
        f"{''.join(shapes)}</svg>\n"
    )


def _image(x: float, y: float, side: float, picture: str) -> str:
    """Return a square picture with its left upper corner at (x, y)."""
    return (
        f'<image x="{x:.1f}" y="{y:.1f}" width="{side:g}" height="{side:g}" '
        f'href="{escape(picture)}"/>'
    )


def fitted(words: str, room: float) -> str:
    """Return words on one line, cut where there is no more room."""
    n_letters = _letters(words, room)
    return words if len(words) <= n_letters else f"{words[: n_letters - 2].rstrip()} …"


def _letters(words: str, room: float) -> int:
    """Return how many letters like those of the words fit."""
    width = sum(CAPITAL if c.isupper() else SMALL for c in words)
    return max(int(room / max(width / max(len(words), 1), 1.0)), 4)


def _two_lines(words: str, room: float) -> list[str]:
    """Return words in two lines at most, as wide as there is room."""
    n_letters = _letters(words, room)
    lines = wrap(words, n_letters) or [""]
    if len(lines) > 2:
        lines = [lines[0], f"{lines[1][: n_letters - 2]} …"]
    return lines


def _plain(words: str) -> str:
    """Return words without what XML refuses or reads as a mark."""
    return escape("".join(c if c.isprintable() else " " for c in words), quote=False)

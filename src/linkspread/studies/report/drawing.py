"""What all figures share: their looks, and how they become SVG.

Figures are drawn without pyplot, so nothing is left behind in the program that asked
for one, and the same numbers always give the same text.
"""

import hashlib
import io
import warnings
from collections.abc import Callable, Sequence
from textwrap import shorten
from typing import Any
from xml.dom import minidom

from linkspread.ground.errors import require

# Colours of Okabe and Ito that differ for all kinds of eyes, without those that are
# too light for a thin line; black is for what stands out.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")
DASHES = ("-", "--", ":", "-.")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
INK, QUIET, GRID = "#1c1e21", "#5f6670", "#e4e6ea"
STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#b8bdc6",
    "axes.grid": True,
    "axes.labelcolor": QUIET,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "font.size": 9,
    "grid.color": GRID,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "lines.markersize": 4,
    # Texts stay texts: they can be read aloud, searched, and need no font inside.
    "svg.fonttype": "none",
    "svg.hashsalt": "linkspread",
    # A dollar sign in a name is only a dollar sign.
    "text.parse_math": False,
    "xtick.color": "#b8bdc6",
    "xtick.labelcolor": QUIET,
    "xtick.labelsize": 8.5,
    "ytick.color": "#b8bdc6",
    "ytick.labelcolor": QUIET,
    "ytick.labelsize": 8.5,
}
LEGEND_LINE = 0.19
MAX_LABEL = 44
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def draw(
    paint: Callable[[Any], None],
    *,
    title: str,
    description: str,
    size: tuple[float, float],
    n_legend: int = 0,
) -> str:
    """Return what ``paint(axes)`` draws as SVG; the legend has `n_legend` entries."""
    style = require("matplotlib.style", extra="demo", purpose="Drawing figures")
    figures = require("matplotlib.figure", extra="demo", purpose="Drawing figures")
    width, height = size
    file = io.StringIO()
    with style.context(["default", STYLE]), warnings.catch_warnings():
        # The reader's own fonts show the text; what this one lacks does not matter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure = figures.Figure(
            figsize=(width, height + n_legend * LEGEND_LINE), layout="constrained"
        )
        axes = figure.add_subplot()
        paint(axes)
        if n_legend:
            # Below the axes, where it hides no line.
            handles, names = axes.get_legend_handles_labels()
            figure.legend(handles, names, loc="outside lower left", handlelength=3)
        figure.savefig(file, format="svg", metadata=NO_METADATA)
    return _embeddable(file.getvalue(), title, description)


def label(text: str, width: int = MAX_LABEL) -> str:
    """Return a text short enough for a figure."""
    return shorten(_printable(text), width, placeholder=" …")


def line_looks(names: Sequence[str], *, ours: str | None = None) -> dict[str, dict]:
    """Return colour, dashes and marker by name; ours is black and thick."""
    others = [name for name in names if name != ours]
    looks = {name: _look(place) for place, name in enumerate(others)}
    if ours is not None:
        looks[ours] = {"color": INK, "marker": "o", "linewidth": 3, "zorder": 3}
    return looks


def _look(place: int) -> dict[str, Any]:
    """Return the looks of one line; its dashes change when the colours are used up."""
    return {
        "color": COLORS[place % len(COLORS)],
        "linestyle": DASHES[place // len(COLORS) % len(DASHES)],
        "marker": MARKERS[place % len(MARKERS)],
    }


def _embeddable(svg: str, title: str, description: str) -> str:
    """Return an SVG that can stand beside others in one page, and is described."""
    document: Any = minidom.parseString(svg)
    root = document.documentElement
    prefix = f"f{hashlib.sha256(f'{title}{svg}'.encode()).hexdigest()[:10]}"
    for node in root.getElementsByTagName("style"):
        # A style sheet would reach the whole page; attributes do not.
        node.parentNode.removeChild(node)
    for node in root.getElementsByTagName("*"):
        _rename(node, prefix)
    for name in ("width", "height", "version"):
        root.removeAttribute(name)
    root.setAttribute("style", "stroke-linejoin: round; stroke-linecap: butt")
    root.setAttribute("role", "img")
    root.setAttribute("aria-labelledby", f"{prefix}-title {prefix}-desc")
    _describe(document, "desc", description, prefix)
    _describe(document, "title", title, prefix)
    return root.toxml()


def _rename(node: Any, prefix: str) -> None:
    """Make the names within a figure its own; figures in one page share them."""
    for name, value in list(node.attributes.items()):
        if name == "id":
            node.setAttribute(name, f"{prefix}-{value}")
        elif name == "xlink:href" and value.startswith("#"):
            node.setAttribute(name, f"#{prefix}-{value[1:]}")
        elif value.startswith("url(#"):
            node.setAttribute(name, f"url(#{prefix}-{value[5:]}")


def _describe(document: Any, tag: str, text: str, prefix: str) -> None:
    """Put a title or a description at the start of a figure."""
    root = document.documentElement
    node = document.createElement(tag)
    node.setAttribute("id", f"{prefix}-{tag}")
    node.appendChild(document.createTextNode(_printable(text)))
    root.insertBefore(node, root.firstChild)


def _printable(text: str) -> str:
    """Return a text without the signs that XML refuses."""
    return "".join(sign if sign.isprintable() else " " for sign in text)

"""Figures of a study as SVG, to be embedded in a page.

Every function returns a dict from captions to SVG: one figure per direction, parameter
or kind of supervision. They are drawn with matplotlib without pyplot, which would
change global state; the same numbers always give the same SVG.
"""

import hashlib
import io
import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from statistics import fmean
from textwrap import shorten
from typing import Any
from xml.dom import minidom

from linkspread.ground.errors import require
from linkspread.studies.report.study import ParameterCurve, Run, Study

# Colours of Okabe and Ito, safe for colour-blind readers, without those too light for a
# thin line; black is for emphasis.
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
    # Text, not paths: accessible, searchable, and without embedded fonts.
    "svg.fonttype": "none",
    "svg.hashsalt": "linkspread",
    # No mathematics in names with a dollar sign.
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
# Colour, marker and line of each method.
Looks = dict[str, dict[str, Any]]
RECALL = [level / 10 for level in range(11)]
# More bars per class than this cannot be distinguished.
MAX_BARS = 4
# Place of "all" on a logarithmic axis: this factor above the largest amount; 0 is as
# far below the smallest.
STEP_TO_ALL = 3
# With more methods, only ours, the search before any judgement and the best are drawn.
MOST_LINES = 11


def recall_figures(study: Study) -> dict[str, str]:
    """Draw precision against recall on the standard split, a line per method."""
    runs = _standard_runs(study)
    # The methods of the bars come first, so that they have the same colours there.
    looks = line_looks(list(dict.fromkeys([*_best_of_groups(study), *runs])))
    figures = {}
    for way in study.directions:
        curves = {m: run.curve[way] for m, run in runs.items() if way in run.curve}

        def paint(axes: Any, curves: dict[str, Any] = curves) -> None:
            for method, curve in curves.items():
                axes.plot(RECALL, curve, label=label(method), **looks[method])
            axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, None))

        if curves:
            halves = ", ".join(f"{m} {c[5]:.3f}" for m, c in curves.items())
            title = f"Precision against recall, {way}"
            words = title, f"Precision at recall 0.5: {halves}."
            figures[way] = draw(paint, words, (4.1, 2.9), n_legend=len(curves))
    return figures


def class_figures(study: Study) -> dict[str, str]:
    """Draw the precision of each class on the standard split as bars."""
    runs = _standard_runs(study)
    chosen = _best_of_groups(study)
    figures = {}
    for way in study.directions:
        known = [m for m in chosen if m in runs and way in runs[m].per_class]
        bars = {method: runs[method].per_class[way] for method in known}
        if bars:
            names = dict.fromkeys(name for values in bars.values() for name in values)
            means = {n: fmean(v[n] for v in bars.values() if n in v) for n in names}
            classes = sorted(names, key=means.__getitem__, reverse=True)
            height = 0.6 + len(classes) * (0.1 + 0.09 * len(bars))
            figures[way] = draw(
                partial(_paint_classes, bars=bars, classes=classes),
                (
                    f"Mean average precision by class, {way}",
                    f"Classes from best to worst: {', '.join(classes)}.",
                ),
                (4.1, height),
                n_legend=len(bars),
            )
    return figures


def _paint_classes(axes: Any, *, bars: dict[str, Any], classes: list[str]) -> None:
    """Draw a group of bars per class, the first class on top."""
    thickness = 0.8 / len(bars)
    for i, (method, look) in enumerate(line_looks(list(bars)).items()):
        places = [c + (i + 0.5) * thickness - 0.4 for c in range(len(classes))]
        lengths = [bars[method].get(name, 0.0) for name in classes]
        axes.barh(places, lengths, thickness, color=look["color"], label=label(method))
    axes.set_yticks(range(len(classes)), [label(name, 22) for name in classes])
    axes.set(xlabel="mean average precision", ylim=(len(classes) - 0.4, -0.6))
    axes.grid(visible=False, axis="y")


def parameter_figures(study: Study) -> dict[str, str]:
    """Draw cross-validated precision against each parameter that was chosen."""
    # One range of scores for each method, so that its figures can be compared.
    own: dict[str, list[float]] = {}
    for curve in study.curves:
        own.setdefault(curve.method, []).extend(curve.scores)
    return {
        f"{curve.method}, {curve.parameter}": _draw_parameter(curve, own[curve.method])
        for curve in study.curves
    }


def _draw_parameter(curve: ParameterCurve, shown_scores: Sequence[float]) -> str:
    """Draw the score of each value, evenly spaced, and mark the chosen one."""
    lowest, highest = min(shown_scores), max(shown_scores)
    margin = 0.1 * (highest - lowest) or 0.01

    def paint(axes: Any) -> None:
        places = range(len(curve.values))
        chosen = curve.values.index(curve.chosen)
        axes.plot(places, curve.scores, **line_looks([""])[""])
        axes.axvline(chosen, color=INK, linewidth=1, linestyle=":")
        axes.plot([chosen], [curve.scores[chosen]], "o", color=INK, markersize=8)
        # Every second or third label, where labels would overlap.
        step = 1 + sum(len(_tick(value)) + 2 for value in curve.values) // 56
        shown = [i for i in places if i % step == chosen % step]
        axes.set_xticks(shown, [_tick(curve.values[i]) for i in shown])
        axes.set(xlabel=label(curve.parameter), ylabel="MAP, cross-validated")
        axes.set_ylim(lowest - margin, highest + margin)

    title = f"Choosing {curve.parameter} of {curve.method}".removesuffix(" of ")
    words = title, f"The chosen value is {_tick(curve.chosen)}."
    return draw(paint, words, (3.4, 2.3))


def _standard_runs(study: Study) -> dict[str, Run]:
    """Return the run of each method on the standard split."""
    runs = {cell.method: cell.standard for cell in study.cells}
    return {method: run for method, run in runs.items() if run is not None}


def _best_of_groups(study: Study) -> list[str]:
    """Return the method with the best average of each group that has classes."""
    runs = {m: run for m, run in _standard_runs(study).items() if run.per_class}
    # From worst to best, so that the best of each group remains.
    order = sorted(runs, key=lambda method: runs[method].score)
    best = {study.groups.get(method, ""): method for method in order}
    groups = dict.fromkeys(study.groups.get(m, "") for m in study.methods)
    return [best[group] for group in groups if group in best][:MAX_BARS]


def _tick(value: Any) -> str:
    """Return a value of a parameter for an axis."""
    return f"{value:g}" if isinstance(value, float) else label(str(value), 12)


def budget_figures(study: Study) -> dict[str, str]:
    """Draw the measure against the amount of supervision, a line per method."""
    drawn = _drawn_methods(study)
    looks = line_looks(drawn, ours=study.ours)
    figures = {}
    for kind in study.kinds:
        budgets = [budget for budget in study.budgets if budget.kind == kind]
        best = [cell for cell in map(study.best, budgets) if cell is not None]
        texts = [f"{c.budget.text}: {c.method} {c.mean:.3f}" for c in best]
        found = {m: [study.cell(budget, m) for budget in budgets] for m in drawn}
        lines = {m: [cell for cell in cells if cell] for m, cells in found.items()}
        lines = {method: cells for method, cells in lines.items() if cells}
        title = f"{study.measure.capitalize()} against {kind}"
        figures[kind] = draw(
            partial(_paint_budgets, study.measure, kind, lines, looks),
            (title, f"The best with {'; '.join(texts)}."),
            (4.1, 3.1),
            n_legend=len(lines),
        )
    return figures


def _paint_budgets(
    measure: str, kind: str, lines: dict[str, Any], looks: Looks, axes: Any
) -> None:
    """Draw mean and deviation of each method, with "all" at the right."""
    amounts = sorted({c.amount for line in lines.values() for c in line if c.amount})
    right = amounts[-1] * STEP_TO_ALL if amounts else 1
    left = amounts[0] / STEP_TO_ALL if amounts else 1
    places = {0: left, None: right}
    for method, line in lines.items():
        axes.errorbar(
            [places.get(cell.amount, cell.amount) for cell in line],
            [cell.mean for cell in line],
            [cell.deviation or math.nan for cell in line],
            label=label(method),
            capsize=2.5,
            elinewidth=1,
            **looks[method],
        )
    axes.set_xscale("log")
    ticks = {amount: f"{amount:,}" for amount in amounts}
    if any(cell.amount == 0 for line in lines.values() for cell in line):
        ticks[left] = "0"
    if any(cell.amount is None for line in lines.values() for cell in line):
        ticks[right] = "all"
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.minorticks_off()
    axes.set(xlabel=kind, ylabel=measure, ylim=(0, None))


def _drawn_methods(study: Study) -> list[str]:
    """Return the methods to draw, in the order of the study."""
    if len(study.methods) <= MOST_LINES:
        return list(study.methods)
    always = [m for m in study.methods if m in (study.had, study.ours)]
    means = {
        m: fmean(cell.mean or 0.0 for cell in study.cells if cell.method == m)
        for m in study.methods
    }
    others = sorted(set(study.methods) - set(always), key=lambda m: -means[m])
    kept = {*always, *others[: MOST_LINES - len(always)]}
    return [m for m in study.methods if m in kept]


def draw(
    paint: Callable[[Any], None],
    words: tuple[str, str],
    size: tuple[float, float],
    *,
    n_legend: int = 0,
) -> str:
    """Return what ``paint(axes)`` draws as SVG, with a title and a description."""
    style = require("matplotlib.style", purpose="Drawing figures")
    figures = require("matplotlib.figure", purpose="Drawing figures")
    width, height = size
    file = io.StringIO()
    with style.context(["default", STYLE]), warnings.catch_warnings():
        # The reader's fonts show the text, so missing glyphs do not matter here.
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
    return _embeddable(file.getvalue(), *words)


def label(text: str, width: int = MAX_LABEL) -> str:
    """Return a text short enough for a figure."""
    return shorten(_printable(text), width, placeholder=" …")


def line_looks(names: Sequence[str], *, ours: str | None = None) -> Looks:
    """Return colour, dashes and marker by name; ours is black and thick."""
    others = [name for name in names if name != ours]
    looks: dict[str, dict[str, Any]] = {
        name: {
            "color": COLORS[place % len(COLORS)],
            # Dashes change when the colours are used up.
            "linestyle": DASHES[place // len(COLORS) % len(DASHES)],
            "marker": MARKERS[place % len(MARKERS)],
        }
        for place, name in enumerate(others)
    }
    if ours is not None:
        looks[ours] = {"color": INK, "marker": "o", "linewidth": 3, "zorder": 3}
    return looks


def _embeddable(svg: str, title: str, description: str) -> str:
    """Return an SVG with a description that can be embedded with others in a page."""
    document: Any = minidom.parseString(svg)
    root = document.documentElement
    prefix = f"f{hashlib.sha256(f'{title}{svg}'.encode()).hexdigest()[:10]}"
    for node in root.getElementsByTagName("style"):
        # A style sheet would apply to the whole page; attributes do not.
        node.parentNode.removeChild(node)
    for node in root.getElementsByTagName("*"):
        # The ids of all figures of a page must differ.
        for name, value in list(node.attributes.items()):
            if name == "id":
                node.setAttribute(name, f"{prefix}-{value}")
            elif name == "xlink:href" and value.startswith("#"):
                node.setAttribute(name, f"#{prefix}-{value[1:]}")
            elif value.startswith("url(#"):
                node.setAttribute(name, f"url(#{prefix}-{value[5:]}")
    for name in ("width", "height", "version"):
        root.removeAttribute(name)
    root.setAttribute("style", "stroke-linejoin: round; stroke-linecap: butt")
    root.setAttribute("role", "img")
    root.setAttribute("aria-labelledby", f"{prefix}-title {prefix}-desc")
    for tag, text in (("desc", description), ("title", title)):
        node = document.createElement(tag)
        node.setAttribute("id", f"{prefix}-{tag}")
        node.appendChild(document.createTextNode(_printable(text)))
        root.insertBefore(node, root.firstChild)
    return root.toxml()


def _printable(text: str) -> str:
    """Return a text without the characters that XML refuses."""
    return "".join(sign if sign.isprintable() else " " for sign in text)

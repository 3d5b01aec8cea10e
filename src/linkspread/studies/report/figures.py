"""Figures of a table, each an SVG text that goes into a page as it is.

Every function returns a dict from the caption of a figure to its SVG: one figure per
direction or parameter, so that they can stand side by side on a wide
page and below each other on a phone. Drawing needs matplotlib.
"""

from collections.abc import Sequence
from functools import partial
from statistics import fmean
from typing import Any

from linkspread.studies.report.drawing import INK, draw, label, line_looks
from linkspread.studies.report.results import ParameterCurve, Run, TableStudy

RECALL = [level / 10 for level in range(11)]
# More bars per class than this cannot be told apart.
MAX_BARS = 4


def recall_figures(study: TableStudy) -> dict[str, str]:
    """Draw precision against recall on the standard split, a line per method."""
    runs = _standard_runs(study)
    # What the bars show comes first, so that it has the same colours there.
    looks = line_looks(list(dict.fromkeys([*_best_of_groups(study), *runs])))
    figures = {}
    for direction in study.directions:
        curves = {
            m: r.curve[direction] for m, r in runs.items() if direction in r.curve
        }
        if curves:
            halves = ", ".join(f"{m} {c[5]:.3f}" for m, c in curves.items())
            figures[direction] = draw(
                partial(_paint_recall, curves=curves, looks=looks),
                title=f"Precision against recall, {direction}",
                description=f"Precision at recall 0.5: {halves}.",
                size=(4.1, 2.9),
                n_legend=len(curves),
            )
    return figures


def class_figures(
    study: TableStudy, methods: Sequence[str] | None = None
) -> dict[str, str]:
    """Draw the precision of each class on the standard split as bars."""
    runs = _standard_runs(study)
    chosen = _best_of_groups(study) if methods is None else list(methods)
    figures = {}
    for direction in study.directions:
        bars = {m: runs[m].per_class.get(direction, {}) for m in chosen if m in runs}
        bars = {method: values for method, values in bars.items() if values}
        if bars:
            classes = _order_classes(bars)
            figures[direction] = draw(
                partial(_paint_classes, bars=bars, classes=classes),
                title=f"Mean average precision by class, {direction}",
                description=f"Classes from best to worst: {', '.join(classes)}.",
                size=(4.1, 0.6 + len(classes) * (0.1 + 0.09 * len(bars))),
                n_legend=len(bars),
            )
    return figures


def parameter_figures(study: TableStudy) -> dict[str, str]:
    """Draw cross-validated precision against each parameter that was chosen."""
    return {
        f"{curve.method}, {curve.parameter}": draw(
            partial(_paint_parameter, curve=curve, limits=_limits(study, curve)),
            title=f"Choosing {curve.parameter} of {curve.method}",
            description=f"The chosen value is {_tick(curve.chosen)}.",
            size=(3.4, 2.3),
        )
        for curve in study.curves
    }


def draw_curve(parameter: str, values: Sequence[Any], scores: Sequence[float]) -> str:
    """Draw cross-validated scores against one parameter; the best is marked."""
    chosen = values[max(range(len(scores)), key=lambda place: scores[place])]
    curve = ParameterCurve("", parameter, tuple(values), tuple(scores), chosen)
    margin = 0.1 * (max(scores) - min(scores)) or 0.01
    limits = min(scores) - margin, max(scores) + margin
    return draw(
        partial(_paint_parameter, curve=curve, limits=limits),
        title=f"Choosing {parameter}",
        description=f"The best value is {_tick(chosen)}.",
        size=(3.4, 2.3),
    )


def _paint_recall(axes: Any, *, curves: dict, looks: dict) -> None:
    """Draw the curves of one direction."""
    for method, curve in curves.items():
        axes.plot(RECALL, curve, label=label(method), **looks[method])
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0, None))


def _paint_classes(axes: Any, *, bars: dict, classes: list) -> None:
    """Draw a group of bars per class, the first class on top."""
    thickness = 0.8 / len(bars)
    for i, (method, look) in enumerate(line_looks(list(bars)).items()):
        places = [c + (i + 0.5) * thickness - 0.4 for c in range(len(classes))]
        lengths = [bars[method].get(name, 0.0) for name in classes]
        axes.barh(places, lengths, thickness, color=look["color"], label=label(method))
    axes.set_yticks(range(len(classes)), [label(name, 22) for name in classes])
    axes.set(xlabel="mean average precision", ylim=(len(classes) - 0.4, -0.6))
    axes.grid(visible=False, axis="y")


def _paint_parameter(
    axes: Any, *, curve: ParameterCurve, limits: tuple[float, float]
) -> None:
    """Draw the score of each value, evenly spaced, and mark the chosen one."""
    places = range(len(curve.values))
    chosen = curve.values.index(curve.chosen)
    look = line_looks([curve.method])[curve.method]
    axes.plot(places, curve.scores, **look)
    axes.axvline(chosen, color=INK, linewidth=1, linestyle=":")
    axes.plot([chosen], [curve.scores[chosen]], "o", color=INK, markersize=8)
    # Every second or third label where all would run into each other.
    step = 1 + sum(len(_tick(value)) + 2 for value in curve.values) // 56
    shown = [i for i in places if i % step == chosen % step]
    axes.set_xticks(shown, [_tick(curve.values[i]) for i in shown])
    axes.set(xlabel=label(curve.parameter), ylabel="MAP, cross-validated", ylim=limits)


def _standard_runs(study: TableStudy) -> dict[str, Run]:
    """Return the run of each method on the standard split."""
    runs = {result.method: result.standard for result in study.methods}
    return {method: run for method, run in runs.items() if run is not None}


def _best_of_groups(study: TableStudy) -> list[str]:
    """Return the method with the best average of each group that has classes."""
    runs = _standard_runs(study)
    shown = [r for r in study.methods if r.method in runs and runs[r.method].per_class]
    # From worst to best: the best of each group is the one that stays.
    shown.sort(key=lambda result: runs[result.method].average)
    best = {result.group: result.method for result in shown}
    groups = dict.fromkeys(result.group for result in study.methods)
    return [best[group] for group in groups if group in best][:MAX_BARS]


def _order_classes(bars: dict[str, dict[str, float]]) -> list[str]:
    """Return the classes from the easiest to the hardest."""
    names = dict.fromkeys(name for values in bars.values() for name in values)
    means = {n: fmean(v[n] for v in bars.values() if n in v) for n in names}
    return sorted(names, key=lambda name: -means[name])


def _limits(study: TableStudy, curve: ParameterCurve) -> tuple[float, float]:
    """Return the range of scores of a method, so that its figures can be compared."""
    curves = [other for other in study.curves if other.method == curve.method]
    scores = [score for other in curves for score in other.scores]
    margin = 0.1 * (max(scores) - min(scores)) or 0.01
    return min(scores) - margin, max(scores) + margin


def _tick(value: Any) -> str:
    """Return a value of a parameter for an axis."""
    return f"{value:g}" if isinstance(value, float) else label(str(value), 12)

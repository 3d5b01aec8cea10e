"""Overview of a model: numbers, a map, and curves of its quality."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import normalize

from linkspread.compiled.singular import svd
from linkspread.ground.errors import LinkspreadError
from linkspread.metrics import mean_average_precision, precision_recall_curve
from linkspread.web.contents import Contents
from linkspread.web.live_model import LiveModel

Array = np.ndarray

# Items of each view on a map, and its side in pixels.
N_MAPPED, SIDE = 200, 560
# Axes of their scores that a map keeps.
N_AXES = 16
# Judgements after which a map is drawn again; more often would confuse.
MAP_LIFETIME = 10
# Queries and targets that measure a search, and points of the curve that are kept.
N_QUERIES, N_ITEMS, N_POINTS = 200, 2000, 500
# Size of the plot in a chart; `_charts.html` draws axes around it.
WIDTH, HEIGHT = 496, 170
SEED = 0


def look(live: LiveModel, contents: Contents) -> dict[str, Any]:
    """Return counts of items, links and judgements for page and API."""
    model, ledger = live.shown.model, live.ledger
    links, names = model.links_, tuple(model.view_names_)
    facts = {view: dict(model.facts_[view]) for view in names}
    sizes = {view: model.items_[view].n_items for view in names}
    pairs = [(a, b) for k, a in enumerate(names) for b in names[k:]]
    return {
        "views": [
            {
                "name": view,
                "n_items": facts[view].pop("items"),
                "facts": facts[view],
                "kind": f"{contents.kinds.get(view, 'id')}s",
            }
            for view in names
        ],
        "links": [
            {
                "between": (a, b),
                "n_must": int((links.judged(a, b) > 0).sum()),
                "n_cannot": int((links.judged(a, b) < 0).sum()),
                "has_labels": links.memberships(a, shared_with=b) is not None,
            }
            for a, b in pairs
            if links.connects(a, b)
        ],
        "n_labelled": {
            view: int(_is_labelled(links, view, n).sum()) for view, n in sizes.items()
        },
        "n_conflicts": len(links.conflicts()),
        "n_disagreements": sum(1 for _ in ledger.disagreements()),
        "verdicts": {name: n for name, n in ledger.verdicts.items() if n},
        "n_unknown": live.n_unknown,
        "number": live.shown.number,
        "summary": getattr(model, "summary_", ""),
        "inexact": model.notes_,
    }


class Mark(NamedTuple):
    """An item on a map."""

    view: str
    other: str
    id: str
    title: str
    x: float
    y: float


class Atlas:
    """Maps of items of two views; items with similar scores are near each other."""

    def __init__(self, live: LiveModel, contents: Contents) -> None:
        self._live, self._contents = live, contents
        self._drawing = threading.Lock()
        # Maps with the number of the store row at which they were drawn.
        self._kept: dict[tuple[str, str], tuple[int, list[Mark]]] = {}

    def map(self, source: str, target: str) -> list[Mark]:
        """Return items of both views in the plane."""
        number = self._live.shown.number
        with self._drawing:
            kept = self._kept.get((source, target))
            if kept is None or number - kept[0] >= MAP_LIFETIME:
                kept = number, self._draw(source, target)
                self._kept[source, target] = kept
        return kept[1]

    def _draw(self, source: str, target: str) -> list[Mark]:
        """Place items of both views in the plane."""
        model = self._live.open(source, target)
        rng = np.random.default_rng(SEED)
        both = (source, target), (target, source)
        ids = []
        for view, _ in both:
            own = model.items_[view].ids
            n_drawn = min(N_MAPPED, len(own))
            ids.append(own[np.sort(rng.choice(len(own), n_drawn, replace=False))])
        # Vectors of these items alone, whose inner products are nearly their scores.
        block = np.asarray(model.scores(source, target, rows=ids[0], cols=ids[1]))
        # A bias of a query or an item would part both views.
        block = block - block.mean(axis=0) - block.mean(axis=1, keepdims=True)
        left, sizes, right = svd(block)
        roots = np.sqrt(sizes[:N_AXES])
        blocks = [own[:, :N_AXES] * roots for own in (left, right.T)]
        points = _plane(normalize(np.concatenate(blocks)))
        low, high = points.min(axis=0), points.max(axis=0)
        points = 12 + (points - low) / np.maximum(high - low, 1e-12) * (SIDE - 24)
        places = [
            (view, other, id)
            for (view, other), own in zip(both, ids, strict=True)
            for id in own.tolist()
        ]
        return [
            Mark(view, other, str(id), f"{view}: {self._contents.name(view, id)}", x, y)
            for (view, other, id), (x, y) in zip(places, points.tolist(), strict=True)
        ]


@dataclass(frozen=True)
class CurvePoint:
    """Mean average precision on held-out labels after some judgements."""

    number: int
    n_judgements: int
    score: float


class ScoreCurve:
    """Mean average precision since the start, on items with held-out labels."""

    def __init__(
        self, live: LiveModel, contents: Contents, directions: list[tuple[str, str]]
    ) -> None:
        self._live, self._contents = live, contents
        between = (own for own in directions if own[0] != own[1])
        self.direction = next(between, None)
        self.points: list[CurvePoint] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Measure now, and again after each change."""
        self._thread = threading.Thread(target=self._watch, daemon=True, name="curve")
        self._thread.start()

    def stop(self) -> None:
        """Stop measuring."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def measure(self) -> None:
        """Add a point for the present model."""
        number, model = self._live.shown
        if self._sample is not None:
            score = mean_average_precision(*self._measured(model))
            n_judgements = sum(self._live.ledger.verdicts.values())
            self.points.append(CurvePoint(number, n_judgements, float(score)))
            del self.points[:-N_POINTS]

    def chart(self) -> "Chart | None":
        """Return the curve of the mean average precision."""
        return line_chart([(own.n_judgements, own.score) for own in self.points])

    def recall_chart(self) -> "Chart | None":
        """Return precision against recall of the present model."""
        if self._sample is None:
            return None
        model = self._live.shown.model
        precision, recall = precision_recall_curve(*self._measured(model))
        points = list(zip(recall.tolist(), precision.tolist(), strict=True))
        return line_chart(points, from_zero=True)

    def _watch(self) -> None:
        """Measure whenever the model has changed."""
        number = -1
        while not self._stop.is_set() and self._sample is not None:
            if self._live.shown.number != number:
                number = self._live.shown.number
                try:
                    self.measure()
                except LinkspreadError:
                    return
            self._live.wait(number, timeout=0.5)

    def _measured(self, model: Any) -> tuple[Array, Array, Array]:
        """Return the scores of the sample, and the labels of its rows and columns."""
        assert self.direction is not None and self._sample is not None
        (rows, row_labels), (cols, col_labels) = self._sample
        source, target = self.direction
        # Ids, because positions would be read as ids that are integers.
        ids = model.items_[source].ids[rows], model.items_[target].ids[cols]
        block = model.scores(source, target, rows=ids[0], cols=ids[1])
        return block, row_labels, col_labels

    @cached_property
    def _sample(self) -> list[tuple[Array, Array]] | None:
        """Positions and labels of the items of both views; None if there are none."""
        if self.direction is None:
            return None
        rng, links = np.random.default_rng(SEED), self._live.shown.model.links_
        sample = []
        for view, most in zip(self.direction, (N_QUERIES, N_ITEMS), strict=True):
            labels = self._contents.labels(view)
            if labels is None:
                return None
            is_given = _is_labelled(links, view, len(labels))
            hidden = np.flatnonzero((labels >= 0) & ~is_given)
            if not len(hidden):
                return None
            n_drawn = min(most, len(hidden))
            chosen = np.sort(rng.choice(hidden, n_drawn, replace=False))
            sample.append((chosen, labels[chosen]))
        return sample


class Chart(NamedTuple):
    """A line chart as numbers for an SVG."""

    path: str
    last: tuple[float, float]
    heights: list[tuple[float, str]]
    places: list[tuple[float, str]]
    words: str


def line_chart(
    points: Sequence[tuple[float, float]], *, from_zero: bool = False
) -> Chart | None:
    """Return a line chart, or None without points."""
    if not points:
        return None
    x, y = np.array(points, dtype=float).T
    x_low, x_high = x.min(), max(x.max(), x.min() + 1)
    # The axis spans at least 0.02, so that small changes look small.
    room = max(0.02 - np.ptp(y), 0.0) / 2
    y_low, y_high = (0.0, 1.0) if from_zero else (y.min() - room, y.max() + room)
    across = (x - x_low) / (x_high - x_low) * WIDTH
    up = HEIGHT - (y - y_low) / (y_high - y_low) * HEIGHT
    shares = (0.0, 0.5, 1.0)
    return Chart(
        path=" ".join(f"{u:.1f},{v:.1f}" for u, v in zip(across, up, strict=True)),
        last=(float(across[-1]), float(up[-1])),
        heights=[
            (HEIGHT * (1 - own), f"{y_low + own * (y_high - y_low):.3g}")
            for own in shares
        ],
        places=[
            (WIDTH * own, f"{x_low + own * (x_high - x_low):.3g}") for own in shares
        ],
        words=f"{y[0]:.3g} at {x[0]:.6g}, {y[-1]:.3g} at {x[-1]:.6g}.",
    )


def _plane(vectors: Array) -> Array:
    """Return points in the plane; similar directions are near each other."""
    # Imported here because only this page needs it.
    from sklearn.manifold import TSNE

    if len(vectors) < 10:
        return np.random.default_rng(SEED).random((len(vectors), 2))
    flat = TSNE(
        perplexity=min(30.0, (len(vectors) - 1) / 3),
        init="random",
        # Enough for clusters, and somebody is waiting.
        max_iter=300,
        random_state=SEED,
        n_jobs=1,
    )
    return flat.fit_transform(np.asarray(vectors, dtype=np.float32))


def _is_labelled(links: Any, view: str, n_items: int) -> Array:
    """Return which items have labels that the model was fitted to."""
    memberships = links.memberships(view)
    if memberships is None:
        return np.zeros(n_items, dtype=bool)
    return np.asarray(memberships.sum(axis=1)).ravel() > 0

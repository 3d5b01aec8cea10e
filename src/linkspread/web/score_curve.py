"""How the search has moved since the page was started, measured where labels exist."""

import threading
from typing import Any, NamedTuple

import numpy as np

from linkspread.ground.errors import LinkspreadError
from linkspread.metrics import mean_average_precision, precision_recall_curve
from linkspread.web.contents import Contents
from linkspread.web.live_model import LiveModel

# Queries and items by which a search is measured, and points that are kept.
N_QUERIES, N_ITEMS, N_POINTS = 200, 2000, 500
SEED = 0


class CurvePoint(NamedTuple):
    """Mean average precision after so many judgements."""

    number: int
    n_judgements: int
    score: float


class _Sample(NamedTuple):
    """Labelled items of two views that the model was told no label of."""

    queries: np.ndarray
    items: np.ndarray
    query_labels: np.ndarray
    item_labels: np.ndarray


class ScoreCurve:
    """Mean average precision on items whose labels the model was not given."""

    def __init__(
        self, live: LiveModel, contents: Contents, directions: list[tuple[str, str]]
    ) -> None:
        self._live, self._contents = live, contents
        between = [own for own in directions if own[0] != own[1]]
        self.direction = between[0] if between else None
        self.points: list[CurvePoint] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._sample: _Sample | None = None

    def start(self) -> None:
        """Measure now, and again after each change."""
        self._thread = threading.Thread(target=self._watch, daemon=True, name="curve")
        self._thread.start()

    def stop(self) -> None:
        """Measure no longer."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def measure(self) -> None:
        """Add a point for the model as it is shown now."""
        shown = self._live.shown
        block = self._block(shown.model)
        if block is not None and self._sample is not None:
            score = mean_average_precision(
                block, self._sample.query_labels, self._sample.item_labels
            )
            n_judgements = sum(self._live.ledger.verdicts.values())
            self.points.append(CurvePoint(shown.number, n_judgements, float(score)))
            del self.points[:-N_POINTS]

    def precision_recall(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return precision and recall of the model as it is shown now."""
        block = self._block(self._live.shown.model)
        if block is None or self._sample is None:
            return None
        labels = self._sample.query_labels, self._sample.item_labels
        return precision_recall_curve(block, *labels)

    def _watch(self) -> None:
        """Measure whenever the model has changed."""
        number = -1
        while not self._stop.is_set():
            if self._live.shown.number != number:
                number = self._live.shown.number
                try:
                    self.measure()
                except LinkspreadError:
                    return
                if self.direction is None or self._sample is None:
                    return
            self._live.wait(number, timeout=0.5)

    def _block(self, model: Any) -> np.ndarray | None:
        """Return the scores of the sample, None where there is nothing to measure."""
        if self.direction is None:
            return None
        if self._sample is None:
            self._sample = self._draw(model, *self.direction)
        if self._sample is None:
            return None
        rows, cols = self._sample.queries, self._sample.items
        # Positions, as ids that are integers would be taken for ids.
        ids = [model.items_[v].ids for v in self.direction]
        source, target = self.direction
        return model.scores(source, target, rows=ids[0][rows], cols=ids[1][cols])

    def _draw(self, model: Any, source: str, target: str) -> _Sample | None:
        """Choose the items, the same ones each time."""
        rng = np.random.default_rng(SEED)
        given = [self._contents.labels(view) for view in (source, target)]
        labels = [own for own in given if own is not None]
        if len(labels) < 2:
            return None
        hidden = [
            np.flatnonzero((own >= 0) & ~_is_labelled(model.links_, view, len(own)))
            for view, own in zip((source, target), labels, strict=True)
        ]
        if not all(len(own) for own in hidden):
            return None
        queries, items = (
            np.sort(rng.choice(own, min(most, len(own)), replace=False))
            for own, most in zip(hidden, (N_QUERIES, N_ITEMS), strict=True)
        )
        return _Sample(queries, items, labels[0][queries], labels[1][items])


def _is_labelled(links: Any, view: str, n_items: int) -> np.ndarray:
    """Tell which items the model was given labels of."""
    memberships = links.memberships(view)
    if memberships is None:
        return np.zeros(n_items, dtype=bool)
    return np.asarray(memberships.sum(axis=1)).ravel() > 0

"""Judgements that the others contradict, found once for each change of the model."""

import weakref
from typing import Any, NamedTuple

from linkspread.judging import Doubt
from linkspread.selection.refitting import MIN_PAIRS
from linkspread.web.live_model import LiveModel

# Doubtful judgements that are shown, and the most that are found for them.
N_SHOWN, MAX_FOUND = 10, 100
# Note of a judgement that settles a pair, which is then not shown again.
SETTLED = "looked at again"


class Found(NamedTuple):
    """Doubts and their views, None if nobody asked; or why there are none."""

    problem: str = ""
    doubts: list[tuple[tuple[str, str], Doubt]] | None = None


class Doubts:
    """The doubts of the model that is shown; one thread at a time may ask."""

    def __init__(self, live: LiveModel) -> None:
        self._live, self._kept = live, Found()
        # A reference that does not keep a former model in memory.
        self._model: Any = lambda: None

    def found(self, *, ask: bool) -> Found:
        """Return doubts that are known; `ask` the model, which takes its time."""
        model = self._live.shown.model
        if self._model() is not model:
            self._model, self._kept = weakref.ref(model), Found(_problem(model))
        if ask and not self._kept.problem and self._kept.doubts is None:
            self._kept = Found(doubts=self._find(model))
        return self._kept

    def _find(self, model: Any) -> list[tuple[tuple[str, str], Doubt]]:
        """Return judgements that are rather wrong than right, most doubtful first."""
        ledger = self._live.ledger
        words = (ledger.latest(pair).values() for pair in ledger.judged())
        n_settled = sum(any(own.note == SETTLED for own in said) for said in words)
        n = min(N_SHOWN + n_settled, MAX_FOUND)
        found = [
            (pair, own)
            for pair in model.pairs_
            for own in model.doubts(n, source=pair[0], target=pair[1])
            if own.probability > 0.5
        ]
        return sorted(found, key=lambda own: -own[1].probability)


def _problem(model: Any) -> str:
    """Return why a model cannot say what is doubtful, "" if it can."""
    if not hasattr(model, "doubts"):
        return (
            "CrossViewSearch can say which judgements are doubtful, and this model is "
            f"a {type(model).__name__}. Fit without --model spreading."
        )
    n_pairs = sum(model.links_.judged(*own).nnz for own in model.pairs_)
    if n_pairs >= MIN_PAIRS:
        return ""
    return f"This needs {MIN_PAIRS} judged pairs, and there are {n_pairs}. Judge more."

"""What to ask people next, and how much an answer would tell."""

import threading
from typing import NamedTuple

from linkspread.storage.ledger import pair_key
from linkspread.web.live_model import LiveModel

# Pairs that are suggested together.
N_QUEUE = 25


class Suggestion(NamedTuple):
    """A pair to ask about."""

    left: str
    right: str
    gain: float


class Asker:
    """A queue of pairs for each direction, shared by all people."""

    def __init__(self, live: LiveModel) -> None:
        self._live = live
        self._queues: dict[tuple[str, str], list[Suggestion]] = {}
        self._asked = threading.Lock()

    def queue(self, source: str, target: str, who: str) -> list[Suggestion]:
        """Return the pairs that a person may be asked about, the best first."""
        with self._asked:
            known = self._queues.get((source, target), [])
            left = [pair for pair in known if self._is_open(source, target, pair, who)]
            if not left:
                fresh = self._suggest(source, target)
                self._queues[source, target] = fresh
                left = [p for p in fresh if self._is_open(source, target, p, who)]
        return left

    def _suggest(self, source: str, target: str) -> list[Suggestion]:
        """Ask the model for pairs."""
        model = self._live.open(source, target)
        # Pairs about which people are unsure are no links, and would come again.
        n = N_QUEUE + self._live.ledger.verdicts["unsure"]
        left, right = model.suggest_pairs(n, source=source, target=target)
        if not len(left):
            return []
        gains = model.expected_gains(left, right, source=source, target=target)
        rows = zip(left.tolist(), right.tolist(), gains.tolist(), strict=True)
        return [Suggestion(str(i), str(j), gain) for i, j, gain in rows]

    def _is_open(self, source: str, target: str, pair: Suggestion, who: str) -> bool:
        """Tell whether a pair is not judged, nor left open by this person."""
        words = self._live.ledger.words(
            pair_key((source, pair.left), (target, pair.right))
        )
        return who not in words and all(w.verdict == "unsure" for w in words.values())

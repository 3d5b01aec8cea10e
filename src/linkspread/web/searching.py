"""Searches of many people at once: those that wait for each other share one product."""

import threading
import time
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from linkspread.ground.cores import count_threads
from linkspread.ground.errors import LinkspreadError
from linkspread.web.live_model import LiveModel

Array = np.ndarray
Found = tuple[Array, Array]

# Items that tell which scores are usual, and seconds until they are asked again.
N_USUAL, USUAL_LIFETIME = 64, 20.0
# Searches that may wait, and how many of them are answered together.
N_WAITING, N_TOGETHER = 60, 16


class Busy(LinkspreadError):
    """More is asked at once than the server can answer soon."""


class Turns:
    """A few at a time; some may wait, others are refused at once."""

    def __init__(self, n: int, *, n_waiting: int) -> None:
        self._places = threading.BoundedSemaphore(n)
        self._queue = threading.BoundedSemaphore(n + n_waiting)

    def __enter__(self) -> None:
        if not self._queue.acquire(blocking=False):
            raise Busy(
                "the server can answer a few requests of this kind at once, and more "
                "are waiting. Try again in a moment."
            )
        self._places.acquire()

    def __exit__(self, *error: object) -> None:
        self._places.release()
        self._queue.release()


class Usual(NamedTuple):
    """Scores that are usual between two views, measured at some time."""

    number: int
    at: float
    chance: float  # median of random pairs
    best: float  # median of the best results of items
    weak: float  # the best results of nearly all items are above

    def strength(self, score: float) -> float:
        """Return how far a score is from chance to a usual best result."""
        span = max(self.best - self.chance, 1e-12)
        return min(max((score - self.chance) / span, 0.0), 1.0)


class _Wish:
    """A search by an item that waits for its answer."""

    def __init__(self, id: Any, n: int) -> None:
        self.id, self.n = id, n
        self.is_done = threading.Event()
        self.found: Found | None = None
        self.problem: Exception | None = None


class Searches:
    """Searches of the model that is shown now."""

    def __init__(self, live: LiveModel) -> None:
        self._live = live
        # More searches at once than cores are not faster, and would delay the thread
        # that applies judgements.
        self._turns = Turns(count_threads(None), n_waiting=N_WAITING)
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, str], list[_Wish]] = defaultdict(list)
        self._usual: dict[tuple[str, str], Usual] = {}
        self._measuring = threading.Lock()

    def search(self, queries: Any, *, source: str, target: str, n: int) -> Found:
        """Return ids and scores for one query: an id, or features of a new item."""
        if not isinstance(queries, str | int):
            with self._turns:
                ids, scores = self._ask(queries, source, target, n)
            return ids[0], scores[0]
        wish, key = _Wish(queries, n), (source, target)
        with self._lock:
            self._waiting[key].append(wish)
        try:
            with self._turns:
                if not wish.is_done.is_set():
                    self._answer(key)
        except Busy:
            with self._lock:
                if wish in self._waiting[key]:
                    self._waiting[key].remove(wish)
                    raise
        # Somebody else may be answering it.
        wish.is_done.wait()
        if wish.found is None:
            raise wish.problem or RuntimeError("a search was not answered")
        return wish.found

    def usual(self, source: str, target: str) -> Usual:
        """Return which scores are usual, measured on some items of the source."""
        kept = self._usual.get((source, target))
        number = self._live.shown.number
        if kept is not None and (
            number == kept.number
            or time.monotonic() - kept.at < USUAL_LIFETIME
            or self._measuring.locked()
        ):
            return kept
        with self._measuring:
            if self._usual.get((source, target)) is kept:
                self._usual[source, target] = self._measure(source, target)
            return self._usual[source, target]

    def _answer(self, key: tuple[str, str]) -> None:
        """Answer some of the searches that wait, the oldest first."""
        with self._lock:
            wishes = self._waiting[key][:N_TOGETHER]
            del self._waiting[key][:N_TOGETHER]
        if not wishes:
            return
        try:
            n = max(own.n for own in wishes)
            ids, scores = self._ask([own.id for own in wishes], *key, n)
            for k, own in enumerate(wishes):
                own.found = ids[k, : own.n], scores[k, : own.n]
        except Exception:
            # One unknown id must not spoil the searches of others.
            for own in wishes:
                try:
                    own.found = self._ask(own.id, *key, own.n)
                except Exception as problem:
                    own.problem = problem
        finally:
            for own in wishes:
                own.is_done.set()

    def _ask(self, queries: Any, source: str, target: str, n: int) -> Found:
        """Search the model that is shown now."""
        found: Found = self._live.shown.model.search(
            queries, source=source, target=target, n_results=n
        )
        return found

    def _measure(self, source: str, target: str) -> Usual:
        """Ask some items of the source, and score random pairs."""
        rng, (number, model) = np.random.default_rng(0), self._live.shown
        left, right = (
            own.ids[np.sort(rng.choice(own.n_items, min(N_USUAL, own.n_items), False))]
            for own in (model.items_[source], model.items_[target])
        )
        with self._turns:
            # Two, because within a view an item may find itself.
            found = model.search(left, source=source, target=target, n_results=2)
            random = model.scores(source, target, rows=left, cols=right)
        best = np.asarray(found[1])[:, -1 if source == target else 0]
        return Usual(
            number,
            time.monotonic(),
            float(np.median(random)),
            float(np.median(best)),
            float(np.quantile(best, 0.02)),
        )

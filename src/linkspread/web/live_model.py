"""A model that follows a link store while people search it.

One thread changes the model; all others read its last snapshot. Judgements of other
processes are applied within a second, judgements of this process at once.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, Self

import numpy as np

from linkspread.ground.errors import LinkspreadError, StoreError
from linkspread.links import Links
from linkspread.models import ModelFolder
from linkspread.models.following import Follower
from linkspread.storage import Ledger, LinkStore
from linkspread.storage.folder import MANIFEST

log = logging.getLogger("linkspread.web")

# Seconds between reads of the store, and seconds that an answer waits for the model.
PERIOD = 0.5
PATIENCE = 4.0
# After a change the thread rests for as long as the change took, up to these seconds,
# so that searches have at least half of the time.
MAX_REST = 0.25
REFUSED = "This model cannot change its links, so judgements count at the next fit."


class Shown(NamedTuple):
    """The snapshot that is searched, and the last row of the store in it."""

    number: int
    model: Any


class LiveModel:
    """A model, its store, and the judgements so far."""

    def __init__(
        self,
        model: Any,
        store: LinkStore,
        *,
        absorbed: int = 0,
        folder: ModelFolder | None = None,
    ) -> None:
        self._follower = Follower(model, store, applied=absorbed)
        self.store, self._folder = store, folder
        self._saved = self._last_save()
        self.refusal, self.seconds = "", 0.0
        # Why the last judgement could not be stored, "" if it could.
        self.problem = ""
        # Pairs of views that were searched, beside those of the fit.
        self._opened: set[tuple[str, str]] = set()
        self._writing, self._news = threading.Lock(), threading.Condition()
        self._wake, self._stop = threading.Event(), threading.Event()
        self.is_warm = threading.Event()
        self._thread: threading.Thread | None = None
        self.shown = Shown(absorbed, model.snapshot())
        self.follow()

    @classmethod
    def of_folder(cls, folder: ModelFolder) -> Self:
        """Return the model of a folder, which follows its store and later saves."""
        saved = ModelFolder(folder.path, store=folder.place)
        model, applied = saved.load()
        return cls(model, saved.store(), absorbed=applied, folder=saved)

    @property
    def ledger(self) -> Ledger:
        """The judgements so far."""
        return self._follower.ledger

    @property
    def _model(self) -> Any:
        """The model that changes."""
        return self._follower.model

    @property
    def n_unknown(self) -> int:
        """Judged pairs with items that the model does not have."""
        return self._follower.n_unknown

    def start(self) -> None:
        """Start to follow the store."""
        self._thread = threading.Thread(target=self._watch, daemon=True, name="follow")
        self._thread.start()

    def stop(self) -> None:
        """Stop following the store."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def write(self, store: Callable[..., str], *given: Any, **how: Any) -> str:
        """Store a row by a method of the store; remember whether that succeeded."""
        try:
            id = store(*given, **how)
        except StoreError as error:
            self.problem = str(error)
            raise
        self.problem = ""
        return id

    def follow(self) -> None:
        """Apply new rows of the store."""
        with self._writing:
            if self._follower.read():
                self._apply()
                self._show(self._follower.number)

    def reload(self) -> bool:
        """Load the model again if its folder was saved; return whether it was."""
        saved = self._last_save()
        if saved == self._saved:
            return False
        self._saved, folder = saved, self._folder
        assert folder is not None
        try:
            model, applied = ModelFolder(folder.path, store=folder.place).load()
            follower = Follower(model, self.store, applied=applied)
            same = _has_items(follower.model, self.shown.model)
        except LinkspreadError:
            log.exception("reload")
            return False
        if not same:
            log.warning("reload", extra={"event": {"problem": "items differ"}})
            return False
        with self._writing:
            self._follower = follower
            follower.read()
            self._apply()
            for source, target in self._opened:
                one = slice(0, 1)
                follower.model.scores(source, target, rows=one, cols=one)
            self._show(follower.number)
        return True

    def catch_up(self, *, id: str = "", patience: float = PATIENCE) -> bool:
        """Wait until a stored row is in the model; return whether it is.

        Without an `id`, wait for all rows that are stored now, but not for later ones.
        """
        if self._thread is None:
            self.follow()
            return True
        self._wake.set()
        if patience <= 0:
            # Nobody waits, so it need not be known.
            return False
        number = self.store.last_number()
        if id:
            pending = self.store.changes(after=self.shown.number)
            number = next((row.number or 0 for row in pending if row.id == id), 0)
        return self.wait(number - 1, patience) >= number

    def wait(self, number: int, timeout: float) -> int:
        """Wait until the model has more than `number` rows; return how many it has."""
        with self._news:
            self._news.wait_for(lambda: self.shown.number > number, timeout=timeout)
        return self.shown.number

    def open(self, source: str, target: str) -> Any:
        """Return the model, ready to search between two views."""
        known = {*self.shown.model.pairs_, *self._opened}
        if (source, target) not in known and (target, source) not in known:
            with self._writing:
                # From now on the model also follows links between these views.
                one = slice(0, 1)
                self._model.scores(source, target, rows=one, cols=one)
                self._opened.add((source, target))
                self._show(self.shown.number)
        return self.shown.model

    def _watch(self) -> None:
        """Apply new rows until stopped."""
        self._warm_up()
        self.is_warm.set()
        while not self._stop.is_set():
            self._wake.wait(PERIOD)
            self._wake.clear()
            if self._stop.is_set():
                return
            try:
                start = time.monotonic()
                self.reload()
                self.follow()
                self._stop.wait(min(time.monotonic() - start, MAX_REST))
            except StoreError as error:
                log.warning("store", extra={"event": {"problem": str(error)}})
            except Exception:
                # The page keeps searching, even if it no longer follows the store.
                log.exception("follow")
                self.refusal = REFUSED

    def _last_save(self) -> tuple[int, int]:
        """Return what tells one save of the folder from another."""
        if self._folder is None:
            return (0, 0)
        with suppress(OSError):
            found = (self._folder.path / MANIFEST).stat()
            return found.st_mtime_ns, found.st_ino
        return self._saved

    def _warm_up(self) -> None:
        """Apply a link and remove it again, because the first change is the slowest."""
        model = self._model
        # A model that makes choices by its links must not do so by this one.
        if hasattr(model, "choices_"):
            model = model.snapshot()
        for source, target in model.pairs_:
            left, right = model.items_[source].ids[:1], model.items_[target].ids[-1:]
            pair = (left[0].item(), right[0].item(), 1.0)
            link = Links.from_pairs([pair], between=(source, target))
            with self._writing, suppress(LinkspreadError):
                model.add_links(link).remove_links(link)

    def _apply(self) -> None:
        """Apply new judgements to the model, or set `refusal`."""
        start = time.perf_counter()
        try:
            self._follower.apply()
        except LinkspreadError as error:
            log.warning("links", extra={"event": {"problem": type(error).__name__}})
            self.refusal = REFUSED
            return
        self.refusal = ""
        self.seconds = time.perf_counter() - start

    def _show(self, number: int) -> None:
        """Publish a snapshot of the model."""
        shown = Shown(number, self._model.snapshot())
        with self._news:
            self.shown = shown
            self._news.notify_all()


def _has_items(model: Any, shown: Any) -> bool:
    """Return whether a model has the items of another, perhaps with kept queries."""
    if model.items_.keys() != shown.items_.keys():
        return False
    pairs = ((own.ids, shown.items_[view].ids) for view, own in model.items_.items())
    shorter = ((a, b, min(len(a), len(b))) for a, b in pairs)
    return all(np.array_equal(a[:n], b[:n]) for a, b, n in shorter)

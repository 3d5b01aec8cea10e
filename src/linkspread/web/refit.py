"""A fit to all judgements so far, beside the page, compared before it is taken.

It runs in a process of its own, so that searches and judgements go on. The new fit
waits in the folder of the model until it is taken; all servers then load it.
"""

import json
import logging
import multiprocessing
import os
import shutil
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from linkspread.ground.errors import LinkspreadError, ModelError
from linkspread.models import ModelFolder, load
from linkspread.selection.refitting import refit_compared
from linkspread.storage.files import locked, read_small, write_file

log = logging.getLogger("linkspread.web")

FOLDER, STATE, LOCK = "refit", "refit.json", ".refit.lock"
MAX_STATE = 1 << 16
# Seconds in which a fit holds its lock, also on a busy machine.
STARTING = 300
# How much less important than searches the fit is to the system.
NICENESS = 10


@dataclass(frozen=True)
class RefitState:
    """How far a fit is, and what it found."""

    kind: str = "none"  # or "running", "ready", "failed"
    since: float = 0.0
    number: int = 0  # last row of the store that it knows
    n_held_out: int = 0
    before: float = 0.0
    after: float = 0.0
    seconds: float = 0.0
    problem: str = ""


class Refit:
    """The fit beside a page; processes that serve one folder share it."""

    def __init__(self, folder: ModelFolder) -> None:
        self._folder, self._path = folder, folder.path

    def state(self) -> RefitState:
        """Return how far the fit is."""
        try:
            data = read_small(self._path, STATE, max_bytes=MAX_STATE)
            state = RefitState(**json.loads(data))
        except (OSError, ValueError, TypeError):
            return RefitState()
        is_old = state.kind == "running" and state.since < time.time() - STARTING
        # Then it was killed, or its server.
        return RefitState() if is_old and self._is_free() else state

    def start(self) -> None:
        """Begin a fit, unless one runs."""
        if self.state().kind == "running":
            return
        self.drop()
        _write(self._path, RefitState("running", since=time.time()))
        arguments = str(self._path), self._folder.place
        # A daemon, so that it ends with the server.
        multiprocessing.get_context("spawn").Process(
            target=fit, args=arguments, daemon=True, name="refit"
        ).start()

    def take(self) -> None:
        """Put the new fit in the place of the model."""
        state = self.state()
        if state.kind != "ready":
            raise LinkspreadError(
                "a new fit can be taken once it is ready, and there is none. Start it, "
                "and wait."
            )
        model = load(self._path / FOLDER)
        place = self._folder.place
        ModelFolder.create(self._path, model, applied=state.number, store=place)
        self.drop()

    def drop(self) -> None:
        """Forget the new fit."""
        if self.state().kind != "running":
            (self._path / STATE).unlink(missing_ok=True)
            shutil.rmtree(self._path / FOLDER, ignore_errors=True)

    def _is_free(self) -> bool:
        """Return whether no process holds the lock of a fit."""
        with suppress(ModelError), locked(self._path / LOCK, wait=False):
            return True
        return False


def fit(path: str, place: Any = None) -> None:
    """Fit the model of a folder to all judgements, and write what came of it."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    folder, start = ModelFolder(path, store=place), time.time()
    with locked(folder.path / LOCK, wait=True):
        try:
            _write(folder.path, RefitState("running", since=start))
            state = _saved(folder, start)
        except Exception as error:
            known = isinstance(error, LinkspreadError)
            sentence = str(error) if known else "the fit failed; the log says why."
            log.exception("refit")
            state = RefitState("failed", since=start, problem=sentence)
        _write(folder.path, state)


def _saved(folder: ModelFolder, start: float) -> RefitState:
    """Fit again and save the new fit beside the model."""
    found = refit_compared(folder)
    shutil.rmtree(folder.path / FOLDER, ignore_errors=True)
    found.model.save(folder.path / FOLDER)
    figures = found._asdict()
    del figures["model"]
    return RefitState("ready", since=start, seconds=time.time() - start, **figures)


def _write(path: Any, state: RefitState) -> None:
    """Write how far a fit is."""
    data = json.dumps(asdict(state)).encode()
    write_file(path, lambda file: file.write(data), STATE)

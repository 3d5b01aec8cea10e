"""A fitted model on the disk, with how it was made and the pairs it knows.

Nothing is there before everything is: a new model is written beside its place and then
moved there in one step, and an older one is replaced by the one step of `save`. What
fails leaves what was there.
"""

import os
import shutil
import signal
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from linkspread.cli.fit_judgements import keep_judged
from linkspread.cli.input_links import JudgedTable
from linkspread.cli.model_folder import ModelFolder
from linkspread.cli.outputs import check_writable
from linkspread.ground.errors import LinkspreadError, MissingDependencyError
from linkspread.storage.files import write_file, writing
from linkspread.storage.manifest import MANIFEST, read_manifest

RUN = "run.toml"


class FittedPairs(NamedTuple):
    """Judged pairs that a model was fitted to, and where they are stored."""

    judged: Sequence[JudgedTable]
    store: str | None = None
    number: int | None = None


def check_output(path: str | None, *, overwrite: bool) -> Path:
    """Return where a model may be written, before anything is computed."""
    if path is None:
        raise LinkspreadError(
            "`--output` must be a folder for the model, and was not given. Add "
            "--output model/."
        )
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise LinkspreadError(
            f"`--output` must be a folder, and {str(folder)!r} is a file. Give another."
        )
    holds_files = folder.exists() and any(folder.iterdir())
    if holds_files and not is_model(folder):
        raise LinkspreadError(
            f"`--output` must be a new folder, an empty one, or a model, and "
            f"{str(folder)!r} holds other files. Give another."
        )
    if holds_files and not overwrite:
        raise LinkspreadError(
            f"`--output` must be a new folder, and {str(folder)!r} holds a model. Add "
            "--overwrite to replace it, or give another."
        )
    check_writable(folder)
    return folder


def is_model(folder: Path) -> bool:
    """Tell a model from a features folder, which is stored alike, and from others."""
    if not (folder / MANIFEST).is_file():
        return False
    try:
        read_manifest(folder, whole=False)
    except LinkspreadError:
        return False
    return True


def write_model(model: Any, output: Path, *, run: str, pairs: FittedPairs) -> list[str]:
    """Write a model folder, all of it or nothing; judgements in it stay."""
    with writing(output):
        if output.exists():
            return _write_over(model, output, run, pairs)
        output.parent.mkdir(parents=True, exist_ok=True)
        stage = output.parent / f".{output.name}.{uuid.uuid4().hex[:8]}"
        try:
            notes = _write(model, stage, run, pairs)
            os.rename(stage, output)
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    return notes


def write_run(folder: Path, run: str) -> None:
    """Write how a model was made, and what was found out about it."""
    data = run.encode()
    write_file(folder, lambda file: file.write(data), lambda entry: RUN)


def _write_over(model: Any, folder: Path, run: str, pairs: FittedPairs) -> list[str]:
    """Write into an empty folder, which another disk may begin in, or over a model."""
    was_empty = not any(folder.iterdir())
    with _undisturbed():
        try:
            return _write(model, folder, run, pairs)
        except BaseException:
            for entry in folder.iterdir() if was_empty else ():
                with suppress(OSError):
                    entry.unlink()
            raise


def _write(model: Any, folder: Path, run: str, pairs: FittedPairs) -> list[str]:
    """Write the model, how it was made, and which judgements it knows."""
    model.save(folder)
    write_run(folder, run)
    opened = ModelFolder(folder, store=pairs.store)
    opened.set_absorbed(pairs.number or 0)
    return [] if pairs.number is not None else _keep(opened, pairs.judged)


def _keep(folder: ModelFolder, judged: Sequence[JudgedTable]) -> list[str]:
    """Store the pairs, or note why they are not stored."""
    if not judged:
        return []
    try:
        keep_judged(folder, judged)
    except MissingDependencyError as error:
        return [f"the pairs are in the model, but in no store: {error}"]
    return []


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Put an interrupt off until a few steps that belong together are done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[Any] = []
    before: Callable[..., Any] | int | None = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, lambda *given: asked.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt

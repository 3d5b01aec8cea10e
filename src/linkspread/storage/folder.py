"""A model folder: written atomically, read as untrusted input.

::

    model/
      manifest.json                 contents, versions and files
      arrays-<checksum>.safetensors

The file of arrays is named by its checksum. Replacing the manifest, one operation of
the file system, makes a new file the model; the old one is removed afterwards.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.ground.errors import ModelError
from linkspread.storage.files import (
    PARTIAL_NAME,
    FileEntry,
    hash_file,
    locked,
    naming_file,
    open_plain,
    remove_abandoned,
    sync_folder,
    write_file,
    writing,
)
from linkspread.storage.manifest import (
    DATA_NAME,
    MANIFEST,
    MODEL,
    check_entry,
    make_manifest,
    read_manifest,
)
from linkspread.storage.tensors import read_tensors, write_tensors

Array = np.ndarray

# How often a reader starts again if a writer replaced the model meanwhile.
N_TRIES = 5


@dataclass
class Content:
    """The contents of a folder."""

    tree: dict[str, Any]
    arrays: dict[str, Array]
    about: dict[str, Any]
    arrays_file: str = ""


def write_folder(
    path: str | os.PathLike[str], content: Content, *, kind: str = MODEL
) -> None:
    """Write a model folder, or replace the model in one."""
    folder = Path(path)
    # All checks come before anything is written.
    check_target(folder, kind=kind)
    nowhere = FileEntry(f"arrays-{'0' * 32}.safetensors", 1 << 62, "0" * 64)
    make_manifest(content, nowhere, kind=kind)
    with writing(folder), _kept_whole(folder), locked(folder, wait=False):
        remove_abandoned(folder)
        arrays = write_file(
            folder,
            lambda file: write_tensors(file, content.arrays),
            "arrays-{}.safetensors",
        )
        # The data must be on disk before the manifest names them.
        sync_folder(folder)
        data = make_manifest(content, arrays, kind=kind)
        write_file(folder, lambda file: file.write(data), MANIFEST)
        sync_folder(folder)
        _remove_data(folder, lambda name: name != arrays.name)


@contextmanager
def _kept_whole(folder: Path) -> Iterator[None]:
    """Create a missing folder; on failure remove what the failed save added."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    before = set(os.listdir(folder))
    try:
        yield
    except BaseException:
        manifest = folder / MANIFEST
        named = manifest.read_bytes() if manifest.exists() else b""
        _remove_data(
            folder, lambda own: own not in before and own.encode() not in named
        )
        if is_new:
            with suppress(OSError):  # of a folder that is not empty
                folder.rmdir()
        raise


def read_folder(
    path: str | os.PathLike[str], *, kind: str = MODEL, verify: bool = True
) -> Content:
    """Read a model folder, and refuse one that was changed or damaged."""
    folder = Path(path)
    if not folder.is_dir():
        raise ModelError(
            f"a model must be a folder, and there is none at {str(folder)!r}. "
            "Correct the path."
        )
    for _ in range(N_TRIES):
        manifest = read_manifest(folder, kind=kind)
        try:
            return _read_files(folder, manifest, verify)
        except FileNotFoundError as error:
            # Either a file was lost, or the model was replaced.
            missing = Path(error.filename).name
            if read_manifest(folder, kind=kind) == manifest:
                break
    raise ModelError(
        f"{missing}: a model must have all files that its manifest names, and this one "
        "is not there. Copy the whole folder, or save the model again."
    )


def _read_files(folder: Path, manifest: dict[str, Any], verify: bool) -> Content:
    """Return the contents of a folder, whose arrays are mapped into memory."""
    with naming_file(MANIFEST):
        entry = check_entry(manifest["arrays"])
    with naming_file(entry.name), open_plain(folder, entry.name) as file:
        n_bytes = os.fstat(file.fileno()).st_size
        if n_bytes != entry.n_bytes:
            raise ModelError(
                f"the file must have {entry.n_bytes:,} bytes, got {n_bytes:,}. Copy "
                "it again, or save the model again."
            )
        if verify and hash_file(file) != entry.sha256:
            raise ModelError(
                "the file must have the checksum of its manifest, and has another: it "
                "was changed or damaged. Copy it again, or save the model again."
            )
        arrays = read_tensors(file)
    return Content(manifest["content"], arrays, manifest["about"], entry.name)


def check_target(folder: Path, *, kind: str = MODEL) -> None:
    """Refuse a target that holds anything but a folder of this kind."""
    if folder.exists() and not folder.is_dir():
        raise ModelError(
            f"the target must be a folder, and {str(folder)!r} is a file. Give "
            "another path."
        )
    names = set(os.listdir(folder)) if folder.exists() else set()
    if MANIFEST in names:
        read_manifest(folder, kind=kind, whole=False)
    elif not all(
        DATA_NAME.fullmatch(own) or PARTIAL_NAME.fullmatch(own) for own in names
    ):
        raise ModelError(
            f"the target must be a new folder, an empty one, or one of `format` "
            f"{kind!r}, and {str(folder)!r} holds other files. Give another path."
        )


def _remove_data(folder: Path, chosen: Callable[[str], bool]) -> None:
    """Remove chosen data files; those in use are left for the next save."""
    for name in os.listdir(folder):
        if DATA_NAME.fullmatch(name) and chosen(name):
            with suppress(OSError):
                os.unlink(folder / name)

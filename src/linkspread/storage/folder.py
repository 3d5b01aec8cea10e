"""A model folder: written atomically, read as untrusted input.

::

    model/
      manifest.json                 contents, versions and files
      arrays-<checksum>.safetensors

The file of arrays is named by its checksum. Replacing the manifest, one operation of
the file system, makes a new file the model; the old one is removed afterwards. The
manifest is JSON, whose size and depth are bounded and which states its own checksum.
"""

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.ground.errors import ModelError
from linkspread.ground.progress import format_bytes
from linkspread.storage.files import (
    PARTIAL_NAME,
    FileEntry,
    brief,
    damaged,
    hash_file,
    locked,
    naming_file,
    open_plain,
    read_small,
    remove_abandoned,
    sync_folder,
    write_file,
    writing,
)
from linkspread.storage.tensors import (
    check_depth,
    checksum,
    parse_json,
    read_tensors,
    write_tensors,
)

Array = np.ndarray

MANIFEST = "manifest.json"
# Bytes of JSON, which takes about ten times as much memory.
MAX_MANIFEST = 1 << 22
# Kinds of folder; one is never overwritten by the other.
MODEL, FEATURES = "linkspread model", "linkspread features"
FORMAT_VERSION = 5
# `format` and versions never change, so that any version can identify a folder.
KEYS = {
    "format", "format_version", "library_version", "about", "arrays", "content",
    "sha256",
}  # fmt: skip
# The file of arrays is named after the beginning of its checksum.
DATA_NAME = re.compile(r"arrays-[0-9a-f]{32}\.safetensors")
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


def make_manifest(content: Content, arrays: FileEntry, *, kind: str) -> bytes:
    """Return the manifest of a folder; refuse one that readers would refuse."""
    # Imported here, because the package imports this room.
    from linkspread import __version__

    document = {
        "format": kind,
        "format_version": FORMAT_VERSION,
        "library_version": __version__,
        "about": content.about,
        "arrays": {
            "name": arrays.name,
            "bytes": arrays.n_bytes,
            "sha256": arrays.sha256,
        },
        "content": content.tree,
    }
    check_depth(document)
    document["sha256"] = checksum(document)
    data = json.dumps(document, ensure_ascii=False, allow_nan=False).encode()
    if len(data) > MAX_MANIFEST:
        raise ModelError(
            "names and parameters of a model must take at most "
            f"{format_bytes(MAX_MANIFEST)} as JSON, got {format_bytes(len(data))}. "
            "Give large matrices as arrays, and shorter names of columns."
        )
    return data


def read_manifest(
    folder: Path, *, kind: str = MODEL, whole: bool = True
) -> dict[str, Any]:
    """Return the manifest of a folder, checked."""
    with naming_file(MANIFEST):
        try:
            data = read_small(folder, MANIFEST, max_bytes=MAX_MANIFEST)
        except FileNotFoundError as error:
            raise ModelError(
                f"a model must have a manifest, and {str(folder)!r} has none: it is "
                "not a model, or its first save was cut short. Save the model again."
            ) from error
        document = parse_json(data)
        if document.get("format") != kind:
            raise ModelError(
                f"the folder must have `format` {kind!r}, got "
                f"{brief(document.get('format'))}. Give another folder."
            )
        if whole:
            _check(document)
    return document


def _check(document: dict[str, Any]) -> None:
    """Refuse a manifest of another version, and one that was changed."""
    version, library = document.get("format_version"), document.get("library_version")
    if type(version) is not int or version != FORMAT_VERSION:
        raise ModelError(
            f"a model must have `format_version` {FORMAT_VERSION}, got "
            f"{brief(version)}, written by linkspread {brief(library)}. Install that "
            "version or a newer one, or fit the model again."
        )
    if set(document) != KEYS or not all(
        isinstance(document[key], dict) for key in ("about", "arrays", "content")
    ):
        raise damaged(f"a manifest must have {', '.join(sorted(KEYS))}", document)
    rest = {key: value for key, value in document.items() if key != "sha256"}
    if checksum(rest) != document["sha256"]:
        raise ModelError(
            "a manifest must have the checksum that it states, and has another: it was "
            "changed or damaged. Copy it again, or save the model again."
        )


def check_entry(entry: Any) -> FileEntry:
    """Return the checked manifest entry of a data file."""
    if not isinstance(entry, dict) or set(entry) != {"name", "bytes", "sha256"}:
        raise damaged("a file must have `name`, `bytes` and `sha256`", entry)
    name, n_bytes, sha256 = entry["name"], entry["bytes"], entry["sha256"]
    if not isinstance(name, str) or not DATA_NAME.fullmatch(name):
        raise damaged("a data file must have a name of linkspread's form", name)
    is_size = type(n_bytes) is int and n_bytes >= 0
    is_hash = isinstance(sha256, str) and re.fullmatch("[0-9a-f]{64}", sha256)
    if not is_size or not is_hash:
        raise damaged(f"{name} must have a size and a checksum", (n_bytes, sha256))
    return FileEntry(name, n_bytes, sha256)

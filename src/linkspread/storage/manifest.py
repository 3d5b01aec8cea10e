"""The manifest of a model folder: which files, written by whom, and what they mean."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from linkspread.ground.errors import ModelError
from linkspread.storage.documents import checksum, parse_json
from linkspread.storage.files import FileEntry, brief, naming_file, open_plain

if TYPE_CHECKING:
    from linkspread.storage.folder import Content

MANIFEST = "manifest.json"
# Of JSON, which takes about ten times its size when it is read.
MAX_MANIFEST = 1 << 22
# What a folder may hold; they are stored alike, and never one over the other.
MODEL, FEATURES = "linkspread model", "linkspread features"
FORMAT_VERSION = 2
# Whatever the rest is, so that any version can tell which one wrote a folder.
KEYS = {
    "format", "format_version", "library_version", "about", "arrays", "ids",
    "content", "sha256",
}  # fmt: skip


def make_manifest(
    content: "Content",
    arrays: FileEntry,
    ids: dict[str, tuple[FileEntry, int]],
    *,
    kind: str = MODEL,
) -> dict[str, Any]:
    """Return the manifest of a folder."""
    # Only here: the package itself imports this room.
    from linkspread import __version__

    document = {
        "format": kind,
        "format_version": FORMAT_VERSION,
        "library_version": __version__,
        "about": content.about,
        "arrays": _entry(arrays),
        "ids": {name: _entry(e) | {"n_ids": n} for name, (e, n) in ids.items()},
        "content": content.tree,
    }
    return {**document, "sha256": checksum(document)}


def read_manifest(
    folder: Path, *, kind: str = MODEL, whole: bool = True
) -> dict[str, Any]:
    """Return the manifest of a folder, or say why it is none."""
    with naming_file(MANIFEST):
        document = parse_json(_read(folder))
        if document.get("format") != kind:
            raise ModelError(
                f"the folder must have `format` {kind!r}, got "
                f"{brief(document.get('format'))}. Give another folder."
            )
        if whole:
            _check(document)
    return document


def _read(folder: Path) -> bytes:
    """Return the bytes of the manifest, of which there may not be too many."""
    try:
        with open_plain(folder, MANIFEST) as file:
            n_bytes = os.fstat(file.fileno()).st_size
            data = file.read(min(n_bytes, MAX_MANIFEST))
    except FileNotFoundError as error:
        raise ModelError(
            f"a model must have a manifest, and {str(folder)!r} has none: it is no "
            "model, or its first save was cut short. Save the model again."
        ) from error
    if n_bytes > MAX_MANIFEST:
        raise ModelError(
            f"a manifest must have at most {MAX_MANIFEST:,} bytes, got {n_bytes:,}. "
            "Save the model again."
        )
    return data


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
        isinstance(document[key], dict) for key in ("about", "arrays", "ids", "content")
    ):
        raise ModelError(
            f"a manifest must have {', '.join(sorted(KEYS))}, got "
            f"{', '.join(sorted(document))!s:.90}. Save the model again."
        )
    if not all(isinstance(entry, dict) for entry in document["ids"].values()):
        raise ModelError(
            "`ids` must name a file for each column, and does not. Save the model "
            "again."
        )
    rest = {key: value for key, value in document.items() if key != "sha256"}
    if checksum(rest) != document["sha256"]:
        raise ModelError(
            "a manifest must have the checksum that it states, and has another: it was "
            "changed or damaged. Copy it again, or save the model again."
        )


def _entry(entry: FileEntry) -> dict[str, Any]:
    """Return what a manifest says of a file."""
    return {"name": entry.name, "bytes": entry.n_bytes, "sha256": entry.sha256}

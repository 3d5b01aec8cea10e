"""The manifest of a model folder: its files, versions and contents.

It is JSON. On reading, its size and depth are bounded, numbers must be finite, names
unique, and the checksum correct.
"""

import hashlib
import json
import math
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from linkspread.ground.errors import ModelError
from linkspread.ground.progress import format_bytes
from linkspread.storage.files import (
    DATA_NAME,
    FileEntry,
    brief,
    naming_file,
    open_plain,
)

if TYPE_CHECKING:
    from linkspread.storage.folder import Content

MANIFEST = "manifest.json"
# Bytes of JSON, which takes about ten times as much memory.
MAX_MANIFEST = 1 << 22
# Kinds of folder; one is never overwritten by the other.
MODEL, FEATURES = "linkspread model", "linkspread features"
FORMAT_VERSION = 3
# `format` and versions never change, so that any version can identify a folder.
KEYS = {
    "format", "format_version", "library_version", "about", "arrays", "ids",
    "content", "sha256",
}  # fmt: skip
# Deepest nesting of JSON.
MAX_DEPTH = 24
# Levels written with one entry per line.
OPEN_LEVELS = 3


def make_manifest(
    content: "Content",
    arrays: FileEntry,
    ids: dict[str, tuple[FileEntry, int]],
    *,
    kind: str = MODEL,
) -> dict[str, Any]:
    """Return the manifest of a folder."""
    # Imported here, because the package imports this room.
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
    """Return the manifest of a folder, checked."""
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
    """Return the bytes of the manifest, limited in number."""
    try:
        with open_plain(folder, MANIFEST) as file:
            n_bytes = os.fstat(file.fileno()).st_size
            data = file.read(min(n_bytes, MAX_MANIFEST))
    except FileNotFoundError as error:
        raise ModelError(
            f"a model must have a manifest, and {str(folder)!r} has none: it is not a "
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
    """Return the manifest entry of a file."""
    return {"name": entry.name, "bytes": entry.n_bytes, "sha256": entry.sha256}


def check_entry(entry: Any, suffix: str) -> FileEntry:
    """Return the checked manifest entry of a data file."""
    if not isinstance(entry, dict) or set(entry) != {"name", "bytes", "sha256"}:
        raise ModelError(
            f"a file must have `name`, `bytes` and `sha256`, got {brief(entry)}. "
            "Save the model again."
        )
    name, n_bytes, sha256 = entry["name"], entry["bytes"], entry["sha256"]
    if not isinstance(name, str) or not DATA_NAME.fullmatch(name):
        raise ModelError(
            f"a data file must have a name of linkspread's form, got {brief(name)}. "
            "Save the model again."
        )
    is_size = type(n_bytes) is int and n_bytes >= 0
    is_hash = isinstance(sha256, str) and re.fullmatch("[0-9a-f]{64}", sha256)
    if not name.endswith(suffix) or not is_size or not is_hash:
        raise ModelError(
            f"{name} must be a {suffix} file with its size and checksum, got "
            f"{brief(n_bytes)} bytes and checksum {brief(sha256)}. Save the model "
            "again."
        )
    return FileEntry(name, n_bytes, sha256)


def parse_json(data: bytes) -> dict[str, Any]:
    """Return a JSON object, checked."""
    try:
        document = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except RecursionError as error:
        raise ModelError(_too_deep()) from error
    except ModelError:
        raise
    except ValueError as error:  # also for invalid UTF-8
        raise ModelError(
            f"it must be JSON, and is not ({error!s:.80}). Save the model again."
        ) from error
    if not isinstance(document, dict):
        raise ModelError(
            f"it must be a JSON object, got a {type(document).__name__}. "
            "Save the model again."
        )
    check_depth(document)
    return document


def check_depth(document: Any, max_depth: int = MAX_DEPTH) -> None:
    """Refuse a document that is nested too deep."""
    level = [document]
    for _ in range(max_depth):
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return
    raise ModelError(_too_deep())


def format_json(document: dict[str, Any], *, max_bytes: int) -> bytes:
    """Return a document as readable JSON."""
    data = _indented(document, OPEN_LEVELS).encode("utf-8")
    if len(data) > max_bytes:
        raise ModelError(
            f"names and parameters of a model must take at most "
            f"{format_bytes(max_bytes)} as JSON, got {format_bytes(len(data))}. Give "
            "large matrices as arrays, and shorter names of columns."
        )
    return data


def checksum(document: dict[str, Any]) -> str:
    """Return a checksum of a document, independent of its layout."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _indented(value: Any, n_levels: int, margin: str = "") -> str:
    """Return JSON whose outer levels have one entry per line."""
    if n_levels == 0 or not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    inner = f"{margin} "
    if isinstance(value, dict):
        names = [f"{json.dumps(name, ensure_ascii=False)}: " for name in value]
        values, (opening, closing) = list(value.values()), "{}"
    else:
        names, values, (opening, closing) = [""] * len(value), value, "[]"
    parts = [
        f"{inner}{name}{_indented(own, n_levels - 1, inner)}"
        for name, own in zip(names, values, strict=True)
    ]
    return f"{opening}\n" + ",\n".join(parts) + f"\n{margin}{closing}"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; refuse repeated names."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ModelError(
            "names in a JSON object must be unique, and some are repeated. Save the "
            "model again."
        )
    return found


def _refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and infinity."""
    raise ModelError(f"numbers must be finite, got {name}. Save the model again.")


def _finite(text: str) -> float:
    """Return a number; refuse one that overflows."""
    value = float(text)
    if not math.isfinite(value):
        raise ModelError(
            f"numbers must be finite, got {text:.40}. Save the model again."
        )
    return value


def _too_deep() -> str:
    """Return the message about JSON that is nested too deep."""
    return (
        f"JSON must be nested at most {MAX_DEPTH} deep, and is deeper. Save the "
        "model again."
    )

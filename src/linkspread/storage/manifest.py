"""The manifest of a model folder: its files, versions and contents.

It is JSON. On reading, its size and depth are bounded, numbers must be finite, names
unique, and the checksum correct.
"""

import hashlib
import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from linkspread.ground.errors import ModelError
from linkspread.ground.progress import format_bytes
from linkspread.storage.files import (
    FileEntry,
    brief,
    damaged,
    naming_file,
    read_small,
)

if TYPE_CHECKING:
    from linkspread.storage.folder import Content

MANIFEST = "manifest.json"
# Bytes of JSON, which takes about ten times as much memory.
MAX_MANIFEST = 1 << 22
# Kinds of folder; one is never overwritten by the other.
MODEL, FEATURES = "linkspread model", "linkspread features"
FORMAT_VERSION = 4
# `format` and versions never change, so that any version can identify a folder.
KEYS = {
    "format", "format_version", "library_version", "about", "arrays", "content",
    "sha256",
}  # fmt: skip
# The file of arrays is named after the beginning of its checksum.
DATA_NAME = re.compile(r"arrays-[0-9a-f]{32}\.safetensors")
MAX_DEPTH = 24


def make_manifest(content: "Content", arrays: FileEntry, *, kind: str) -> bytes:
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


def parse_json(data: bytes) -> dict[str, Any]:
    """Return a JSON object; refuse depth, repeated names and numbers not finite."""
    try:
        document = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except RecursionError as error:
        raise _too_deep() from error
    except ModelError:
        raise
    except ValueError as error:  # also for invalid UTF-8
        raise damaged("it must be JSON", str(error)) from error
    if not isinstance(document, dict):
        raise damaged("it must be a JSON object", document)
    check_depth(document)
    return document


def check_depth(document: Any) -> None:
    """Refuse a document that is nested too deep."""
    level = [document]
    for _ in range(MAX_DEPTH):
        nodes = [node for node in level if isinstance(node, dict | list)]
        level = [
            child
            for node in nodes
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return
    raise _too_deep()


def checksum(document: dict[str, Any]) -> str:
    """Return a checksum of a document, independent of its layout."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; refuse repeated names."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise damaged("names in a JSON object must be unique", [k for k, _ in pairs])
    return found


def _refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and infinity."""
    raise damaged("numbers must be finite", name)


def _finite(text: str) -> float:
    """Return a number; refuse one that overflows."""
    value = float(text)
    return value if math.isfinite(value) else _refuse_constant(text)


def _too_deep() -> ModelError:
    """Return the error about JSON that is nested too deep."""
    return ModelError(
        f"JSON must be nested at most {MAX_DEPTH} deep, and is deeper. Save the "
        "model again."
    )

"""The content of one item, read when it is needed and refused in a sentence."""

import codecs
import hashlib
import html
import os
import re
import stat
from pathlib import Path
from typing import Any, NamedTuple

from linkspread.ground.errors import LinkspreadError

# A text file beyond this is something else; a book has about a megabyte.
MAX_TEXT = 1 << 26
CHUNK = 1 << 20
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Signs that no text has, other than tabs, line breaks and form feeds.
CONTROL = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f]")
TAG = re.compile(r"<[^<>]*>")


class Problem(NamedTuple):
    """Tell why an item was left out of a view.

    Parameters
    ----------
    id : str
    view : str
    kind : str
        One or two words, by which problems are counted.
    sentence : str
        For people.
    """

    id: str
    view: str
    kind: str
    sentence: str


class UnreadableContent(LinkspreadError):
    """A file or a text that cannot be an item.

    Parameters
    ----------
    message : str
    kind : str, default="unreadable"
        One or two words, by which problems are counted.
    """

    def __init__(self, message: str, kind: str = "unreadable") -> None:
        super().__init__(message)
        self.kind = kind


class Seen(NamedTuple):
    """Hold what is kept of a content that was looked at."""

    digest: bytes
    stamp: tuple[int, ...] | None


def look_at(content: Any, kind: str) -> Seen:
    """Hash a content; of a text also see whether it is one."""
    if kind == "text":
        stamp = _stamp(content) if isinstance(content, Path) else None
        # A file that ends in .xml is read otherwise than one of the same bytes.
        text = read_text(content)
        return Seen(hashlib.sha256(text.encode("utf-8")).digest(), stamp)
    with _opened(content) as file:
        found = hashlib.sha256()
        while chunk := file.read(CHUNK):
            found.update(chunk)
        stamp = _stamp_of(os.fstat(file.fileno()))
    if not stamp[0]:
        raise UnreadableContent(
            f"{content.name!r} must hold a picture, got an empty file. Copy it again.",
            "empty",
        )
    return Seen(found.digest(), stamp)


def unchanged(content: Any, seen: Seen) -> bool:
    """Tell whether a file is still the one that was looked at."""
    try:
        return seen.stamp is None or _stamp(content) == seen.stamp
    except UnreadableContent:
        return False


def read_text(content: Any) -> str:
    """Return the text of an item, without the tags of XML."""
    name = content.name if isinstance(content, Path) else "the text"
    text = _decode(content) if isinstance(content, Path) else content
    if isinstance(content, Path) and content.suffix.lower() == ".xml":
        text = html.unescape(TAG.sub(" ", text))
    if not text.strip():
        raise UnreadableContent(
            f"{name!r} must hold a text, and is empty. Write one, or remove it.",
            "empty",
        )
    if CONTROL.search(text):
        raise UnreadableContent(
            f"{name!r} must be plain text, and holds control signs as other files do. "
            "Save it as text.",
            "binary",
        )
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise UnreadableContent(
            f"{name!r} must be Unicode, and holds half characters. Save it as UTF-8.",
            "undecodable",
        )
    return text


def _decode(path: Path) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 with a mark of its order."""
    with _opened(path) as file:
        data = file.read(MAX_TEXT + 1)
    if len(data) > MAX_TEXT:
        raise UnreadableContent(
            f"{path.name!r} must have at most {MAX_TEXT:,} bytes as a text, and has "
            "more. Part it.",
            "too large",
        )
    encoding = next((own for m, own in MARKS.items() if data.startswith(m)), "utf-8")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        # Most files with a zero byte are no text in any encoding.
        kind = "binary" if b"\0" in data and encoding == "utf-8" else "undecodable"
        raise UnreadableContent(
            f"{path.name!r} must be text in UTF-8, and is not at byte "
            f"{error.start:,}. Save it anew as UTF-8.",
            kind,
        ) from error


def _opened(path: Path) -> Any:
    """Open a plain file, or say why there is none."""
    try:
        _stamp(path)
        return open(path, "rb")
    except OSError as error:
        raise _refused(path, error) from error


def _stamp(path: Path) -> tuple[int, ...]:
    """Return what changes with a plain file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError) as error:
        raise _refused(path, error) from error
    if not stat.S_ISREG(found.st_mode):
        # A pipe would be waited for without end.
        kind = "directory" if stat.S_ISDIR(found.st_mode) else "not a file"
        raise UnreadableContent(
            f"{path.name!r} must be a plain file, got a directory or a device. Remove "
            "it.",
            kind,
        )
    return _stamp_of(found)


def _stamp_of(found: os.stat_result) -> tuple[int, ...]:
    """Return size, time and number of a file."""
    return found.st_size, found.st_mtime_ns, found.st_ino


def _refused(path: Path, error: Exception) -> UnreadableContent:
    """Return the problem of a file that the system does not give."""
    if isinstance(error, PermissionError):
        kind, rule = "no permission", "be readable, and may not be read"
    elif os.path.islink(path):
        kind, rule = "broken link", "exist, and is a symbolic link to nowhere"
    else:
        kind, rule = "missing", "exist, and does not"
    message = f"{path.name!r} must {rule}. Mend it, or leave it out."
    return UnreadableContent(message, kind)

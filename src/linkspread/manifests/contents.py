"""Read the content of one item, or refuse it with a message."""

import codecs
import hashlib
import html
import os
import re
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from linkspread.features.pictures import open_regular
from linkspread.ground.errors import LinkspreadError

# Larger files are no texts; a book has about a megabyte.
_MAX_TEXT = 1 << 26
_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# Control characters other than tabs, line breaks and form feeds.
_CONTROL = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f]")
_TAG = re.compile(r"<[^<>]*>")
# Rule, value received and remedy, by kind of problem.
_SENTENCES = {
    "missing": "exist, got no file. Correct its path, or leave it out.",
    "broken link": "exist, got a symbolic link to nowhere. Correct or remove it.",
    "no permission": "be readable, got no permission. Change its permissions.",
    "directory": "be a regular file, got a directory. Remove it.",
    "not a file": "be a regular file, got a pipe or a device. Remove it.",
    "unreadable": "be readable, got an error of the disk. Copy it again.",
    "changed": "stay unchanged while it is read, got a change. Run again.",
    "replaced": "be as when its features were made, got another. Make them again.",
    "empty": "have content, got an empty one. Write it, or leave it out.",
    "too large": f"have at most {_MAX_TEXT:,} bytes as a text, got more. Split it.",
    "binary": "be plain text, got control characters. Save it as text.",
    "undecodable": "be text in UTF-8, got other bytes. Save it as UTF-8.",
}


class Problem(NamedTuple):
    """The reason why an item was left out of a view."""

    id: str
    view: str
    kind: str  # one or two words, by which problems are counted
    sentence: str


class UnreadableContent(LinkspreadError):
    """A file or a text that cannot be an item."""

    def __init__(self, message: str, kind: str = "unreadable") -> None:
        super().__init__(message)
        self.kind = kind


class ContentHash(NamedTuple):
    """The hash of a content, and what reveals later changes of its file."""

    digest: bytes
    stamp: tuple[int, ...] | None  # size, time and inode of a file


def refuse(content: Any, kind: str) -> UnreadableContent:
    """Return the error about a content, with the message of its kind."""
    name = repr(content.name) if isinstance(content, Path) else "the text"
    return UnreadableContent(f"{name} must {_SENTENCES[kind]}", kind)


def hash_content(content: Any, kind: str) -> ContentHash:
    """Hash a content; refuse a text that cannot be read."""
    stamp = digest = None
    if isinstance(content, Path):
        with _opened(content) as file:
            stamp = _stamp_of(os.fstat(file.fileno()))
            if kind == "picture":
                digest = hashlib.file_digest(file, "sha256").digest()
    if digest is None:
        # The hash of the text: a .xml file is read without its tags.
        digest = hashlib.sha256(read_text(content).encode("utf-8")).digest()
    return ContentHash(digest, stamp)


def is_unchanged(content: Any, known: ContentHash) -> bool:
    """Return whether a file has not changed since it was hashed."""
    try:
        return known.stamp is None or _stamp_of(os.stat(content)) == known.stamp
    except OSError:
        return False


def read_text(content: Any) -> str:
    """Return the text of an item, without the tags of XML."""
    text = _decode(content) if isinstance(content, Path) else content
    if isinstance(content, Path) and content.suffix.lower() == ".xml":
        text = html.unescape(_TAG.sub(" ", text))
    if not text.strip():
        raise refuse(content, "empty")
    if _CONTROL.search(text):
        raise refuse(content, "binary")
    # Half of a pair of surrogates is no character.
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise refuse(content, "undecodable")
    return text


def _decode(path: Path) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 with a byte order mark."""
    with _opened(path) as file:
        data = file.read(_MAX_TEXT + 1)
    if len(data) > _MAX_TEXT:
        raise refuse(path, "too large")
    encoding = next((own for m, own in _MARKS.items() if data.startswith(m)), "utf-8")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        # Most files with a zero byte are no text in any encoding.
        is_binary = b"\0" in data and encoding == "utf-8"
        raise refuse(path, "binary" if is_binary else "undecodable") from error


def _opened(path: Path) -> AbstractContextManager[Any]:
    """Open a regular file, or raise UnreadableContent."""
    return open_regular(path, partial(refuse, path))


def _stamp_of(found: os.stat_result) -> tuple[int, ...]:
    """Return size, time and inode of a file."""
    return found.st_size, found.st_mtime_ns, found.st_ino

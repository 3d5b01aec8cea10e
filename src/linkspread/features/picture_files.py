"""Picture files, read by what they hold and never by their names.

What cannot be read is told apart by kind, so that a program can count the kinds of a
large collection, and people see at once what to do about each.
"""

import errno
import io
import os
import re
import stat
import struct
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, BinaryIO

from linkspread.ground.errors import UnreadablePicture, require

# Threads hold a picture each, and one of this size takes 300 MB.
MAX_PIXELS = 100_000_000
# Pillow reads more than these, some of them by starting other programs.
_FORMATS = "AVIF BMP GIF JPEG JPEG2000 MPO PNG PPM TIFF WEBP".split()
# First bytes of formats, to tell a damaged picture from what is none.
_STARTS = {
    rb"\xff\xd8\xff": "JPEG",
    rb"\x89PNG": "PNG",
    rb"GIF8[79]a": "GIF",
    rb"RIFF.{4}WEBP": "WEBP",
    rb"BM.{4}\0{4}": "BMP",
    rb"II\*\0|MM\0\*": "TIFF",
    rb"\0\0\0\x0cjP  |\xff\x4f\xff\x51": "JPEG2000",
    rb".{4}ftypavi[fs]": "AVIF",
    rb".{4}ftyp(hei|hev|mif|msf)": "HEIC",
    rb"\0\0\0\x0cJXL |\xff\x0a": "JPEG XL",
    rb"%!PS|\xc5\xd0\xd3\xc6": "EPS",
    rb"%PDF": "PDF",
    rb"8BPS": "PSD",
    rb"gimp xcf": "XCF",
    rb"icns": "ICNS",
    rb"\0\0\x01\0": "ICO",
    rb"DDS ": "DDS",
    rb"II\+\0|MM\0\+": "BigTIFF",
    rb"\s*(<\?xml.*?)?(<!--.*?-->\s*)?<svg": "SVG",
}
_MISSING = "Check the path."
_REPLACE = "Replace it or leave it out."
_CONVERT = "Convert it to PNG or JPEG, or leave it out."
# What was received and what to do about it, by kind.
_SENTENCES = {
    "missing": ("a path without a file", _MISSING),
    "broken link": ("a symbolic link to nowhere", "Mend the link or leave it out."),
    "no permission": ("a file that may not be read", "Change its permissions."),
    "directory": ("a directory", "Give the files in it."),
    "not a file": ("a pipe, a socket or a device", "Save the picture to a file."),
    "empty": ("an empty one", _REPLACE),
    "not a picture": ("something else", _REPLACE),
    "unsupported format": ("another format", _CONVERT),
    "corrupt header": ("a damaged beginning", _REPLACE),
    "truncated": ("one that is cut off", _REPLACE),
    "damaged": ("a damaged one", _REPLACE),
    "too large": ("a larger one", "Make it smaller or leave it out."),
}


def refuse(name: str, kind: str, got: str | None = None) -> UnreadablePicture:
    """Return the error about a picture, with a sentence that fits its kind."""
    rule = "be a complete picture"
    if kind == "too large":
        rule = f"have at most {MAX_PIXELS:,} pixels"
    usual, remedy = _SENTENCES[kind]
    return UnreadablePicture(f"{name} must {rule}, got {got or usual}. {remedy}", kind)


@contextmanager
def open_file(path: Any, name: str) -> Iterator[Any]:
    """Open a picture file whose header makes sense; its pixels are not read yet."""
    with _open_regular(path, name) as file:
        image = _open_image(file, name)
        check_size(image, name)
        yield image


def check_size(image: Any, name: str) -> None:
    """Refuse a picture that has no pixel or more than allowed, by its header."""
    width, height = image.size
    if not width * height:
        raise refuse(name, "empty", f"one of {width} x {height}")
    if width * height > MAX_PIXELS:
        raise refuse(name, "too large", f"{width:,} x {height:,}")


@contextmanager
def decoding(name: str) -> Iterator[None]:
    """Turn what decoders raise on damaged pictures into one sentence."""
    try:
        with _QUIET:
            yield
    except UnreadablePicture:
        raise
    except MemoryError as error:
        raise refuse(name, "too large", "more than fits into memory") from error
    except Exception as error:
        # Damaged files raise whatever the decoder of their format comes upon.
        raise refuse(name, _decoding_kind(error)) from error


def _pillow() -> Any:
    """Return the module that reads pictures."""
    return require("PIL.Image", extra="images", purpose="Reading pictures")


@cache
def _formats() -> list[str]:
    """Return the formats that the installed Pillow was built with."""
    pil = _pillow()
    pil.init()
    return [name for name in _FORMATS if name in pil.OPEN]


def _open_image(file: BinaryIO, name: str) -> Any:
    """Return what Pillow makes of a file by its first bytes."""
    pil = _pillow()
    try:
        return pil.open(file, formats=_formats())
    except pil.UnidentifiedImageError as error:
        # One wrong check sum is enough for that, also of a date or a comment.
        with suppress(Exception):
            return pil.open(_bare_png(file), formats=["PNG"])
        raise _header_error(error, file, name) from error
    except Exception as error:
        raise _header_error(error, file, name) from error


def _bare_png(file: BinaryIO) -> io.BytesIO:
    """Return a PNG without the chunks that a picture can do without."""
    file.seek(0)
    kept = [file.read(8)]
    while kept[0] == b"\x89PNG\r\n\x1a\n" and len(start := file.read(8)) == 8:
        length, kind = struct.unpack(">I4s", start)
        chunk = start + file.read(length + 4)
        # Their first letter is small; transparency alone changes what is seen.
        if not kind[0] & 32 or kind == b"tRNS":
            kept.append(chunk)
    return io.BytesIO(b"".join(kept))


@contextmanager
def _open_regular(path: Any, name: str) -> Iterator[BinaryIO]:
    """Open a file that has something in it."""
    try:
        status = os.stat(path)
        # Opening a pipe would wait for somebody to write to it.
        _check_status(status, name)
        file = open(path, "rb")
    except (OSError, ValueError) as error:
        # A null character in a path is a ValueError.
        if isinstance(error, UnreadablePicture):
            raise
        raise refuse(name, _path_kind(path, error)) from error
    with file:
        yield file


def _check_status(status: os.stat_result, name: str) -> None:
    """Refuse directories, devices and empty files."""
    if stat.S_ISDIR(status.st_mode):
        raise refuse(name, "directory")
    if not stat.S_ISREG(status.st_mode):
        raise refuse(name, "not a file")
    if not status.st_size:
        raise refuse(name, "empty")


def _path_kind(path: Any, error: Exception) -> str:
    """Return why a path cannot be opened."""
    if isinstance(error, PermissionError):
        return "no permission"
    is_loop = isinstance(error, OSError) and error.errno == errno.ELOOP
    if is_loop or (isinstance(error, FileNotFoundError) and os.path.islink(path)):
        return "broken link"
    return "missing"


def _header_error(error: Exception, file: BinaryIO, name: str) -> UnreadablePicture:
    """Return the sentence about a file that Pillow could not open."""
    pil = _pillow()
    if isinstance(error, pil.DecompressionBombError | pil.DecompressionBombWarning):
        n_pixels = re.search(r"\d+", str(error))
        return refuse(name, "too large", n_pixels and f"{int(n_pixels[0]):,} of them")
    if _decoding_kind(error) == "truncated":
        return refuse(name, "truncated")
    file.seek(0)
    start = file.read(1024)
    kinds = (n for s, n in _STARTS.items() if re.match(s, start, re.DOTALL))
    found = next(kinds, None)
    if found is None:
        return refuse(name, "not a picture", f"a file that starts with {start[:12]!r}")
    if found not in _formats():
        return refuse(name, "unsupported format", found)
    return refuse(name, "corrupt header", f"the damaged beginning of a {found}")


def _decoding_kind(error: Exception) -> str:
    """Return whether a picture is cut off or damaged in another way."""
    is_cut = isinstance(error, EOFError) or "truncated" in str(error).lower()
    return "truncated" if is_cut else "damaged"


class _Quiet:
    """Keep Pillow from warning, in however many threads at a time.

    Filters of warnings belong to the process: were each thread to set and restore them,
    the last could restore what another had set.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0

    def __enter__(self) -> None:
        with self._lock:
            if not self._depth:
                self._caught = warnings.catch_warnings()
                self._caught.__enter__()
                warnings.filterwarnings("ignore", module=r"PIL(\.|$)")
            self._depth += 1

    def __exit__(self, *error: Any) -> None:
        with self._lock:
            self._depth -= 1
            if not self._depth:
                self._caught.__exit__(None, None, None)


_QUIET = _Quiet()

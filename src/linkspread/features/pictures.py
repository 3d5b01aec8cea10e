"""Pictures from files, PIL images and arrays, all in RGB."""

import io
import os
import re
import stat
import struct
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, BinaryIO

import numpy as np

from linkspread.ground.errors import LinkspreadError, UnreadablePicture, require

# Each thread holds a picture, and one of this size takes 300 MB.
MAX_PIXELS = 100_000_000
# The shorter side must hold a local descriptor even at half the size.
MIN_SIDE = 32
# Pillow reads more formats, some of them by starting other programs.
_FORMATS = "AVIF BMP GIF JPEG JPEG2000 MPO PNG PPM TIFF WEBP".split()
# First bytes of formats, which distinguish a damaged picture from other files.
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
    rb"\0\0\x01\0": "ICO",
    rb"\s*(<\?xml.*?)?(<!--.*?-->\s*)?<svg": "SVG",
}
_REPLACE = "Replace it or leave it out."
# Value received and remedy, by kind of error.
_SENTENCES = {
    "missing": ("a path without a file", "Check the path."),
    "broken link": ("a symbolic link to nowhere", "Correct the link or leave it out."),
    "no permission": ("a file that may not be read", "Change its permissions."),
    "directory": ("a directory", "Give the files in it."),
    "not a file": ("a pipe, a socket or a device", "Save the picture to a file."),
    "empty": ("an empty one", _REPLACE),
    "not a picture": ("something else", _REPLACE),
    "unsupported format": ("another format", "Convert it to PNG or JPEG."),
    "corrupt header": ("a damaged beginning", _REPLACE),
    "truncated": ("one that is cut off", _REPLACE),
    "damaged": ("a damaged one", _REPLACE),
    "too large": ("a larger one", "Make it smaller or leave it out."),
}
_ORIENTATION = 0x0112
# Pillow's names of the turns for EXIF's orientations 2 to 8.
_TURNS = "FLIP_LEFT_RIGHT ROTATE_180 FLIP_TOP_BOTTOM TRANSPOSE".split()
_TURNS += "ROTATE_270 TRANSVERSE ROTATE_90".split()


def check_pictures(pictures: Any) -> None:
    """Refuse anything but a list of pictures."""
    is_one = isinstance(pictures, str | os.PathLike) or not hasattr(pictures, "__len__")
    if is_one or len(pictures) == 0 or not hasattr(pictures, "__getitem__"):
        got = type(pictures).__name__ if is_one else "none"
        raise LinkspreadError(
            f"`pictures` must be a list of at least one picture, got {got}. Give "
            "files, PIL images or arrays of uint8."
        )


def open_picture(picture: Any, position: int, size: int) -> Any:
    """Return a picture in RGB whose longer side has the given length."""
    image = read_picture(picture, name=f"picture {position}")
    factor = size / max(image.size)
    if factor == 1 and min(image.size) >= MIN_SIDE:
        return image
    return image.resize([max(round(side * factor), MIN_SIDE) for side in image.size])


def read_picture(picture: Any, *, name: str = "the picture") -> Any:
    """Return a picture in RGB, upright and laid on white.

    The content of a file decides its format, not its name. EXIF's orientation is
    applied, and the first of several frames is taken. Damaged metadata are ignored.
    The error of an unreadable picture has a `kind`, by which errors can be counted.

    Parameters
    ----------
    picture : path-like, PIL image or ndarray of uint8
        Arrays have the shape (height, width), or (height, width, 3 or 4).
    name : str, default="the picture"
        Name in errors, unless the picture is a file.

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.features import read_picture
    >>> read_picture(np.zeros((40, 60, 4), dtype=np.uint8)).getpixel((0, 0))
    (255, 255, 255)
    """
    pil = _pillow()
    if isinstance(picture, str | os.PathLike):
        name = str(picture)
        with _decoding(name), open_picture_file(picture, name) as opened:
            return _decode(opened, name)
    if isinstance(picture, np.ndarray):
        is_plane = picture.ndim == 2 or picture.shape[2:] in ((3,), (4,))
        if picture.dtype != np.uint8 or not is_plane or picture.size == 0:
            raise LinkspreadError(
                f"{name} must be an array of uint8 of shape (height, width) or "
                f"(height, width, 3 or 4), got {picture.dtype} of shape "
                f"{picture.shape}. Scale values to 0-255 and put colours last."
            )
        picture = pil.fromarray(picture)
    elif not isinstance(picture, pil.Image):
        raise LinkspreadError(
            f"{name} must be a file, a PIL image or an array of uint8, got "
            f"{type(picture).__name__}. Convert it first."
        )
    _check_size(picture, name)
    with _decoding(name):
        return _decode(picture, name)


@contextmanager
def open_picture_file(path: Any, name: str) -> Iterator[Any]:
    """Open a picture file and check its header; pixels are not read yet."""
    with open_regular(path, lambda kind: _refuse(name, kind)) as file:
        image = _open_image(file, name)
        _check_size(image, name)
        yield image


@contextmanager
def open_regular(
    path: Any, refuse: Callable[[str], LinkspreadError]
) -> Iterator[BinaryIO]:
    """Open a regular file that is not empty; ``refuse`` returns the error of a kind."""
    try:
        status = os.stat(path)
        # Opening a pipe would wait for a writer.
        if not stat.S_ISREG(status.st_mode):
            raise refuse("directory" if stat.S_ISDIR(status.st_mode) else "not a file")
        if not status.st_size:
            raise refuse("empty")
        file = open(path, "rb")
    except LinkspreadError:
        raise
    except PermissionError as error:
        raise refuse("no permission") from error
    # A null character in a path is a ValueError.
    except (OSError, ValueError) as error:
        is_link = "\0" not in os.fsdecode(path) and os.path.islink(path)
        raise refuse("broken link" if is_link else "missing") from error
    with file:
        yield file


def _refuse(name: str, kind: str, got: str | None = None) -> UnreadablePicture:
    """Return the error about a picture, with the message of its kind."""
    rule = "be a complete picture"
    if kind == "too large":
        rule = f"have at most {MAX_PIXELS:,} pixels"
    usual, remedy = _SENTENCES[kind]
    return UnreadablePicture(f"{name} must {rule}, got {got or usual}. {remedy}", kind)


def _check_size(image: Any, name: str) -> None:
    """Refuse a picture without pixels or with too many, by its header."""
    width, height = image.size
    if not width * height:
        raise _refuse(name, "empty", f"one of {width} x {height}")
    if width * height > MAX_PIXELS:
        raise _refuse(name, "too large", f"{width:,} x {height:,}")


def _pillow() -> Any:
    """Return the module that reads pictures."""
    return require("PIL.Image", purpose="Reading pictures")


@cache
def _formats() -> list[str]:
    """Return the formats that the installed Pillow was built with."""
    pil = _pillow()
    pil.init()
    return [name for name in _FORMATS if name in pil.OPEN]


def _open_image(file: BinaryIO, name: str) -> Any:
    """Open a file with Pillow, or refuse it by its first bytes."""
    pil = _pillow()
    try:
        return pil.open(file, formats=_formats())
    except (pil.DecompressionBombError, pil.DecompressionBombWarning) as error:
        n_pixels = re.search(r"\d+", str(error))
        got = n_pixels and f"{int(n_pixels[0]):,} of them"
        raise _refuse(name, "too large", got) from error
    except Exception as error:
        # A wrong checksum is enough, even of a date or a comment.
        with suppress(Exception):
            return pil.open(_bare_png(file), formats=["PNG"])
        if _is_cut_off(error):
            raise _refuse(name, "truncated") from error
        file.seek(0)
        start = file.read(1024)
        kinds = (kind for s, kind in _STARTS.items() if re.match(s, start, re.DOTALL))
        found = next(kinds, None)
        if found is None:
            got = f"a file that starts with {start[:12]!r}"
            raise _refuse(name, "not a picture", got) from error
        if found not in _formats():
            raise _refuse(name, "unsupported format", found) from error
        got = f"the damaged beginning of a {found}"
        raise _refuse(name, "corrupt header", got) from error


def _bare_png(file: BinaryIO) -> io.BytesIO:
    """Return a PNG without its optional chunks."""
    file.seek(0)
    kept = [file.read(8)]
    while kept[0] == b"\x89PNG\r\n\x1a\n" and len(start := file.read(8)) == 8:
        length, kind = struct.unpack(">I4s", start)
        chunk = start + file.read(length + 4)
        # Optional ones begin with a small letter; only transparency is visible.
        if not kind[0] & 32 or kind == b"tRNS":
            kept.append(chunk)
    return io.BytesIO(b"".join(kept))


@contextmanager
def _decoding(name: str) -> Iterator[None]:
    """Turn the errors of decoders into an UnreadablePicture."""
    try:
        with _without_warnings:
            yield
    except UnreadablePicture:
        raise
    except MemoryError as error:
        raise _refuse(name, "too large", "more than fits into memory") from error
    except Exception as error:
        # Decoders raise many kinds of errors on damaged files.
        kind = "truncated" if _is_cut_off(error) else "damaged"
        raise _refuse(name, kind) from error


def _is_cut_off(error: Exception) -> bool:
    """Return whether an error means that the file is cut off."""
    return isinstance(error, EOFError) or "truncated" in str(error).lower()


class _WithoutWarnings:
    """Silence the warnings of Pillow while any thread decodes.

    Filters of warnings belong to the process, so the first thread sets them and the
    last one restores them.
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


_without_warnings = _WithoutWarnings()


def _decode(picture: Any, name: str) -> Any:
    """Return an opened picture in RGB and upright."""
    picture.load()
    try:
        image = _to_rgb(picture)
    except ValueError as error:
        got = f"colours as {picture.mode}"
        raise _refuse(name, "unsupported format", got) from error
    # EXIF data are often malformed; the pixels are readable.
    with suppress(Exception):
        orientation = picture.getexif().get(_ORIENTATION, 1)
        if orientation in range(2, 9):
            return image.transpose(_pillow().Transpose[_TURNS[orientation - 2]])
    return image


def _to_rgb(image: Any) -> Any:
    """Return a picture in RGB.

    Grey of 16 bits keeps its upper eight bits; grey of 32 bits, integers or floats, is
    stretched from its darkest to its lightest pixel.
    """
    pil, mode = _pillow(), image.mode
    # Older versions of Pillow open 16-bit files of these formats in 32 bits.
    is_sixteen = mode == "I" and getattr(image, "format", None) in ("PNG", "PPM")
    if mode.startswith("I;16") or is_sixteen or mode in ("I", "F"):
        is_sixteen |= mode.startswith("I;16")
        values = np.asarray(image)
        greys = values.astype(np.intp) >> 8 if is_sixteen else _stretch(values)
        greys = np.clip(greys, 0, 255).astype(np.uint8)
        return pil.fromarray(greys).convert("RGB")
    if "A" in image.getbands() or "a" in mode or "transparency" in image.info:
        image = image.convert("RGBA")
        paper = pil.new("RGBA", image.size, "white")
        image = pil.alpha_composite(paper, image)
    return image.convert("RGB")


def _stretch(values: np.ndarray) -> np.ndarray:
    """Return values stretched to 0 to 255; values that are not finite become 0."""
    is_finite = np.isfinite(values)
    if not is_finite.any():
        return np.zeros(values.shape)
    values = np.where(is_finite, values, 0).astype(np.float64)
    low, high = values[is_finite].min(), values[is_finite].max()
    if low == high:
        return values
    # Halved, as the difference of two huge floats may overflow.
    return np.where(is_finite, (values / 2 - low / 2) / (high / 2 - low / 2) * 255, 0)

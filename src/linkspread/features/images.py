"""Pictures from files, PIL images and arrays, all in RGB.

>>> import numpy as np
>>> from linkspread.features import read_picture
>>> image, notes = read_picture(np.zeros((40, 60, 4), dtype=np.uint8))
>>> image.size, image.getpixel((0, 0)), notes
((60, 40), (255, 255, 255), ('laid on white',))
"""

import os
from pathlib import PurePath
from typing import Any

import numpy as np

from linkspread.features.picture_files import check_size, decoding, open_file, refuse
from linkspread.features.picture_modes import to_rgb, turn_upright
from linkspread.ground.errors import LinkspreadError, require

# The shorter side must hold one local descriptor also at half the size.
MIN_SIDE = 32
# What the usual endings of names promise.
_ENDINGS = {
    "AVIF": (".avif",),
    "BMP": (".bmp", ".dib"),
    "GIF": (".gif",),
    "JPEG": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "JPEG2000": (".jp2", ".j2k", ".jpx"),
    "PNG": (".png", ".apng"),
    "PPM": (".ppm", ".pgm", ".pbm", ".pnm"),
    "TIFF": (".tif", ".tiff"),
    "WEBP": (".webp",),
}
_KNOWN_ENDINGS = {ending for endings in _ENDINGS.values() for ending in endings}


def check_pictures(pictures: Any) -> None:
    """Refuse anything but several pictures in a row."""
    is_one = isinstance(pictures, str | os.PathLike) or not hasattr(pictures, "__len__")
    if is_one or len(pictures) == 0 or not hasattr(pictures, "__getitem__"):
        got = type(pictures).__name__ if is_one else "none"
        raise LinkspreadError(
            f"`pictures` must be a list of at least one picture, got {got}. Give "
            "files, PIL images or arrays of uint8."
        )


def rescale(image: Any, scale: float) -> Any:
    """Return the picture at a part of its size."""
    if scale == 1:
        return image
    return image.resize((round(image.width * scale), round(image.height * scale)))


def open_picture(picture: Any, position: int, size: int) -> Any:
    """Return a picture in RGB whose longer side has the given length."""
    image, _ = read_picture(picture, name=f"picture {position}")
    factor = size / max(image.size)
    if factor == 1 and min(image.size) >= MIN_SIDE:
        return image
    return image.resize([max(round(side * factor), MIN_SIDE) for side in image.size])


def read_picture(
    picture: Any, *, name: str = "the picture"
) -> tuple[Any, tuple[str, ...]]:
    """Return a picture in RGB, upright, and notes on what had to be done to it.

    A file is read by what it holds, whatever its name. What is transparent is laid on
    white, EXIF's orientation is applied, and of several frames the first is taken.
    Data beside the pixels may be damaged.

    Parameters
    ----------
    picture : path-like, PIL image or ndarray of uint8
        Arrays have the shape (height, width), or (height, width, 3 or 4).
    name : str, default="the picture"
        What errors call a picture that is no file; files have their path.

    Returns
    -------
    image : PIL image
        In RGB, of the picture's own size.
    notes : tuple of str
        Such as "laid on white", "turned as EXIF says", "first of 3 frames" or
        "mis-named: a PNG called .jpg".

    Raises
    ------
    UnreadablePicture
        Whose `kind` says in a word or two why the picture cannot be read.
    """
    pil = require("PIL.Image", extra="images", purpose="Reading pictures")
    if isinstance(picture, str | os.PathLike):
        with decoding(str(picture)), open_file(picture, str(picture)) as opened:
            image, notes = _decode(opened, str(picture))
            notes += [*_frames(opened), *_misnamed(picture, opened.format)]
            return image, tuple(notes)
    if isinstance(picture, np.ndarray):
        _check_pixels(picture, name)
        picture = pil.fromarray(picture)
    elif not isinstance(picture, pil.Image):
        raise LinkspreadError(
            f"{name} must be a file, a PIL image or an array of uint8, got "
            f"{type(picture).__name__}. Convert it first."
        )
    check_size(picture, name)
    with decoding(name):
        image, notes = _decode(picture, name)
    return image, tuple(notes)


def _decode(picture: Any, name: str) -> tuple[Any, list[str]]:
    """Return an opened picture as it should be looked at, and notes."""
    picture.load()
    try:
        image, notes = to_rgb(picture)
    except ValueError as error:
        raise refuse(
            name, "unsupported format", f"colours as {picture.mode}"
        ) from error
    image, turned = turn_upright(image, picture)
    return image, notes + turned


def _frames(picture: Any) -> list[str]:
    """Return a note where a picture has several frames."""
    try:
        n_frames = getattr(picture, "n_frames", 1)
    except Exception:
        # Later frames may be damaged, which is no matter to the first.
        n_frames = 1
    # Cameras put a small copy into the same file, which is no second picture.
    is_single = n_frames == 1 or picture.format == "MPO"
    return [] if is_single else [f"first of {n_frames:,} frames"]


def _misnamed(path: Any, format_name: str) -> list[str]:
    """Return a note where the ending of a name promises another format."""
    ending = PurePath(os.fsdecode(path)).suffix.lower()
    family = "JPEG" if format_name == "MPO" else format_name
    if ending not in _KNOWN_ENDINGS or ending in _ENDINGS[family]:
        return []
    return [f"mis-named: a {family} called {ending}"]


def _check_pixels(picture: np.ndarray, name: str) -> None:
    """Refuse an array that is no picture."""
    is_plane = picture.ndim == 2 or (picture.ndim == 3 and picture.shape[2] in (3, 4))
    if picture.dtype != np.uint8 or not is_plane or picture.size == 0:
        raise LinkspreadError(
            f"{name} must be an array of uint8 of shape (height, width) or (height, "
            f"width, 3 or 4), got {picture.dtype} of shape {picture.shape}. Scale "
            "values to 0-255 and put colours last."
        )

"""Pictures from files, PIL images and arrays, all in RGB and at one size."""

import os
from typing import Any

import numpy as np

from linkspread.exceptions import LinkspreadError, require

__all__ = ["check_pictures", "open_picture", "rescale"]

# The shorter side must hold one local descriptor also at half the size.
MIN_SIDE = 32


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
    pil = require("PIL.Image", extra="images", purpose="Reading pictures")
    is_file = isinstance(picture, str | os.PathLike)
    name = str(picture) if is_file else f"picture {position}"
    if not is_file and not isinstance(picture, np.ndarray | pil.Image):
        raise LinkspreadError(
            f"{name} must be a file, a PIL image or an array of uint8, got "
            f"{type(picture).__name__}. Convert it first."
        )
    if isinstance(picture, np.ndarray):
        _check_pixels(picture, name)
    try:
        if is_file:
            with pil.open(picture) as opened:
                image = opened.convert("RGB")
        elif isinstance(picture, np.ndarray):
            image = pil.fromarray(picture).convert("RGB")
        else:
            image = picture.convert("RGB")
    except Exception as error:
        # Damaged files raise whatever the decoder of their format comes upon.
        raise LinkspreadError(
            f"{name} must be a complete picture, got {type(error).__name__} while "
            "reading it. Replace it or leave it out."
        ) from error
    factor = size / max(image.size)
    if factor == 1 and min(image.size) >= MIN_SIDE:
        return image
    return image.resize([max(round(side * factor), MIN_SIDE) for side in image.size])


def _check_pixels(picture: np.ndarray, name: str) -> None:
    """Refuse an array that is no picture."""
    is_plane = picture.ndim == 2 or (picture.ndim == 3 and picture.shape[2] in (3, 4))
    if picture.dtype != np.uint8 or not is_plane or picture.size == 0:
        raise LinkspreadError(
            f"{name} must be an array of uint8 of shape (height, width) or (height, "
            f"width, 3 or 4), got {picture.dtype} of shape {picture.shape}. Scale "
            "values to 0-255 and put colours last."
        )

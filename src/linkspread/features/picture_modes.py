"""Pictures of any mode in RGB, upright: what is transparent lies on white."""

from typing import Any

import numpy as np

from linkspread.ground.errors import require

_ORIENTATION = 0x0112
# Names of Pillow's turns, by the value of EXIF's orientation.
_TURNS = {
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
# Older versions of Pillow open 16-bit files of these formats in 32 bits.
_SIXTEEN_IN_I = ("PNG", "PPM")


def to_rgb(image: Any) -> tuple[Any, list[str]]:
    """Return a picture in RGB, and notes on how it came about.

    Grey of 16 bits keeps its upper eight, as colours do; of 32 bits, integers or
    floats, it is stretched from its darkest to its lightest pixel.
    """
    if image.mode.startswith("I;16") or _is_sixteen(image):
        return _from_grey(np.asarray(image).astype(np.intp) >> 8), ["16-bit grey"]
    if image.mode in ("I", "F"):
        return _from_grey(_stretch(np.asarray(image))), ["32-bit grey"]
    if "A" in image.getbands() or "a" in image.mode or "transparency" in image.info:
        return _lay_on_white(image.convert("RGBA"))
    return image.convert("RGB"), ["CMYK"] if image.mode == "CMYK" else []


def turn_upright(image: Any, picture: Any) -> tuple[Any, list[str]]:
    """Return an image turned as the EXIF data of a picture say, and a note on it."""
    try:
        orientation = picture.getexif().get(_ORIENTATION, 1)
        turn = _TURNS.get(orientation)
    except Exception:
        # These data come from cameras and editors, in every state; pixels matter more.
        return image, ["EXIF cannot be read"]
    if turn is None:
        return image, []
    pil = require("PIL.Image", extra="images", purpose="Reading pictures")
    return image.transpose(pil.Transpose[turn]), ["turned as EXIF says"]


def _is_sixteen(image: Any) -> bool:
    """Tell whether 32-bit pixels were read from 16 bits."""
    return image.mode == "I" and getattr(image, "format", None) in _SIXTEEN_IN_I


def _from_grey(values: np.ndarray) -> Any:
    """Return greys of 0 to 255 as a picture."""
    pil = require("PIL.Image", extra="images", purpose="Reading pictures")
    return pil.fromarray(np.clip(values, 0, 255).astype(np.uint8)).convert("RGB")


def _stretch(values: np.ndarray) -> np.ndarray:
    """Return values stretched to 0 to 255; what is not finite is 0."""
    is_finite = np.isfinite(values)
    if not is_finite.any():
        return np.zeros(values.shape)
    values = np.where(is_finite, values, 0).astype(np.float64)
    low, high = values[is_finite].min(), values[is_finite].max()
    if low == high:
        return values
    # Each by itself: the difference of two huge floats may overflow.
    return np.where(is_finite, (values / 2 - low / 2) / (high / 2 - low / 2) * 255, 0)


def _lay_on_white(image: Any) -> tuple[Any, list[str]]:
    """Return an RGBA picture on white paper."""
    pil = require("PIL.Image", extra="images", purpose="Reading pictures")
    if image.getchannel("A").getextrema()[0] == 255:
        return image.convert("RGB"), []
    paper = pil.new("RGBA", image.size, "white")
    return pil.alpha_composite(paper, image).convert("RGB"), ["laid on white"]

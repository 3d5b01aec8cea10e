"""Pictures that travel inside a page instead of beside it."""

import base64
import io
import os

import numpy as np

from linkspread.ground.errors import ViewError, require


def ink_data_uri(image: np.ndarray) -> str:
    """Encode a drawing as a data URI that a page can show.

    The ink is black, the ground is transparent: a page with a dark ground only needs
    to invert it.
    """
    if image.ndim != 2 or not (0 <= image.min() and image.max() <= 1):
        raise ViewError(
            "`image` must have two dimensions and ink between 0 and 1, got shape "
            f"{image.shape} with values from {image.min():g} to {image.max():g}. "
            "Divide grey levels by 255."
        )
    pil = require("PIL.Image", extra="demo", purpose="Writing pictures")
    ink = pil.fromarray(np.round(image * 255).astype(np.uint8))
    picture = pil.new("LA", ink.size)
    picture.putalpha(ink)
    file = io.BytesIO()
    picture.save(file, format="PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def picture_data_uri(path: str | os.PathLike[str], *, size: int = 160) -> str:
    """Encode the picture of a file, made smaller, as a data URI."""
    pil = require("PIL.Image", extra="images", purpose="Reading pictures")
    try:
        with pil.open(path) as picture:
            picture.thumbnail((size, size))
            file = io.BytesIO()
            picture.convert("RGB").save(file, format="PNG", optimize=True)
    except Exception as error:  # damaged bytes can fail anywhere in a reader
        raise ViewError(
            f"a picture must be a file that can be read as one, got {str(path)!r} "
            f"({type(error).__name__}). Correct the path or save it anew."
        ) from error
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"

"""Pictures that travel inside a page instead of beside it."""

import base64
import io

import numpy as np

from linkspread.exceptions import ViewError, require

__all__ = ["ink_data_uri"]


def ink_data_uri(image: np.ndarray) -> str:
    """Encode a drawing as a data URI that a page can show.

    The ink is black, the ground is transparent: a page with a dark ground only needs
    to invert it.

    Parameters
    ----------
    image : ndarray of shape (height, width)
        Ink between 0 and 1.

    Returns
    -------
    uri : str
        ``data:image/png;base64,...``.

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.report import ink_data_uri
    >>> ink_data_uri(np.eye(8))[:22]
    'data:image/png;base64,'
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

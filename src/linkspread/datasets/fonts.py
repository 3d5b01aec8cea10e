"""Fonts: the same letters in two fonts, as pictures that can be compared.

DejaVu Sans and DejaVu Serif come inside matplotlib, so nothing is downloaded. The
partner of a letter is the same letter in the other font:

>>> from linkspread.datasets import load_fonts
>>> fonts = load_fonts()
>>> print(fonts.ids["sans"][0], fonts.labels[0], fonts.shared_space)
U+0041 Latin True
"""

import unicodedata

import numpy as np

from linkspread.datasets.collection import Partners
from linkspread.datasets.glyphs import make_glyph_image, named_characters
from linkspread.datasets.unicode_blocks import family

_FONTS = {"sans": "DejaVuSans", "serif": "DejaVuSerif"}


def load_fonts(*, size: int = 16) -> Partners:
    """Draw the letters that DejaVu Sans and DejaVu Serif both have.

    Signs such as arrows and braille are left out: the two fonts draw most of them
    alike. Of letters that one font draws alike, such as Latin, Greek and Cyrillic A,
    only the first is kept, for no picture could tell which is the partner.

    Parameters
    ----------
    size : int, default=16
        Side of the pictures in pixels.

    Returns
    -------
    fonts : Partners
        Views "sans" and "serif" in a shared space, ndarrays of float32 of shape
        (n_items, size * size), ink row by row, rows of length 1; row i is the same
        letter in both. Ids are code points, labels the names of scripts.

    Examples
    --------
    >>> from linkspread.datasets import load_fonts
    >>> fonts = load_fonts(size=8)
    >>> sorted(set(fonts.labels.tolist()))
    ['Armenian', 'Cyrillic', 'Georgian', 'Greek', 'Latin', ...]
    """
    common = set.intersection(*(set(named_characters(f)) for f in _FONTS.values()))
    letters = [c for c in sorted(common) if unicodedata.category(c).startswith("L")]
    drawn = {
        view: np.stack([make_glyph_image(c, size, font=font).ravel() for c in letters])
        for view, font in _FONTS.items()
    }
    kept = np.flatnonzero(np.all([_is_new(X) for X in drawn.values()], axis=0))
    characters = [letters[i] for i in kept]
    rows = np.arange(len(kept))
    return Partners(
        views={view: _unit_rows(X[kept]) for view, X in drawn.items()},
        ids=dict.fromkeys(_FONTS, np.array([f"U+{ord(c):04X}" for c in characters])),
        pairs=np.column_stack([rows, rows]),
        metrics=dict.fromkeys(_FONTS, "cosine"),
        shared_space=True,
        labels=np.array([family(c) for c in characters]),
    )


def _is_new(X: np.ndarray) -> np.ndarray:
    """Tell which rows have ink and are unlike all rows before them."""
    new = np.zeros(len(X), dtype=bool)
    new[np.unique(X, axis=0, return_index=True)[1]] = True
    return new & X.any(axis=1)


def _unit_rows(X: np.ndarray) -> np.ndarray:
    """Return rows divided by their lengths."""
    return X / np.linalg.norm(X, axis=1, keepdims=True)

"""Glyphs: the characters of a font as pictures and as the words of their names.

The font DejaVu Sans comes inside matplotlib, the names come with Python, so this
collection of several thousand real items needs no download:

>>> from linkspread.datasets import load_glyphs
>>> glyphs = load_glyphs()
>>> print(glyphs.ids[0], glyphs.names[0], glyphs.label_names[glyphs.labels[0]])
U+0021 EXCLAMATION MARK Latin
"""

import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from linkspread.datasets.collection import Collection
from linkspread.datasets.unicode_blocks import family
from linkspread.ground.errors import LinkspreadError, require

# Each picture is drawn larger, then averaged down, so that edges are smooth.
_OVERSAMPLING = 4
# Letter size and height of the baseline as parts of the picture's side: room for
# capitals with accents above the line and for descenders below it.
_EM = 0.75
_BASELINE = 0.77


@dataclass(frozen=True, eq=False, repr=False)
class Glyphs(Collection):
    """Hold the views "name" and "image" of the characters of a font.

    Parameters
    ----------
    views : dict
        ``"name"``: csr_array of float64 of shape (n_items, n_words), TF-IDF of the
        words of the character's name, rows of length one. ``"image"``: ndarray of
        float32 of shape (n_items, size * size), ink between 0 and 1, row by row.
    labels : ndarray of int of shape (n_items,)
        Script or family of signs of each character.
    label_names : tuple of str
        Name of each family.
    ids : ndarray of str of shape (n_items,)
        Code points, such as ``"U+0041"``.
    names : ndarray of str of shape (n_items,)
        Unicode names, such as ``"LATIN CAPITAL LETTER A"``.
    characters : ndarray of str of shape (n_items,)
        The characters themselves.
    """

    ids: np.ndarray
    names: np.ndarray
    characters: np.ndarray


def load_glyphs(*, size: int = 32, min_class_size: int = 20) -> Glyphs:
    """Draw every named character of DejaVu Sans and index the words of its name.

    Nothing is downloaded or stored; two calls give the same arrays.

    Parameters
    ----------
    size : int, default=32
        Side of the pictures in pixels.
    min_class_size : int, default=20
        Families with fewer characters are left out.

    Returns
    -------
    glyphs : Glyphs
        Characters in order of their code points.

    Examples
    --------
    >>> from linkspread.datasets import load_glyphs
    >>> glyphs = load_glyphs(size=16, min_class_size=300)
    >>> glyphs.label_names
    ('Arabic', 'Canadian syllabics', 'Cyrillic', 'Greek', 'Latin', ...)
    """
    _check_positive("size", size)
    _check_positive("min_class_size", min_class_size)
    drawn = {c: make_glyph_image(c, size) for c in named_characters()}
    characters = _large_families(
        [c for c, X in drawn.items() if X.any()], min_class_size
    )
    names = [unicodedata.name(character) for character in characters]
    label_names, labels = np.unique(
        [family(character) for character in characters], return_inverse=True
    )
    image = np.stack([drawn[character].ravel() for character in characters])
    return Glyphs(
        views={"name": csr_array(index_names(names).transform(names)), "image": image},
        labels=labels,
        label_names=tuple(label_names.tolist()),
        ids=np.array([f"U+{ord(character):04X}" for character in characters]),
        names=np.array(names),
        characters=np.array(characters),
    )


def make_glyph_image(
    character: str, size: int = 32, *, font: str = "DejaVuSans"
) -> np.ndarray:
    """Draw one character of a font as it stands on a line of text.

    All characters share one scale and one baseline and are centred sideways; only
    those that are larger than the picture are shrunk to fit.

    Parameters
    ----------
    character : str
        One character.
    size : int, default=32
        Side of the picture in pixels.
    font : str, default="DejaVuSans"
        File in matplotlib's folder of fonts, without ".ttf".

    Returns
    -------
    image : ndarray of float32 of shape (size, size)
        Ink between 0 and 1; all 0 for a character without ink, such as a space.

    Examples
    --------
    >>> from linkspread.datasets import make_glyph_image
    >>> image = make_glyph_image("-", 8)
    >>> image.shape, bool(image.any())
    ((8, 8), True)
    """
    pil = require("PIL.Image", extra="demo", purpose="Drawing glyphs")
    _check_positive("size", size)
    canvas = pil.new("L", (size * _OVERSAMPLING, size * _OVERSAMPLING))
    mask, left_top = _ink(character, canvas.width, font)
    if mask is not None:
        canvas.paste(255, left_top, mask)
    small = canvas.resize((size, size), pil.Resampling.BOX)
    return np.asarray(small, dtype=np.float32) / np.float32(255)


def _ink(character: str, side: int, name: str) -> tuple[Any, tuple[int, int]]:
    """Return the inked rectangle of a character and its place in a square."""
    pil = require("PIL.Image", extra="demo", purpose="Drawing glyphs")
    draw = require("PIL.ImageDraw", extra="demo", purpose="Drawing glyphs")
    font = _font(name, round(side * _EM))
    left, top, right, bottom = font.getbbox(character, anchor="ls")
    if right <= left or bottom <= top:
        return None, (0, 0)
    mask = pil.new("L", (right - left, bottom - top))
    draw.Draw(mask).text((-left, -top), character, font=font, fill=255, anchor="ls")
    mask.thumbnail((side, side))
    y = round(side * _BASELINE) + top
    return mask, ((side - mask.width) // 2, min(max(y, 0), side - mask.height))


def named_characters(font: str = "DejaVuSans") -> list[str]:
    """List the characters of a font that Unicode names, by code point."""
    ft2font = require("matplotlib.ft2font", extra="demo", purpose="Listing glyphs")
    codes = sorted(ft2font.FT2Font(str(_font_path(font))).get_charmap())
    return [chr(code) for code in codes if unicodedata.name(chr(code), None)]


def _large_families(characters: list[str], min_class_size: int) -> list[str]:
    """Keep the characters whose family has enough members."""
    sizes = Counter(map(family, characters))
    kept = [c for c in characters if sizes[family(c)] >= min_class_size]
    if not kept:
        raise LinkspreadError(
            f"`min_class_size` must leave at least one family of glyphs, got "
            f"{min_class_size}. Choose at most {max(sizes.values())}."
        )
    return kept


def index_names(names: list[str]) -> Any:
    """Return what turns names into TF-IDF of their words; hyphens part words."""
    # Imported here because it is slow to import and few callers need glyphs.
    from sklearn.feature_extraction.text import TfidfVectorizer

    # scikit-learn's own pattern would drop one-letter words, which name letters.
    return TfidfVectorizer(token_pattern=r"[^\s-]+").fit(names)


def _font_path(font: str) -> Path:
    """Return the file of a font inside the matplotlib package."""
    matplotlib = require("matplotlib", extra="demo", purpose="The glyph collection")
    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / f"{font}.ttf"
    if not path.is_file():
        raise LinkspreadError(
            f"`font` must name a font of matplotlib, got {font!r}. Leave it out for "
            "DejaVuSans, or choose DejaVuSerif."
        )
    return path


@lru_cache(maxsize=4)
def _font(name: str, pixels: int) -> Any:
    """Return a font at one size."""
    pil_font = require("PIL.ImageFont", extra="demo", purpose="Drawing glyphs")
    # The basic layout engine is part of every Pillow; the other one is optional and
    # would make pictures depend on the machine.
    layout = pil_font.Layout.BASIC
    return pil_font.truetype(str(_font_path(name)), pixels, layout_engine=layout)


def _check_positive(name: str, value: int) -> None:
    """Raise unless a parameter is a whole number above zero."""
    if not isinstance(value, (int, np.integer)) or value < 1:
        raise LinkspreadError(
            f"`{name}` must be a whole number of at least 1, got {value!r}. "
            "Leave it out for the default."
        )

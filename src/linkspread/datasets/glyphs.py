"""Collections drawn with the fonts of matplotlib: characters, and letters of two fonts.

Nothing is downloaded or stored; repeated calls give the same arrays.
"""

import unicodedata
from collections import Counter
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from linkspread.datasets.collection import Collection, Partners
from linkspread.datasets.unicode_blocks import family
from linkspread.ground.checks import check_count
from linkspread.ground.errors import LinkspreadError, require

_FONTS = {"sans": "DejaVuSans", "serif": "DejaVuSerif"}
# Each picture is drawn larger, then averaged down, so that edges are smooth.
_OVERSAMPLING = 4
# Letter size and height of the baseline as parts of the picture's side: room for
# capitals with accents above the line and for descenders below it.
_EM = 0.75
_BASELINE = 0.77
_require = partial(require, purpose="Drawing glyphs")
_check_count = partial(check_count, remedy="Leave it out for the default.")


def load_glyphs(*, size: int = 32, min_class_size: int = 20) -> Collection:
    """Draw all named characters of DejaVu Sans, with features of their names.

    Parameters
    ----------
    size : int, default=32
        Side of the pictures in pixels.
    min_class_size : int, default=20
        Families with fewer characters are left out.

    Returns
    -------
    glyphs : Collection
        Characters in order of their code points. Views "name": csr_array of float64 of
        shape (n_items, n_words), TF-IDF of the words of the character's name, rows of
        unit norm; "image": ndarray of float32 of shape (n_items, size * size), ink
        between 0 and 1, row by row. Labels are scripts or families of signs.

    Examples
    --------
    >>> from linkspread.datasets import load_glyphs
    >>> glyphs = load_glyphs(size=16, min_class_size=300)
    >>> glyphs.label_names
    ('Arabic', 'Canadian syllabics', 'Cyrillic', 'Greek', 'Latin', ...)
    """
    _check_count(min_class_size, name="min_class_size")
    drawn = {c: make_glyph_image(c, size) for c in _named_characters("DejaVuSans")}
    drawn = {c: image for c, image in drawn.items() if image.any()}
    sizes = Counter(map(family, drawn))
    characters = [c for c in drawn if sizes[family(c)] >= min_class_size]
    if not characters:
        raise LinkspreadError(
            "`min_class_size` must leave at least one family of glyphs, got "
            f"{min_class_size}. Choose at most {max(sizes.values())}."
        )
    names = [unicodedata.name(c) for c in characters]
    families = [family(c) for c in characters]
    label_names, labels = np.unique(families, return_inverse=True)
    image = np.stack([drawn[c].ravel() for c in characters])
    return Collection(
        views={"name": csr_array(index_names(names).transform(names)), "image": image},
        labels=labels,
        label_names=tuple(label_names.tolist()),
        ids=_code_points(characters),
        names=np.array(names),
        characters=np.array(characters),
    )


def load_fonts(*, size: int = 16) -> Partners:
    """Draw the letters that DejaVu Sans and DejaVu Serif both have.

    Symbols such as arrows and braille are left out, as both fonts draw most of them
    alike. Of letters that look the same, such as Latin, Greek and Cyrillic A, only the
    first is kept, as its partner is ambiguous.

    Parameters
    ----------
    size : int, default=16
        Side of the pictures in pixels.

    Returns
    -------
    fonts : Partners
        Views "sans" and "serif" in a shared space, ndarrays of float32 of shape
        (n_items, size * size), ink row by row, rows of unit norm; row i is the same
        letter in both. Ids are code points, labels the names of scripts.

    Examples
    --------
    >>> from linkspread.datasets import load_fonts
    >>> fonts = load_fonts(size=8)
    >>> sorted(set(fonts.labels.tolist()))
    ['Armenian', 'Cyrillic', 'Georgian', 'Greek', 'Latin', ...]
    """
    from sklearn.preprocessing import normalize

    common = set.intersection(*(set(_named_characters(f)) for f in _FONTS.values()))
    letters = [c for c in sorted(common) if unicodedata.category(c).startswith("L")]
    kept, views = np.arange(len(letters)), {}
    for view, font in _FONTS.items():
        images = [make_glyph_image(c, size, font=font).ravel() for c in letters]
        views[view] = X = np.stack(images)
        first = np.unique(X, axis=0, return_index=True)[1]
        kept = np.intersect1d(kept, first[X[first].any(axis=1)])
    characters = [letters[place] for place in kept]
    rows = np.arange(len(characters))
    return Partners(
        views={view: normalize(X[kept]) for view, X in views.items()},
        ids=dict.fromkeys(_FONTS, _code_points(characters)),
        pairs=np.column_stack([rows, rows]),
        metrics=dict.fromkeys(_FONTS, "cosine"),
        shared_space=True,
        labels=np.array([family(c) for c in characters]),
    )


def make_glyph_image(
    character: str, size: int = 32, *, font: str = "DejaVuSans"
) -> np.ndarray:
    """Draw one character of a font of matplotlib: ink between 0 and 1.

    All characters have the same scale and baseline and are centred horizontally; those
    larger than the picture are shrunk to fit.
    """
    pil, draw = _require("PIL.Image"), _require("PIL.ImageDraw")
    side = _check_count(size, name="size") * _OVERSAMPLING
    canvas = pil.new("L", (side, side))
    opened = _open_font(font, round(side * _EM))
    left, top, right, bottom = opened.getbbox(character, anchor="ls")
    if right > left and bottom > top:
        ink = pil.new("L", (right - left, bottom - top))
        text = draw.Draw(ink)
        text.text((-left, -top), character, font=opened, fill=255, anchor="ls")
        ink.thumbnail((side, side))
        y = min(max(round(side * _BASELINE) + top, 0), side - ink.height)
        canvas.paste(255, ((side - ink.width) // 2, y), ink)
    small = canvas.resize((size, size), pil.Resampling.BOX)
    return np.asarray(small, dtype=np.float32) / np.float32(255)


def index_names(names: list[str]) -> Any:
    """Return a transformer of names into TF-IDF of words; hyphens separate words."""
    # Imported here because the import is slow.
    from sklearn.feature_extraction.text import TfidfVectorizer

    # The default pattern would drop words of one letter, which name letters.
    return TfidfVectorizer(token_pattern=r"[^\s-]+").fit(names)


def _named_characters(font: str) -> list[str]:
    """List the characters of a font that Unicode names, by code point."""
    ft2font = _require("matplotlib.ft2font")
    codes = sorted(ft2font.FT2Font(str(_font_path(font))).get_charmap())
    return [chr(code) for code in codes if unicodedata.name(chr(code), None)]


def _code_points(characters: list[str]) -> np.ndarray:
    """Return the ids of characters, such as "U+0041"."""
    return np.array([f"U+{ord(character):04X}" for character in characters])


def _font_path(font: str) -> Path:
    """Return the file of a font inside the matplotlib package."""
    data = _require("matplotlib").get_data_path()
    path = Path(data) / "fonts" / "ttf" / f"{font}.ttf"
    if not path.is_file():
        raise LinkspreadError(
            f"`font` must name a font of matplotlib, got {font!r}. Leave it out for "
            "DejaVuSans, or choose DejaVuSerif."
        )
    return path


@lru_cache(maxsize=4)
def _open_font(name: str, pixels: int) -> Any:
    """Return a font at one size."""
    pil_font = _require("PIL.ImageFont")
    # The other layout engine is optional: pictures would depend on the machine.
    layout = pil_font.Layout.BASIC
    return pil_font.truetype(str(_font_path(name)), pixels, layout_engine=layout)

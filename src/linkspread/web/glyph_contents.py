"""Glyphs as people see them: the character drawn, and its Unicode name."""

import unicodedata
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from linkspread.datasets.glyphs import index_names, make_glyph_image
from linkspread.datasets.unicode_blocks import family
from linkspread.ground.errors import LinkspreadError, require
from linkspread.links import Items
from linkspread.web.contents import Contents, to_png


def are_glyphs(items: dict[str, Items]) -> bool:
    """Tell whether items are those of `load_glyphs`: code points with both views."""
    return set(items) == {"name", "image"} and all(
        own.n_items and all(str(id).startswith("U+") for id in own.ids)
        for own in items.values()
    )


class GlyphContents(Contents):
    """The characters of a font and their names."""

    is_ink = True

    def __init__(self, items: dict[str, Items], *, side: int = 32) -> None:
        super().__init__(items)
        self.side = side

    def text(self, view: str, position: int) -> str:
        """Return the name of a character."""
        return self._name(view, position) if view == "name" else ""

    def has_pictures(self, view: str) -> bool:
        """Tell whether the items of a view are pictures."""
        return view == "image"

    def has_texts(self, view: str) -> bool:
        """Tell whether the items of a view are texts."""
        return view == "name"

    def can_read(self, view: str) -> bool:
        """Tell whether new texts or pictures can search from a view."""
        return True

    def title(self, view: str, position: int) -> str:
        """Return the name of a character; its picture is called by its id."""
        return self.text(view, position) or str(self.items[view].ids[position])

    def picture(self, view: str, position: int, side: int) -> bytes:
        """Return a character, drawn black on white."""
        if view != "image":
            return super().picture(view, position, side)
        ink = make_glyph_image(self._character(view, position), side)
        pil = require("PIL.Image", extra="demo", purpose="Drawing glyphs")
        return to_png(pil.fromarray(np.uint8(255 - 255 * ink)), side)

    def rows(self, view: str, content: Any) -> Any:
        """Return the features of words, or of a picture of a character."""
        if view == "name":
            rows = csr_array(self._words.transform([content]))
            if not rows.nnz:
                raise LinkspreadError(
                    "words must be part of the name of a character, got "
                    f"{content[:60]!r}. Try words such as 'greek small letter'."
                )
            return rows
        return self._ink(content)

    def labels(self, view: str) -> np.ndarray | None:
        """Return the families of the characters."""
        n_items = self.items[view].n_items
        own = [family(self._character(view, k)) for k in range(n_items)]
        return np.searchsorted(self._families, own)

    @cached_property
    def _families(self) -> np.ndarray:
        """Names of all families."""
        n_items = self.items["name"].n_items
        return np.unique([family(self._character("name", k)) for k in range(n_items)])

    @cached_property
    def _words(self) -> Any:
        """What made the words of names to features."""
        n_items = self.items["name"].n_items
        return index_names([self._name("name", k) for k in range(n_items)])

    def _ink(self, image: Any) -> np.ndarray:
        """Return a picture as the ink of a small square; paper may be dark."""
        grey = image.convert("L")
        square = require("PIL.ImageOps", extra="demo", purpose="Reading glyphs")
        edge = np.asarray(grey)
        paper = int(np.median(np.concatenate([edge[0], edge[-1], edge[:, 0]])))
        fitted = square.pad(grey, (self.side, self.side), color=paper)
        ink = np.abs(np.asarray(fitted, dtype=np.float32) - paper)
        return (ink / max(float(ink.max()), 1.0)).reshape(1, -1)

    def _character(self, view: str, position: int) -> str:
        """Return the character of an id such as "U+0041"."""
        return chr(int(str(self.items[view].ids[position])[2:], 16))

    def _name(self, view: str, position: int) -> str:
        """Return the Unicode name of a character."""
        return unicodedata.name(self._character(view, position), "")

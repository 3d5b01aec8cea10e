"""Titles, texts and pictures of items; without a features folder, only their ids."""

import io
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from difflib import get_close_matches
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from linkspread.datasets.glyphs import index_names, make_glyph_image
from linkspread.datasets.unicode_blocks import family
from linkspread.ground.errors import LinkspreadError, require
from linkspread.links import Items

MAX_TITLE, MAX_TEXT = 90, 400
# Most titles that are compared for one query.
MAX_COMPARED = 2000
WORD = re.compile(r"[^\W_]+")


class Contents:
    """Items with ids only; subclasses have texts, pictures and labels."""

    # Whether pictures are black on white, so that a dark page may invert them.
    is_ink = False

    def __init__(
        self, items: dict[str, Items], kinds: dict[str, str] | None = None
    ) -> None:
        self.items, self.kinds = items, kinds or {}
        # Words and pictures that were searched by and judged, by view and id.
        self.kept: dict[tuple[str, str], str | bytes] = {}
        self._vocabularies: dict[str, frozenset[str]] = {}

    def has_pictures(self, view: str) -> bool:
        """Return whether the items of a view are pictures."""
        return self.kinds.get(view) == "picture"

    def has_texts(self, view: str) -> bool:
        """Return whether the items of a view are texts."""
        return self.kinds.get(view) == "text"

    def can_read(self, view: str) -> bool:
        """Return whether a view can be searched from by new texts or pictures."""
        return view in self.kinds

    def text(self, view: str, position: int) -> str:
        """Return the text of an item, "" where it has none."""
        kept = self.kept.get((view, str(self.items[view].ids[position])))
        return kept if isinstance(kept, str) else ""

    def picture(self, view: str, position: int, side: int) -> bytes:
        """Return the picture of an item as PNG, no larger than a square."""
        kept = self.kept.get((view, str(self.items[view].ids[position])))
        if isinstance(kept, bytes):
            pil = require("PIL.Image", purpose="Reading pictures")
            return to_png(pil.open(io.BytesIO(kept)), side)
        raise LinkspreadError(f"items of view {view!r} must have pictures; none has.")

    def rows(self, view: str, content: Any) -> Any:
        """Return the features of a new text or picture."""
        raise LinkspreadError(
            f"new texts and pictures need a features folder, and view {view!r} has "
            "none. Search by one of its items."
        )

    def unknown_words(self, view: str, text: str) -> dict[str, list[str]]:
        """Return words that have no features and are in no text, with similar words."""
        if not (self.has_texts(view) and self.can_read(view)):
            return {}
        known = self._vocabulary(view)
        unknown = [own for own in _words(text) if own not in known]
        return {
            own: get_close_matches(
                own, [w for w in known if abs(len(w) - len(own)) < 3]
            )
            for own in dict.fromkeys(unknown[:20])
            if self._is_empty(view, own)
        }

    def _is_empty(self, view: str, text: str) -> bool:
        """Return whether a text has no features."""
        try:
            rows = self.rows(view, text)
        except LinkspreadError:
            return True
        return not abs(rows).sum()

    def _vocabulary(self, view: str) -> frozenset[str]:
        """Return the words of the texts of a view."""
        if view not in self._vocabularies:
            texts = (self.text(view, k) for k in range(self.items[view].n_items))
            words = frozenset(word for text in texts for word in _words(text))
            self._vocabularies[view] = words
        return self._vocabularies[view]

    def labels(self, view: str) -> np.ndarray | None:
        """Return the classes of the items as integers, -1 where unknown."""
        return None

    def title(self, view: str, position: int) -> str:
        """Return the title of an item: its text, shortened, or its id."""
        text = self.text(view, position)
        return shorten(text, MAX_TITLE) or str(self.items[view].ids[position])

    def caption(self, view: str, position: int) -> str:
        """Return the title of the item with the same id in a view of texts."""
        id = self.items[view].ids[position]
        for other, items in self.items.items():
            if other != view and self.has_texts(other) and items.contains([id])[0]:
                return self.title(other, int(items.positions([id])[0]))
        return ""

    def name(self, view: str, id: Any) -> str:
        """Return the caption or the title of an item; its id if it is unknown."""
        items = self.items.get(view)
        if items is None or not items.contains([id])[0]:
            return str(id)
        position = int(items.positions([id])[0])
        return self.caption(view, position) or self.title(view, position)


class FeatureContents(Contents):
    """Items of a features folder: texts, and pictures in files."""

    def __init__(self, items: dict[str, Items], features: Any) -> None:
        super().__init__(items, features.kinds)
        self.features = features
        # The row of each item of the model in the folder, -1 for none.
        self._places = {
            view: _places(items[view], features.ids[view])
            for view in items
            if view in features.ids
        }

    def text(self, view: str, position: int) -> str:
        """Return the text of an item."""
        if not self.has_texts(view):
            return ""
        content = self._content(view, position)
        if content is None:
            return super().text(view, position)
        return shorten(str(content), MAX_TEXT)

    def picture(self, view: str, position: int, side: int) -> bytes:
        """Return the picture of an item as PNG."""
        if self._content(view, position) is None or not self.has_pictures(view):
            return super().picture(view, position, side)
        row = int(self._places[view][position])
        return to_png(self.features.picture(view, row), side)

    def rows(self, view: str, content: Any) -> Any:
        """Return the features of a new text or picture."""
        return self.features.transform(view, [content])

    def labels(self, view: str) -> np.ndarray | None:
        """Return the classes of the items as integers."""
        own = self.features.labels.get(view)
        if own is None or view not in self._places:
            return None
        every = [np.asarray(of) for of in self.features.labels.values()]
        names = np.unique(np.concatenate(every))
        numbers = np.searchsorted(names, own)
        numbers[np.asarray(own) == ""] = -1
        places = self._places[view]
        return np.where(places >= 0, numbers[np.maximum(places, 0)], -1)

    def _content(self, view: str, position: int) -> Any:
        """Return the content of an item in the folder: a text or a file name."""
        places = self._places.get(view)
        if places is None or position >= len(places) or places[position] < 0:
            return None
        return self.features.contents[view][places[position]]


class GlyphContents(FeatureContents):
    """The characters of a font and their names, with ids such as "U+0041"."""

    is_ink = True

    def __init__(self, items: dict[str, Items], *, side: int = 32) -> None:
        ids = {view: own.ids for view, own in items.items()}
        characters = {
            view: [chr(int(str(id)[2:], 16)) for id in own] for view, own in ids.items()
        }
        names = [unicodedata.name(own, "") for own in characters["name"]]
        features = SimpleNamespace(
            ids=ids,
            kinds={"name": "text", "image": "picture"},
            contents={"name": names, "image": characters["image"]},
            labels={v: [family(own) for own in of] for v, of in characters.items()},
        )
        super().__init__(items, features)
        self.side = side

    def picture(self, view: str, position: int, side: int) -> bytes:
        """Return a character, drawn black on white."""
        content = self._content(view, position)
        if view != "image" or content is None:
            return Contents.picture(self, view, position, side)
        ink = make_glyph_image(content, side)
        pil = require("PIL.Image", purpose="Drawing glyphs")
        return to_png(pil.fromarray(np.uint8(255 - 255 * ink)), side)

    def rows(self, view: str, content: Any) -> Any:
        """Return the features of words, or of a picture on light or dark paper."""
        if view == "name":
            rows = csr_array(self._words.transform([content]))
            if not rows.nnz:
                raise LinkspreadError(
                    "words must be part of the name of a character, got "
                    f"{content[:60]!r}. Try words such as 'greek small letter'."
                )
            return rows
        grey = content.convert("L")
        square = require("PIL.ImageOps", purpose="Reading glyphs")
        edge = np.asarray(grey)
        paper = int(np.median(np.concatenate([edge[0], edge[-1], edge[:, 0]])))
        fitted = square.pad(grey, (self.side, self.side), color=paper)
        ink = np.abs(np.asarray(fitted, dtype=np.float32) - paper)
        return (ink / max(float(ink.max()), 1.0)).reshape(1, -1)

    @cached_property
    def _words(self) -> Any:
        """The transformer of the words of names."""
        return index_names(self.features.contents["name"])


class TitleIndex:
    """An index of the titles and ids of one view, in one long text."""

    def __init__(self, contents: Contents, view: str) -> None:
        parts, offset = [], 0
        self._starts: list[int] = []
        for position, id in enumerate(contents.items[view].ids):
            own = f"{contents.title(view, position)}\t{id}".lower().replace("\n", " ")
            self._starts.append(offset)
            parts.append(own)
            offset += len(own) + 1
        self._text = "\n".join(parts)

    def exact(self, words: str) -> int | None:
        """Return the only item with exactly this title or id, or None."""
        words = " ".join(words.lower().split())
        found = [k for k, own in self._having(words) if words in own.split("\t")]
        return found[0] if len(found) == 1 else None

    def find(self, words: str, n: int) -> list[int]:
        """Return items whose titles have all of these words, in their order."""
        parts = words.lower().split()
        found: list[int] = []
        for position, title in self._having(max(parts, key=len, default="")):
            if all(part in title for part in parts):
                found.append(position)
            if len(found) == n:
                break
        return found

    def _having(self, letters: str) -> Iterator[tuple[int, str]]:
        """Yield the first items whose title contains these letters, with the titles."""
        start, n_compared = 0, 0
        while letters and n_compared < MAX_COMPARED:
            start = self._text.find(letters, start)
            if start < 0:
                return
            position = bisect_right(self._starts, start) - 1
            begin = self._starts[position]
            end = self._text.find("\n", begin)
            title = self._text[begin:] if end < 0 else self._text[begin:end]
            yield position, title
            n_compared += 1
            start = begin + len(title) + 1


def choose_contents(items: dict[str, Items], features: Any = None) -> Contents:
    """Return the contents of the items of a model."""
    if features is not None:
        return FeatureContents(items, features)
    return GlyphContents(items) if are_glyphs(items) else Contents(items)


def are_glyphs(items: dict[str, Items]) -> bool:
    """Return whether items are those of `load_glyphs`: code points in both views."""
    return set(items) == {"name", "image"} and all(
        own.n_items and all(str(id).startswith("U+") for id in own.ids)
        for own in items.values()
    )


def to_png(image: Any, side: int) -> bytes:
    """Return a picture as PNG, scaled down to fit into a square."""
    image = image.copy()
    image.thumbnail((side, side))
    file = io.BytesIO()
    image.save(file, format="PNG")
    return file.getvalue()


def shorten(text: str, most: int) -> str:
    """Return a text in one line of at most `most` letters."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def _words(text: str) -> list[str]:
    """Return the words of a text in small letters."""
    return WORD.findall(text.lower())


def _places(items: Items, ids: Any) -> np.ndarray:
    """Return the position of each item of a model among ids, -1 for none."""
    known = Items(np.asarray(ids), view=items.view)
    places = np.full(items.n_items, -1)
    is_known = known.contains(items.ids)
    places[is_known] = known.positions(items.ids[is_known])
    return places

"""What items look like to people: a title, a text, a picture; or only their ids."""

import io
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.features import read_picture
from linkspread.ground.errors import LinkspreadError
from linkspread.links import Items

MAX_TITLE, MAX_TEXT = 90, 400


class Contents:
    """Items of which only ids are known; others know more."""

    # Pictures are black on white, so that a dark page may turn them round.
    is_ink = False

    def __init__(self, items: dict[str, Items]) -> None:
        self.items = items

    def text(self, view: str, position: int) -> str:
        """Return the text of an item, "" where it has none."""
        return ""

    def has_pictures(self, view: str) -> bool:
        """Tell whether the items of a view are pictures."""
        return False

    def has_texts(self, view: str) -> bool:
        """Tell whether the items of a view are texts."""
        return False

    def can_read(self, view: str) -> bool:
        """Tell whether new texts or pictures can search from a view."""
        return False

    def picture(self, view: str, position: int, side: int) -> bytes:
        """Return the picture of an item as PNG, no larger than a square."""
        raise LinkspreadError(f"items of view {view!r} must have pictures; none has.")

    def rows(self, view: str, content: Any) -> Any:
        """Return the features of a new text or picture."""
        raise LinkspreadError(
            f"view {view!r} must know how its features were made, and this model does "
            "not say. Search with one of its items."
        )

    def labels(self, view: str) -> np.ndarray | None:
        """Return the classes of the items as integers, -1 where unknown."""
        return None

    def title(self, view: str, position: int) -> str:
        """Return what an item is called."""
        text = self.text(view, position)
        return shorten(text, MAX_TITLE) or str(self.items[view].ids[position])

    def caption(self, view: str, position: int) -> str:
        """Return what another view says of the item with the same id."""
        id = self.items[view].ids[position]
        for other, items in self.items.items():
            if other != view and self.has_texts(other) and items.contains([id])[0]:
                return self.title(other, int(items.positions([id])[0]))
        return ""


class FeatureContents(Contents):
    """Items of a features folder: texts, and pictures in files."""

    def __init__(self, items: dict[str, Items], features: Any) -> None:
        super().__init__(items)
        self.features = features
        self._places = {
            view: _places(items[view], features.ids[view])
            for view in items
            if view in features.ids
        }

    def text(self, view: str, position: int) -> str:
        """Return the text of an item."""
        place = self._place(view, position)
        if place is None or not self.has_texts(view):
            return ""
        return shorten(str(self.features.contents[view][place]), MAX_TEXT)

    def has_pictures(self, view: str) -> bool:
        """Tell whether the items of a view are pictures."""
        return self.features.kinds.get(view) == "picture"

    def has_texts(self, view: str) -> bool:
        """Tell whether the items of a view are texts."""
        return self.features.kinds.get(view) == "text"

    def can_read(self, view: str) -> bool:
        """Tell whether new texts or pictures can search from a view."""
        return view in self.features.kinds

    def picture(self, view: str, position: int, side: int) -> bytes:
        """Return the picture of an item as PNG."""
        place = self._place(view, position)
        if place is None or not self.has_pictures(view):
            return super().picture(view, position, side)
        # Only names of the collection come here, never one that a browser sent.
        path = Path(self.features.root) / str(self.features.contents[view][place])
        return to_png(read_picture(path)[0], side)

    def rows(self, view: str, content: Any) -> Any:
        """Return the features of a new text or picture."""
        return self.features.transform(view, [content])

    def labels(self, view: str) -> np.ndarray | None:
        """Return the classes of the items as integers, -1 where unknown."""
        own = self.features.labels.get(view)
        if own is None or view not in self._places:
            return None
        every = [np.asarray(of) for of in self.features.labels.values()]
        names = np.unique(np.concatenate(every))
        numbers = np.searchsorted(names, own)
        numbers[np.asarray(own) == ""] = -1
        places = self._places[view]
        return np.where(places >= 0, numbers[np.maximum(places, 0)], -1)

    def _place(self, view: str, position: int) -> int | None:
        """Return where an item of the model is in the folder."""
        places = self._places.get(view)
        return None if places is None or places[position] < 0 else int(places[position])


class PictureCache:
    """The pictures that were asked for last, as PNG."""

    def __init__(self, max_bytes: int = 64_000_000) -> None:
        self.max_bytes = max_bytes
        self._kept: OrderedDict[tuple, bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: tuple, make: Any) -> bytes:
        """Return a picture, made if it is not there."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        picture = make()
        with self._lock:
            self._size += len(picture) - len(self._kept.get(key, b""))
            self._kept[key] = picture
            while self._size > self.max_bytes:
                self._size -= len(self._kept.popitem(last=False)[1])
        return picture


def to_png(image: Any, side: int) -> bytes:
    """Return a picture as PNG, made smaller to fit into a square."""
    image = image.copy()
    image.thumbnail((side, side))
    file = io.BytesIO()
    image.save(file, format="PNG")
    return file.getvalue()


def shorten(text: str, most: int) -> str:
    """Return a text in one line of at most so many letters."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def _places(items: Items, ids: Any) -> np.ndarray:
    """Return where each item of a model is among ids, -1 for nowhere."""
    known = Items(np.asarray(ids), view=items.view)
    places = np.full(items.n_items, -1)
    is_known = known.contains(items.ids)
    places[is_known] = known.positions(items.ids[is_known])
    return places

"""Many texts in two arrays, so that they can lie in a file of arrays."""

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from linkspread.ground.errors import ModelError


class PackedTexts(Sequence[str]):
    """Hold many texts in two arrays, and give each when it is asked for."""

    def __init__(self, data: np.ndarray, ends: np.ndarray) -> None:
        self.data = data
        self.ends = ends

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return [self[i] for i in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        start = self.ends[place - 1] if place else 0
        return self.data[start : self.ends[place]].tobytes().decode("utf-8")

    def __repr__(self) -> str:
        return f"PackedTexts({len(self):,} texts)"


def pack_texts(texts: Sequence[str]) -> PackedTexts:
    """Return texts in two arrays in memory."""
    data = [text.encode("utf-8") for text in texts]
    joined = np.frombuffer(b"".join(data), np.uint8)
    return PackedTexts(joined, np.cumsum([len(own) for own in data], dtype="<i8"))


def checked_texts(data: np.ndarray, ends: np.ndarray) -> PackedTexts:
    """Return texts whose ends lie one after the other within their bytes."""
    is_flat = data.ndim == ends.ndim == 1
    if not is_flat or data.dtype != np.uint8 or ends.dtype != np.int64:
        raise ModelError(
            f"texts must be bytes and where each ends, got {data.dtype} and "
            f"{ends.dtype}. Make the features again."
        )
    steps = np.diff(ends, prepend=0)
    if (steps < 0).any() or (ends[-1] if len(ends) else 0) != len(data):
        raise ModelError(
            "texts must lie one after the other in their bytes, and do not. Make the "
            "features again."
        )
    return PackedTexts(data, ends)

"""A memory of limited size for results that the settings of a trial share."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray
Make = Callable[[Array], tuple[Array, ...]]

# Bytes of rows in the memory; the least recently used are dropped.
MAX_BYTES = 1e9
# Rows that are made at a time. Not a power of 2: tiles are transposed, and columns at
# such distances share cache lines.
TILE_ROWS = 500


class RowsOnce:
    """Rows of arrays, each made on first use."""

    def __init__(self, n_rows: int) -> None:
        # The place of each row among those that were made.
        self._places = np.full(n_rows, -1)
        self._arrays: tuple[Array, ...] = ()

    @property
    def n_bytes(self) -> int:
        """Size of all rows that were made."""
        return sum(array.nbytes for array in self._arrays)

    def of(self, positions: Array, make: Make) -> tuple[Array, ...]:
        """Return the rows at some positions, read-only.

        `make` returns arrays with a row for each given position. It is not kept, as it
        may refer to the memory that holds the rows.
        """
        missing = np.unique(positions[self._places[positions] < 0])
        if len(missing) or not self._arrays:
            self._add(missing, make(missing))
        places = self._places[positions]
        if np.array_equal(places, np.arange(len(self._arrays[0]))):
            return self._arrays  # all rows, without a copy
        return tuple(array[places] for array in self._arrays)

    def _add(self, positions: Array, made: tuple[Array, ...]) -> None:
        """Append new rows."""
        n_before = len(self._arrays[0]) if self._arrays else 0
        if n_before:
            both = zip(self._arrays, made, strict=True)
            made = tuple(np.concatenate(arrays) for arrays in both)
        self._arrays = made
        self._places[positions] = n_before + np.arange(len(positions))


def in_tiles(
    make: Callable[[slice], tuple[Array, ...]], n_rows: int
) -> tuple[Array, ...]:
    """Make arrays a few rows at a time."""
    first = make(slice(0, TILE_ROWS))
    arrays = tuple(np.empty((n_rows, *part.shape[1:]), part.dtype) for part in first)
    for start in range(0, n_rows, TILE_ROWS):
        tile = slice(start, start + TILE_ROWS)
        parts = make(tile) if start else first
        for array, part in zip(arrays, parts, strict=True):
            array[tile] = part
    return arrays


class Memory:
    """Keep results by key, of `RowsOnce` the most recently used.

    Rows take at most `max_bytes`; other results count as small.
    """

    def __init__(self, max_bytes: float = MAX_BYTES) -> None:
        self.max_bytes = max_bytes
        self._small: dict[Any, Any] = {}
        self._rows: OrderedDict[Any, RowsOnce] = OrderedDict()

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return the result of a key, made on first use."""
        if key not in self._small:
            self._small[key] = make()
        return self._small[key]

    def rows(self, key: Any, n_rows: int) -> RowsOnce:
        """Return the rows of a key, empty at first."""
        if key not in self._rows:
            self._make_room()
            self._rows[key] = RowsOnce(n_rows)
        self._rows.move_to_end(key)
        return self._rows[key]

    def _make_room(self) -> None:
        """Drop the least recently used rows."""
        # Rows are made after they are entered, so sizes are known only now.
        while sum(rows.n_bytes for rows in self._rows.values()) > self.max_bytes:
            self._rows.popitem(last=False)

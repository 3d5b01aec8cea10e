"""Blocks of rows, of which each worker holds a few."""

from collections.abc import Iterator
from dataclasses import dataclass

# Codes are solved so many at a time: blocks of multiples of it give the same numbers
# as one machine does.
MULTIPLE = 64
# A worker that is done early takes another block.
BLOCKS_PER_WORKER = 2
# Of a block of a table: a search holds two of them and copies of both.
BLOCK_BYTES = 1 << 27


@dataclass(frozen=True)
class RowBlocks:
    """Where a table is cut."""

    boundaries: tuple[int, ...]
    homes: tuple[str, ...] = ()

    @property
    def n_items(self) -> int:
        """Number of all rows."""
        return self.boundaries[-1]

    def home(self, i: int) -> str | None:
        """Return the worker of a block, or None if any will do."""
        return self.homes[i] if self.homes else None

    def __len__(self) -> int:
        return len(self.boundaries) - 1

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(zip(self.boundaries[:-1], self.boundaries[1:], strict=True))


def cut_rows(
    n_items: int, row_bytes: int, *, n_workers: int, multiple: int = MULTIPLE
) -> RowBlocks:
    """Cut a table into blocks, a few for each worker and none too large."""
    n_blocks = BLOCKS_PER_WORKER * n_workers
    step = min(-(-n_items // n_blocks), max(BLOCK_BYTES // row_bytes, 1))
    step = -(-step // multiple) * multiple
    return RowBlocks((*range(0, n_items, step), n_items))

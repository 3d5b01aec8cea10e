"""Rows and texts that are written to a passing file as they come.

The file has no name (where the system allows that), so that nothing is left behind
however the program ends; in the end it is mapped into memory.
"""

import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse

from linkspread.ground.errors import LinkspreadError
from linkspread.manifests.packed_texts import PackedTexts

# Whether the row is sparse, and how many features it has.
HEADER = struct.Struct("<II")


def pack_rows(X: Any) -> Iterator[bytes]:
    """Yield the rows of a table as bytes, which tell what they are."""
    if not sparse.issparse(X):
        head = HEADER.pack(0, X.shape[1])
        yield from (head + row.tobytes() for row in np.asarray(X, "<f4", order="C"))
        return
    X, head = sparse.csr_array(X), HEADER.pack(1, X.shape[1])
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        columns = X.indices[start:stop].astype("<i4")
        yield head + columns.tobytes() + X.data[start:stop].astype("<f4").tobytes()


class _Column:
    """Numbers in a passing file."""

    def __init__(self, folder: Path | None, dtype: str) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._dtype = np.dtype(dtype)

    def write(self, data: bytes) -> None:
        """Add numbers at the end."""
        self._file.write(data)

    def close(self) -> None:
        """Give the file back; what is mapped of it stays."""
        self._file.close()

    def mapped(self) -> np.ndarray:
        """Return all numbers; what is changed in them is changed in memory only."""
        self._file.flush()
        n_bytes = self._file.tell()
        if not n_bytes:
            return np.zeros(0, self._dtype)
        mapped = np.memmap(
            self._file, self._dtype, "c", shape=(n_bytes // self._dtype.itemsize,)
        )
        return np.asarray(mapped)


class RowFile:
    """Gather the rows of a view, one by one."""

    def __init__(self, folder: Path | None = None) -> None:
        self.n_rows = 0
        self._values = _Column(folder, "<f4")
        self._indices = _Column(folder, "<i4")
        self._lengths: list[int] = []
        self._shape: tuple[int, int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._values.close()
        self._indices.close()

    def append(self, row: bytes) -> None:
        """Add a row that `pack_rows` gave."""
        is_sparse, n_features = HEADER.unpack_from(row)
        self._shape = self._shape or (is_sparse, n_features)
        columns, values = _parts(row, is_sparse, n_features)
        is_same = self._shape == (is_sparse, n_features)
        if not is_same or len(columns) != len(values) or not np.isfinite(values).all():
            raise LinkspreadError(
                f"rows of a view must be finite and of {self._shape[1]:,} features, "
                "got another one. Look at the transformer of the view."
            )
        self._values.write(values.tobytes())
        if is_sparse:
            self._indices.write(columns.tobytes())
            self._lengths.append(len(columns))
        self.n_rows += 1

    def finish(self) -> Any:
        """Return the table of all rows."""
        assert self._shape is not None, "a table has at least one row"
        is_sparse, n_features = self._shape
        values = self._values.mapped()
        if not is_sparse:
            return values.reshape(self.n_rows, n_features)
        ends = np.cumsum([0, *self._lengths])
        kind = np.int32 if ends[-1] < np.iinfo(np.int32).max else np.int64
        parts = (
            values,
            self._indices.mapped().astype(kind, copy=False),
            ends.astype(kind),
        )
        return sparse.csr_array(parts, shape=(self.n_rows, n_features))


def _parts(row: bytes, is_sparse: int, n_features: int) -> tuple[Any, Any]:
    """Return the columns and the values of a row."""
    if not is_sparse:
        values = np.frombuffer(row, "<f4", offset=HEADER.size)
        return range(n_features), values
    count = (len(row) - HEADER.size) // 8
    columns = np.frombuffer(row, "<i4", count, HEADER.size)
    return columns, np.frombuffer(row, "<f4", count, HEADER.size + 4 * count)


class TextFile:
    """Gather texts, one by one."""

    def __init__(self, folder: Path | None = None) -> None:
        self._bytes = _Column(folder, "|u1")
        self._lengths: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._bytes.close()

    def append(self, text: str) -> None:
        """Add a text."""
        data = text.encode("utf-8")
        self._bytes.write(data)
        self._lengths.append(len(data))

    def finish(self) -> PackedTexts:
        """Return all texts."""
        return PackedTexts(self._bytes.mapped(), np.cumsum(self._lengths, dtype="<i8"))

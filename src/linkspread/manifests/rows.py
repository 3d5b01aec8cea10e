"""Rows and texts of a view in temporary files, written one by one and then mapped.

Where the system allows it the files have no names, so that none remains even after a
crash.
"""

import struct
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self, overload

import numpy as np
import pyarrow as pa
from scipy import sparse

from linkspread.ground.errors import LinkspreadError, ModelError
from linkspread.storage.schema import AnyArray

# Whether the row is sparse, and how many features it has.
_HEADER = struct.Struct("<II")


class Texts(Sequence[str]):
    """Texts as the two buffers of an Arrow array, in memory or mapped from a file."""

    def __init__(self, offsets: np.ndarray, data: np.ndarray) -> None:
        self.offsets = offsets
        self.data = data
        buffers = pa.py_buffer(offsets), pa.py_buffer(data)
        self._array = pa.LargeStringArray.from_buffers(len(offsets) - 1, *buffers)

    @classmethod
    def from_strings(cls, texts: Sequence[str]) -> Self:
        """Return texts in memory."""
        encoded = [text.encode("utf-8") for text in texts]
        offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        return cls(offsets, np.frombuffer(b"".join(encoded), np.uint8))

    @classmethod
    def from_buffers(cls, offsets: AnyArray, data: AnyArray) -> Self:
        """Return the texts of two buffers, after checking them."""
        is_flat = offsets.ndim == data.ndim == 1 and len(offsets) > 0
        if not is_flat or offsets.dtype != np.int64 or data.dtype != np.uint8:
            raise ModelError(
                "texts must be stored as bytes and int64 offsets, got "
                f"{data.dtype} and {offsets.dtype}. Make the features again."
            )
        texts = cls(offsets, data)
        try:
            texts._array.validate(full=True)
        except pa.ArrowInvalid as error:
            raise ModelError(
                f"texts must be stored one after the other in UTF-8, got others "
                f"({error!s:.80}). Make the features again."
            ) from error
        return texts

    def __len__(self) -> int:
        return len(self._array)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: Any) -> Any:
        if isinstance(place, slice):
            return self._array[place].to_pylist()
        return self._array[int(place)].as_py()

    def __repr__(self) -> str:
        return f"Texts({len(self):,} texts)"


def pack_rows(X: Any) -> Iterator[bytes]:
    """Yield the rows of a table as bytes, each with a header."""
    if not sparse.issparse(X):
        head = _HEADER.pack(0, X.shape[1])
        yield from (head + row.tobytes() for row in np.asarray(X, "<f4", order="C"))
        return
    X, head = sparse.csr_array(X), _HEADER.pack(1, X.shape[1])
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        columns = X.indices[start:stop].astype("<i4")
        yield head + columns.tobytes() + X.data[start:stop].astype("<f4").tobytes()


class RowFile:
    """Temporary files of rows and previews of items, added one by one."""

    def __init__(self, folder: Path | None = None) -> None:
        self._values, self._indices, self._texts = (
            tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
            for _ in range(3)
        )
        self._n_stored: list[int] = []
        self._n_bytes: list[int] = []
        self._shape: tuple[int, int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        # Mapped arrays remain valid. On a full disk closing one fails; all are closed.
        with ExitStack() as files:
            for file in (self._values, self._indices, self._texts):
                files.callback(file.close)

    def append(self, row: bytes, shown: str) -> None:
        """Add a row from `pack_rows`, and the preview of its item."""
        is_sparse, n_features = _HEADER.unpack_from(row)
        self._shape = self._shape or (is_sparse, n_features)
        n_stored = (len(row) - _HEADER.size) // (8 if is_sparse else 4)
        columns = row[_HEADER.size : -4 * n_stored or None]
        values = np.frombuffer(row, "<f4", n_stored, len(row) - 4 * n_stored)
        is_whole = is_sparse or n_stored == n_features
        is_same = self._shape == (is_sparse, n_features)
        if not is_same or not is_whole or not np.isfinite(values).all():
            raise LinkspreadError(
                f"rows of a view must be finite and of {self._shape[1]:,} features, "
                "got another one. Check the transformer of the view."
            )
        self._indices.write(columns)
        self._values.write(values.tobytes())
        self._n_stored.append(n_stored)
        text = shown.encode("utf-8")
        self._texts.write(text)
        self._n_bytes.append(len(text))

    def finish(self) -> tuple[Any, Texts]:
        """Return the table of all rows, and the texts."""
        assert self._shape is not None, "a table has at least one row"
        is_sparse, n_features = self._shape
        n_rows = len(self._n_stored)
        X = _mapped(self._values, "<f4")
        if not is_sparse:
            X = X.reshape(n_rows, n_features)
        else:
            ends = np.cumsum([0, *self._n_stored])
            kind = np.int32 if ends[-1] < np.iinfo(np.int32).max else np.int64
            indices = _mapped(self._indices, "<i4").astype(kind, copy=False)
            shape = n_rows, n_features
            X = sparse.csr_array((X, indices, ends.astype(kind)), shape=shape)
        offsets = np.cumsum([0, *self._n_bytes], dtype=np.int64)
        return X, Texts(offsets, _mapped(self._texts, "|u1"))


def _mapped(file: Any, dtype: str) -> np.ndarray:
    """Return a file as an array, mapped copy-on-write."""
    file.flush()
    n_bytes = file.tell()
    if not n_bytes:
        return np.zeros(0, dtype)
    shape = (n_bytes // np.dtype(dtype).itemsize,)
    return np.asarray(np.memmap(file, dtype, "c", shape=shape))

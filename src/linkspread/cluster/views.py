"""Views that stay on the disk and are read a few rows at a time.

>>> import tempfile
>>> from pathlib import Path
>>> import numpy as np
>>> from linkspread.cluster import open_view
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder, "text.npy")
...     np.save(path, np.arange(12.0).reshape(6, 2))
...     view = open_view(path, chunk_rows=4)
...     view.shape, view.boundaries, view.read(1).tolist()
((6, 2), (0, 4, 6), [[8.0, 9.0], [10.0, 11.0]])
"""

import os
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.cluster.view_files import KINDS, ZARR, read_chunk, survey_file
from linkspread.ground.checks import check_count
from linkspread.ground.errors import LinkspreadError, ViewError
from linkspread.tables.validation import check_table

Array = np.ndarray


@dataclass(frozen=True)
class ChunkedView:
    """A table in one file or several, of which only the asked rows are read.

    Attributes
    ----------
    name : str
        What messages call it.
    files : tuple of str
        The file of each chunk.
    boundaries : tuple of int
        Chunk k has the rows from ``boundaries[k]`` to ``boundaries[k + 1]``.
    origins : tuple of int
        Where each chunk begins in its file: a row, or a row group of parquet.
    n_features : int
    dtype : dtype
        float32 or float64.
    """

    name: str
    files: tuple[str, ...]
    boundaries: tuple[int, ...]
    origins: tuple[int, ...]
    n_features: int
    dtype: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of items and of features."""
        return self.boundaries[-1], self.n_features

    def read(self, k: int) -> Array:
        """Return the rows of one chunk.

        Parameters
        ----------
        k : int

        Returns
        -------
        rows : ndarray of shape (n_rows, n_features)
            float32 or float64, finite.
        """
        return self._part(k, slice(None))

    def rows(self, start: int, stop: int) -> Array:
        """Return the rows from one position to another.

        Parameters
        ----------
        start, stop : int

        Returns
        -------
        rows : ndarray of shape (stop - start, n_features)
        """
        parts = [
            self._part(k, slice(max(start - first, 0), min(stop, last) - first))
            for k, first, last in self._chunks()
            if first < stop and start < last
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def take(self, positions: Array) -> Array:
        """Return the rows at some positions.

        Parameters
        ----------
        positions : ndarray of int of shape (n,)
            Sorted.

        Returns
        -------
        rows : ndarray of shape (n, n_features)
        """
        taken = np.empty((len(positions), self.n_features), self.dtype)
        edges = np.searchsorted(positions, self.boundaries)
        for k, first, _ in self._chunks():
            own = slice(edges[k], edges[k + 1])
            if own.stop > own.start:
                taken[own] = self._part(k, positions[own] - first)
        return taken

    def chunk_of(self, row: int) -> int:
        """Return the number of the chunk that holds a row.

        Parameters
        ----------
        row : int

        Returns
        -------
        k : int
        """
        return bisect_right(self.boundaries, row) - 1

    def _chunks(self) -> Iterator[tuple[int, int, int]]:
        """Yield the number, the first row and the end of every chunk."""
        bounds = zip(self.boundaries[:-1], self.boundaries[1:], strict=True)
        yield from ((k, first, last) for k, (first, last) in enumerate(bounds))

    def _part(self, k: int, rows: Any) -> Array:
        """Return some rows of a chunk, checked."""
        path, n_rows = self.files[k], self.boundaries[k + 1] - self.boundaries[k]
        name = f"{self.name}, chunk {k}"
        try:
            part = read_chunk(path, self.origins[k], n_rows, name=name)
        except (OSError, EOFError, ValueError) as error:
            if isinstance(error, LinkspreadError):
                raise
            raise ViewError(
                f"chunk {k} of view {self.name!r} must be a file that this process can "
                f"read, got {path} ({error}). Put it back, and let every worker see "
                "the same folder."
            ) from error
        if part.shape != (n_rows, self.n_features):
            raise ViewError(
                f"chunk {k} of view {self.name!r} must have the shape that it had when "
                f"it was opened, {(n_rows, self.n_features)}, got {part.shape} in "
                f"{path}. Leave the files alone while they are in use."
            )
        part = np.array(part[rows])  # a copy: the mapped file may go away
        return check_table(part, view=name).astype(self.dtype, copy=False)


def open_view(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    chunk_rows: int | None = None,
) -> ChunkedView:
    """Open a table on the disk without reading it.

    Parameters
    ----------
    path : str or Path
        A .npy file, which is read by ranges of rows; a .parquet file, read by row
        groups; a folder of either, one chunk or more for each file, in the order of
        their names; or an array in a .zarr folder (extra `zarr`), read by its chunks.
    name : str, default=None
        What messages call it; None takes the name of the file or folder.
    chunk_rows : int, default=None
        Rows of a chunk of a .npy file or zarr array; None takes 64 MB, of zarr whole
        chunks of it.

    Returns
    -------
    view : ChunkedView
    """
    if chunk_rows is not None:
        check_count(chunk_rows, name="chunk_rows", remedy="None takes 64 MB.")
    path = Path(path).absolute()
    name = path.stem if name is None else name
    chunks, widths, dtypes = [], [], []
    for file in _files(path, name):
        try:
            own, n_features, dtype = survey_file(file, chunk_rows)
        except (OSError, EOFError, ValueError) as error:
            if isinstance(error, LinkspreadError):
                raise
            raise ViewError(
                f"view {name!r} must be made of whole {' or '.join(KINDS)} files, got "
                f"{file} ({error}). Write that file again."
            ) from error
        chunks += [(str(file), origin, n_rows) for origin, n_rows in own]
        widths.append(n_features)
        dtypes.append(dtype)
    _check_widths(widths, name)
    files, origins, sizes = zip(*chunks, strict=True)
    boundaries = (0, *np.cumsum(sizes).tolist())
    dtype = np.dtype(np.float32 if set(dtypes) == {np.float32} else np.float64)
    return ChunkedView(name, files, boundaries, origins, widths[0], dtype)


def _files(path: Path, name: str) -> list[Path]:
    """Return the files that a view is made of, all of one kind."""
    files = [path] if path.is_file() or path.suffix == ZARR else []
    if path.is_dir() and not files:
        files = sorted(own for own in path.iterdir() if own.suffix in KINDS)
    kinds = {file.suffix for file in files}
    if len(kinds) == 1 and kinds <= {*KINDS, ZARR}:
        return files
    got = "none" if not files else f"files that end in {', '.join(sorted(kinds))}"
    raise ViewError(
        f"view {name!r} must be a {' or '.join(KINDS)} file, a folder of files of one "
        f"of these kinds, or a {ZARR} folder, got {got} at {path}. Write blocks of "
        "rows there with `numpy.save`."
    )


def _check_widths(widths: list[int], name: str) -> None:
    """Refuse files with different numbers of columns."""
    if len(set(widths)) > 1:
        raise ViewError(
            f"all files of view {name!r} must have the same columns, got "
            f"{sorted(set(widths))} columns. Write them with the same features."
        )

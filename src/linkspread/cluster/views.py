"""Views on disk that are read a few rows at a time.

>>> import tempfile
>>> from pathlib import Path
>>> import numpy as np
>>> from linkspread.cluster import open_view
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder, "text.npy")
...     np.save(path, np.arange(12.0).reshape(6, 2))
...     view = open_view(path, chunk_rows=4)
...     view.shape, view.boundaries, view.rows(4, 6).tolist()
((6, 2), (0, 4, 6), [[8.0, 9.0], [10.0, 11.0]])
"""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.cluster.session import Session
from linkspread.ground.checks import check_count
from linkspread.ground.errors import LinkspreadError, ViewError
from linkspread.ground.progress import format_bytes
from linkspread.tables import Table
from linkspread.tables.files import CHUNKED, find_chunks, read_chunk, read_id_column
from linkspread.tables.validation import (
    Views,
    as_mapping,
    check_ids,
    check_table,
    check_varied,
    check_views,
    given_by_view,
)

Array = np.ndarray
FOLDERS = (".zarr",)
FILES = tuple(kind for kind in CHUNKED if kind not in FOLDERS)


@dataclass(frozen=True)
class ChunkedView:
    """A table in one file or several, of which only the rows needed are read.

    Attributes
    ----------
    name : str
        Name in messages.
    files : tuple of str
        The file of each chunk.
    boundaries : tuple of int
        Chunk k has the rows from ``boundaries[k]`` to ``boundaries[k + 1]``.
    origins : tuple of int
        Start of each chunk in its file: a row, or a row group of parquet.
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

    def rows(self, start: int, stop: int) -> Array:
        """Return the rows from one position to another, finite.

        Parameters
        ----------
        start, stop : int

        Returns
        -------
        rows : ndarray of shape (stop - start, n_features)
        """
        parts = [
            self._part(k, slice(max(start - first, 0), min(stop, last) - first))
            for k, (first, last) in enumerate(pairwise(self.boundaries))
            if first < stop and start < last
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def take(self, positions: Array) -> Array:
        """Return the rows at some positions, finite.

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
        for k, (start, stop) in enumerate(pairwise(edges)):
            if stop > start:
                own = positions[start:stop] - self.boundaries[k]
                taken[start:stop] = self._part(k, own)
        return taken

    def _part(self, k: int, rows: Any) -> Array:
        """Return some rows of a chunk, checked."""
        path, n_rows = self.files[k], self.boundaries[k + 1] - self.boundaries[k]
        name = f"{self.name}, chunk {k}"
        rule = f"chunk {k} of view {self.name!r} must be a file that can be read"
        with _refusing(f"{rule}, got {path}", "Let every worker see the same folder."):
            part = read_chunk(path, self.origins[k], n_rows, name=name)
        if part.shape != (n_rows, self.n_features):
            raise ViewError(
                f"chunk {k} of view {self.name!r} must keep the shape "
                f"{(n_rows, self.n_features)} that it was opened with, got "
                f"{part.shape} in {path}. Do not change files while they are in use."
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
        their names; or an array in a .zarr folder, read by its chunks.
    name : str, default=None
        Name in messages; None takes that of the file or folder.
    chunk_rows : int, default=None
        Rows of a chunk of a .npy file or zarr array; None takes 64 MB, or a whole
        number of zarr's own chunks.

    Returns
    -------
    view : ChunkedView
    """
    if chunk_rows is not None:
        check_count(chunk_rows, name="chunk_rows", remedy="None takes 64 MB.")
    path = Path(path).absolute()
    name = path.stem if name is None else name
    must = f"view {name!r} must be made of whole {' or '.join(FILES)} files"
    chunks: list[tuple[str, int, int]] = []
    widths, dtypes = set(), set()
    for file in _files(path, name):
        with _refusing(f"{must}, got {file}", "Write that file again."):
            own, n_features, dtype = find_chunks(file, chunk_rows)
        chunks += [(str(file), origin, n_rows) for origin, n_rows in own]
        widths.add(n_features)
        dtypes.add(dtype)
    if len(widths) > 1:
        raise ViewError(
            f"all files of view {name!r} must have the same columns, got "
            f"{sorted(widths)} columns. Write them with the same features."
        )
    files, origins, sizes = zip(*chunks, strict=True)
    boundaries = (0, *np.cumsum(sizes).tolist())
    single = np.dtype(np.float32 if dtypes == {np.float32} else np.float64)
    return ChunkedView(name, files, boundaries, origins, widths.pop(), single)


def _files(path: Path, name: str) -> list[Path]:
    """Return the files that a view is made of, all of one kind."""
    files = [path] if path.is_file() or path.suffix in FOLDERS else []
    if path.is_dir() and not files:
        files = sorted(own for own in path.iterdir() if own.suffix in FILES)
    kinds = {file.suffix for file in files}
    if len(kinds) == 1 and kinds <= set(CHUNKED):
        return files
    got = "none" if not files else f"files that end in {', '.join(sorted(kinds))}"
    raise ViewError(
        f"view {name!r} must be a {' or '.join(FILES)} file, a folder of files of one "
        f"of these kinds, or a {' or '.join(FOLDERS)} folder, got {got} at {path}. "
        "Write blocks of rows there with `numpy.save`."
    )


@contextmanager
def _refusing(rule: str, remedy: str) -> Iterator[None]:
    """Turn the errors of file readers into a ViewError."""
    try:
        yield
    except LinkspreadError:
        raise
    except (OSError, EOFError, ValueError) as error:
        raise ViewError(f"{rule} ({error}). {remedy}") from error


@dataclass(frozen=True)
class OpenViews:
    """The views of a fit as files that every worker can read."""

    chunked: dict[str, ChunkedView]
    ids: dict[str, Any]  # of the items of each view, or their number
    in_memory: Views  # those given as tables

    @property
    def columns(self) -> dict[str, tuple[str, ...] | None]:
        """The names of the used columns; None where there are none."""
        return {view: self.in_memory.columns.get(view) for view in self.chunked}

    @property
    def lasting(self) -> dict[str, ChunkedView]:
        """The views that are still on disk after the fit."""
        given = self.in_memory.read
        return {view: own for view, own in self.chunked.items() if view not in given}

    def report_columns(self, *, verbose: bool) -> dict[str, str]:
        """Log the used columns, and warn of those that may not be features."""
        on_disk = {view: str(Table(own)) for view, own in self.chunked.items()}
        return on_disk | self.in_memory.report_columns(verbose=verbose)

    def table(self, view: str) -> Array:
        """Return the whole table of a view, mapped from disk where possible."""
        own = self.chunked[view]
        if view in self.in_memory.read:
            return self.in_memory.read[view].values
        if len(set(own.files)) == 1 and own.files[0].endswith(".npy"):
            mapped = np.load(own.files[0], mmap_mode="r")
            if mapped.dtype == own.dtype:
                return mapped
        whole = np.empty(own.shape, own.dtype)
        for start, stop in pairwise(own.boundaries):
            whole[start:stop] = own.rows(start, stop)
        return whole

    def whole(self) -> Views:
        """Return all views as one machine reads them."""
        read = dict(self.in_memory.read)
        for view in self.lasting:
            ids = None if isinstance(self.ids[view], int) else self.ids[view]
            read[view] = Table(self.table(view), ids=ids)
        return Views({view: read[view] for view in self.chunked})


@contextmanager
def open_views(
    views: Any, ids: Mapping[str, Any] | None, folder: Any
) -> Iterator[OpenViews]:
    """Open the views of a fit; tables in memory are written to a folder first."""
    views = as_mapping(views)
    ids = given_by_view(ids, views, name="ids")
    on_disk = str | Path | ChunkedView
    tables = {v: own for v, own in views.items() if not isinstance(own, on_disk)}
    given = {v: own for v, own in ids.items() if v in tables}
    read = check_views(tables, given) if tables else Views({})
    for view, X in read.tables.items():
        check_varied(X, view=view)
    chunked, items = {}, dict(read.ids)
    with tempfile.TemporaryDirectory(dir=folder, prefix="linkspread-") as written:
        for i, (view, own) in enumerate(views.items()):
            if view in tables:
                path = Path(written, f"view-{i}.npy")
                chunked[view] = _write(read.tables[view], view, path)
            else:
                is_open = isinstance(own, ChunkedView)
                opened = own if is_open else open_view(own, name=view)
                chunked[view] = replace(opened, name=view)
                items[view] = _items(chunked[view], ids.get(view))
        yield OpenViews(chunked, {view: items[view] for view in views}, read)


def _write(X: Any, view: str, path: Path) -> ChunkedView:
    """Write a table to a file and open that."""
    if sparse.issparse(X):
        raise ViewError(
            f"view {view!r} must be dense for a fit on a cluster, got a sparse matrix. "
            "Reduce it to fewer dense features, or fit on one machine."
        )
    try:
        np.save(path, X)
    except OSError as error:
        raise LinkspreadError(
            f"`folder` must have room for view {view!r}, {format_bytes(X.nbytes)}, got "
            f"an error from {path.parent.parent} ({error}). Free some space there, or "
            "give another folder."
        ) from error
    return open_view(path, name=view)


def _items(view: ChunkedView, ids: Any) -> Any:
    """Return the ids of a view's items, or their number."""
    if ids is None:
        ids = read_id_column(list(dict.fromkeys(view.files)))
    n_items = view.shape[0]
    return n_items if ids is None else check_ids(ids, n_items, view=view.name)


def check_files(session: Session, views: Mapping[str, ChunkedView]) -> None:
    """Refuse workers that do not see the files of a view."""
    for name, view in views.items():
        answers = session.client.run(_missing, sorted(set(view.files)))
        for worker, file in answers.items():
            if file is not None:
                raise ViewError(
                    f"the files of view {name!r} must be visible to every worker, got "
                    f"no {file} on {worker}. Give paths on a disk that all share, or a "
                    "`folder` on it for tables in memory."
                )


def _missing(files: list[str]) -> str | None:
    """Return the first file that is not there."""
    return next((file for file in files if not Path(file).exists()), None)

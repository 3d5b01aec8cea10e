"""The views of a fit as files that every worker can read."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.cluster.session import Session
from linkspread.cluster.view_files import read_ids
from linkspread.cluster.views import ChunkedView, open_view
from linkspread.ground.errors import LinkspreadError, ViewError
from linkspread.ground.progress import format_bytes
from linkspread.tables import Table, Views
from linkspread.tables.validation import as_mapping, check_varied, check_views

Array = np.ndarray


@dataclass(frozen=True)
class OpenViews:
    """Views on the disk, and what was given with them."""

    chunked: dict[str, ChunkedView]
    ids: dict[str, Any]
    read: Views

    @property
    def tables(self) -> dict[str, Array]:
        """The tables in memory."""
        return self.read.tables

    @property
    def columns(self) -> dict[str, tuple[str, ...] | None]:
        """The names of the columns that are used; None where they have none."""
        return {view: self.read.columns.get(view) for view in self.chunked}

    def tell(self, *, verbose: bool) -> dict[str, str]:
        """Say which columns are used, and warn of those that may be no features."""
        on_disk = {view: str(Table(own)) for view, own in self.chunked.items()}
        return on_disk | self.read.report_columns(verbose=verbose)

    def table(self, view: str) -> Array:
        """Return the whole table of a view, mapped from the disk where it can be."""
        own = self.chunked[view]
        if view in self.tables:
            return self.tables[view]
        if len(set(own.files)) == 1 and own.files[0].endswith(".npy"):
            mapped = np.load(own.files[0], mmap_mode="r")
            if mapped.dtype == own.dtype:
                return mapped
        whole = np.empty(own.shape, own.dtype)
        for k, start in enumerate(own.boundaries[:-1]):
            whole[start : own.boundaries[k + 1]] = own.read(k)
        return whole

    def whole(self) -> Views:
        """Return all views as one machine reads them, mapped where they can be."""
        read = dict(self.read.read)
        for view in self.chunked.keys() - read.keys():
            ids = None if isinstance(self.ids[view], int) else self.ids[view]
            read[view] = Table(np.asarray(self.table(view)), ids=ids)
        return Views({view: read[view] for view in self.chunked})


@contextmanager
def open_views(
    views: Any, ids: Mapping[str, Any] | None, folder: Any
) -> Iterator[OpenViews]:
    """Open the views of a fit; tables in memory are written to a folder first."""
    views, ids = as_mapping(views), dict(ids or {})
    _check_names(views, ids)
    tables = {v: own for v, own in views.items() if not _is_on_disk(own)}
    given = {v: own for v, own in ids.items() if v in tables}
    read = check_views(tables, given) if tables else Views({})
    checked, items = read.tables, read.ids
    for view, X in checked.items():
        check_varied(X, view=view)
    with tempfile.TemporaryDirectory(dir=folder, prefix="linkspread-") as written:
        chunked = {
            view: _write(checked[view], view, Path(written, f"view-{i}.npy"))
            if view in checked
            else _open(own, view)
            for i, (view, own) in enumerate(views.items())
        }
        items = {
            view: items[view] if view in items else _items(own, ids.get(view))
            for view, own in chunked.items()
        }
        yield OpenViews(chunked, items, read)


def check_files(session: Session, views: Mapping[str, ChunkedView]) -> None:
    """Refuse workers that do not see the files of a view."""
    for name, view in views.items():
        answers = session.client.run(_missing, sorted(set(view.files)))
        for worker, file in answers.items():
            if file is not None:
                raise ViewError(
                    f"the files of view {name!r} must be there on every worker, and "
                    f"{worker} has no {file}. Give paths on a disk that all share, or "
                    "a `folder` on it for tables in memory."
                )


def _check_names(views: Mapping[str, Any], ids: Mapping[str, Any]) -> None:
    """Refuse no views at all, and ids of views that are not there."""
    if not views or not all(isinstance(view, str) for view in views):
        raise ViewError(
            f"`views` must map names to paths or tables, got the names {list(views)}. "
            'Write {"text": "text.npy", "image": "image.npy"}.'
        )
    unknown = [view for view in ids if view not in views]
    if unknown:
        raise ViewError(
            f"`ids` must be for views at hand, {list(views)}, got {unknown}. Correct "
            "the names."
        )


def _is_on_disk(view: Any) -> bool:
    """Tell a path, or a view that was opened, from a table in memory."""
    return isinstance(view, str | Path | ChunkedView)


def _open(view: Any, name: str) -> ChunkedView:
    """Return a view under the name that the fit gives it."""
    if not isinstance(view, ChunkedView):
        return open_view(view, name=name)
    return ChunkedView(**{**vars(view), "name": name})


def _write(X: Any, view: str, path: Path) -> ChunkedView:
    """Write a table to a file and open that."""
    if sparse.issparse(X):
        raise ViewError(
            f"view {view!r} must be dense for a fit on a cluster, got a sparse matrix. "
            "Shorten it to dense features first, or fit on one machine."
        )
    try:
        np.save(path, X)
    except OSError as error:
        raise LinkspreadError(
            f"`folder` must have room for view {view!r}, {format_bytes(X.nbytes)}, and "
            f"writing to {path.parent.parent} failed ({error}). Free some space there, "
            "or give another folder."
        ) from error
    return open_view(path, name=view)


def _items(view: ChunkedView, ids: Any) -> Any:
    """Return the ids of a view's items, or their number."""
    n_items = view.shape[0]
    if ids is None:
        ids = read_ids(list(dict.fromkeys(view.files)))
    if ids is None:
        return n_items
    ids = np.asarray(ids)
    if ids.shape != (n_items,):
        raise ViewError(
            f"ids of view {view.name!r} must be as many as its rows, {n_items:,}, got "
            f"shape {ids.shape}. Give one id per row."
        )
    return ids


def _missing(files: list[str]) -> str | None:
    """Return the first file that is not there."""
    return next((file for file in files if not Path(file).exists()), None)

"""The table of one view: .npy, .npz, .parquet, .csv, or a features folder."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from scipy import sparse

from linkspread.cli.input_columns import read_frame
from linkspread.cli.input_places import Place
from linkspread.exceptions import LinkspreadError, ViewError
from linkspread.validation import check_table

__all__ = ["ViewTable", "naming_file", "read_features", "read_view"]

Array = np.ndarray


@dataclass(frozen=True)
class ViewTable:
    """What a file says of a view.

    Attributes
    ----------
    values : ndarray or csr_array of shape (n_items, n_features)
    ids : ndarray of shape (n_items,), or None
        None where items are known by their row.
    labels : ndarray of str of shape (n_items,), or None
        Empty where unknown.
    metric : str, or None
        The distance that suits the values, where that is known.
    left_out : tuple of str
        Columns that are neither features nor ids nor labels.
    """

    values: Any
    ids: Array | None = None
    labels: Array | None = None
    metric: str | None = None
    left_out: tuple[str, ...] = ()


def read_view(
    place: Place, *, id_column: str | None = None, label_column: str | None = None
) -> ViewTable:
    """Read the table of a view.

    Parameters
    ----------
    place : Place
    id_column : str, default=None
        Column of the ids; None takes `id` where there is one, else rows are counted.
    label_column : str, default=None
        Column of the labels, in tables that have it.

    Returns
    -------
    table : ViewTable
    """
    view, path = place.views[0], place.path
    if path.is_dir():
        return _from_features(place)
    if path.suffix.lower() not in READERS:
        raise ViewError(
            f"view {view!r} must be a file that ends in {', '.join(READERS)}, or a "
            f"features folder, got {str(path)!r}. Save it as one of these, or correct "
            "the path."
        )
    if not path.is_file():
        raise ViewError(
            f"the file of view {view!r} must exist, and there is none at "
            f"{str(path)!r}. Correct the path."
        )
    with naming_file(path):
        table = READERS[path.suffix.lower()](place, id_column, label_column)
        check_table(table.values, view=view)
    return table


def read_features(path: Path) -> Any:
    """Return the features of a folder that `linkspread featurize` wrote."""
    # Only here: most fits have no features folder.
    from linkspread.manifests import load_features

    return load_features(path)


@contextmanager
def naming_file(path: Path) -> Iterator[None]:
    """Begin the message of any error within with the name of a file."""
    try:
        yield
    except LinkspreadError as error:
        raise type(error)(f"{path}: {error}") from error


def _from_features(place: Place) -> ViewTable:
    """Return one view of a features folder."""
    view, features = place.views[0], read_features(place.path)
    if view not in features.views:
        raise ViewError(
            f"{place.path} must have the view {view!r}, and has "
            f"{', '.join(map(repr, features.views))}. Use one of these names."
        )
    return ViewTable(
        features.views[view],
        np.asarray(features.ids[view]),
        features.labels.get(view),
        features.metrics.get(view),
    )


def _from_npy(place: Place, *_: Any) -> ViewTable:
    """Return an array that numpy saved."""
    if place.columns:
        raise ViewError(
            "an .npy file has no columns to choose from, got "
            f"{', '.join(place.columns)!r} after the colon. Leave it out."
        )
    return ViewTable(_load(place.path))


def _from_npz(place: Place, id_column: str | None, _: Any) -> ViewTable:
    """Return an array of an archive, or a sparse matrix that scipy saved."""
    arrays = _load(place.path)
    with arrays:
        keys = list(arrays.files)
        if {"format", "shape"} <= set(keys):
            return ViewTable(sparse.csr_array(sparse.load_npz(place.path)))
        id_key = id_column or "id"
        key = _choose_key(keys, place.columns, id_key)
        with _numpy_errors():
            ids = arrays[id_key] if id_key in keys else None
            return ViewTable(arrays[key], ids)


def _choose_key(keys: list[str], wanted: tuple[str, ...], id_key: str) -> str:
    """Return the array of an archive that is meant."""
    others = list(wanted) or [key for key in keys if key != id_key]
    if len(others) != 1 or others[0] not in keys:
        got = f"{', '.join(wanted)!r}" if wanted else f"{len(others)} to choose from"
        raise ViewError(
            f"one array of the archive must be chosen, got {got}. It has "
            f"{', '.join(map(repr, keys))}; put one of them behind a colon, such as "
            f"file.npz:{keys[0] if keys else 'vectors'}."
        )
    return others[0]


def _load(path: Path) -> Any:
    """Load what numpy saved, if it is numbers and no pickle."""
    with _numpy_errors():
        return np.load(path, allow_pickle=False)


@contextmanager
def _numpy_errors() -> Iterator[None]:
    """Say in one sentence why a file of numpy cannot be read."""
    try:
        with warnings.catch_warnings():
            # Old files of numpy make it warn of how they were written.
            warnings.simplefilter("ignore")
            yield
    except (ValueError, OSError, EOFError, BadZipFile) as error:
        if isinstance(error, LinkspreadError):
            raise
        pickled = "pickle" in str(error) or "Object array" in str(error)
        reason = (
            "it holds Python objects (pickle), which could run a program"
            if pickled
            else f"it cannot be read ({str(error)[:80]})"
        )
        raise ViewError(
            f"the file must hold numbers as numpy saves them, and {reason}. Save it "
            "anew with np.save(path, array.astype('float32'))."
        ) from error


def _from_frame(
    place: Place, id_column: str | None, label_column: str | None
) -> ViewTable:
    """Return the columns of a parquet or CSV file."""
    frame = read_frame(
        place.path,
        columns=place.columns,
        id_column=id_column,
        label_column=label_column,
    )
    return ViewTable(
        frame.values, frame.ids, frame.labels, left_out=tuple(frame.left_out)
    )


READERS: dict[str, Callable[..., ViewTable]] = {
    ".npy": _from_npy,
    ".npz": _from_npz,
    ".parquet": _from_frame,
    ".csv": _from_frame,
    ".tsv": _from_frame,
}

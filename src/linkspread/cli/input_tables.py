"""The table of one view: .npy, .npz, .parquet, .csv, or a features folder."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from scipy import sparse

from linkspread.cli.input_columns import read_columns_file
from linkspread.cli.input_places import Place
from linkspread.ground.errors import LinkspreadError, ViewError
from linkspread.tables import Table
from linkspread.tables.validation import check_table

WITH_COLUMNS = (".parquet", ".csv", ".tsv")


def read_view(
    place: Place,
    *,
    columns: Sequence[str] = (),
    id_column: str | None = None,
    label_column: str | None = None,
) -> Table:
    """Read the table of a view."""
    view, path = place.views[0], place.path
    _check_choice(place, columns)
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
        table = READERS[path.suffix.lower()](place, columns, id_column, label_column)
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


def _check_choice(place: Place, columns: Sequence[str]) -> None:
    """Refuse a choice of columns, or of an array, where there is none."""
    view, kind = place.views[0], place.path.suffix.lower()
    if place.columns and kind != ".npz":
        chosen = ",".join(place.columns)
        remedy = f"Choose columns with --columns {view}={chosen}"
        raise ViewError(
            "a colon must stand before the array of an .npz file and nowhere else, "
            f"got {chosen!r} after that of {place.path.name!r}. "
            f"{remedy if kind in WITH_COLUMNS else 'Leave it out'}."
        )
    if columns and kind not in WITH_COLUMNS:
        raise ViewError(
            f"`--columns` must be of a table with names, a {', '.join(WITH_COLUMNS)} "
            f"file, got {','.join(columns)!r} for view {view!r} in "
            f"{place.path.name!r}. Leave it out."
        )


def _from_features(place: Place) -> Table:
    """Return one view of a features folder."""
    view, features = place.views[0], read_features(place.path)
    if view not in features.views:
        raise ViewError(
            f"{place.path} must have the view {view!r}, and has "
            f"{', '.join(map(repr, features.views))}. Use one of these names."
        )
    return Table(
        features.views[view],
        ids=np.asarray(features.ids[view]),
        labels=features.labels.get(view),
        metric=features.metrics.get(view),
    )


def _from_npy(place: Place, *_: Any) -> Table:
    """Return an array that numpy saved."""
    return Table(_load(place.path))


def _from_npz(place: Place, _: Any, id_column: str | None, __: Any) -> Table:
    """Return an array of an archive, or a sparse matrix that scipy saved."""
    arrays = _load(place.path)
    with arrays:
        keys = list(arrays.files)
        if {"format", "shape"} <= set(keys):
            return Table(sparse.csr_array(sparse.load_npz(place.path)))
        id_key = id_column or "id"
        key = _choose_key(keys, place.columns, id_key)
        with _numpy_errors():
            ids = arrays[id_key] if id_key in keys else None
            return Table(arrays[key], ids=ids)


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


def _from_columns(place: Place, columns: Sequence[str], *names: str | None) -> Table:
    """Return the columns of a parquet or CSV file."""
    id_column, label_column = names
    return read_columns_file(
        place.path, columns=columns, id_column=id_column, label_column=label_column
    )


READERS: dict[str, Callable[..., Table]] = {
    ".npy": _from_npy,
    ".npz": _from_npz,
    **dict.fromkeys(WITH_COLUMNS, _from_columns),
}

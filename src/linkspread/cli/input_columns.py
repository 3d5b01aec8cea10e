"""Columns of a parquet or CSV file: features, ids and labels."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linkspread.exceptions import LinkspreadError, ViewError, require

__all__ = ["Frame", "check_distinct", "choose_column", "read_frame"]

Array = np.ndarray
PURPOSE = "Reading tables"


class Frame(NamedTuple):
    """The parts of a table.

    Attributes
    ----------
    values : ndarray of shape (n_rows, n_features)
    ids : ndarray of shape (n_rows,), or None
    labels : ndarray of str of shape (n_rows,), or None
    left_out : list of str
    """

    values: Array
    ids: Array | None
    labels: Array | None
    left_out: list[str]


def read_frame(
    path: Path,
    *,
    columns: Sequence[str] = (),
    id_column: str | None = None,
    label_column: str | None = None,
) -> Frame:
    """Read features, ids and labels from a table.

    Parameters
    ----------
    path : Path
        Of a .parquet, .csv or .tsv file.
    columns : sequence of str, default=()
        Features; none takes the only column of lists, or else all numeric ones.
    id_column : str, default=None
        None takes `id` where there is one.
    label_column : str, default=None
        Taken where the table has it.

    Returns
    -------
    frame : Frame
    """
    id_name = id_column or "id"
    table = _read(path, as_text=[id_name, *([label_column] if label_column else [])])
    names = list(table.column_names)
    _check_names(names)
    if id_column:
        choose_column(names, id_column, what="ids")
    kept = {id_name, label_column} - set(columns)
    features = list(columns) or _feature_names(table, kept)
    for name in features:
        choose_column(names, name, what="features")
    return Frame(
        values=_values(table, features),
        ids=_ids(table, id_name) if id_name in names else None,
        labels=_texts(table, label_column) if label_column in names else None,
        left_out=[n for n in names if n not in features and n not in kept],
    )


def choose_column(names: Sequence[str], wanted: str, *, what: str) -> str:
    """Return a column that must be there, or list the columns there are."""
    if wanted not in names:
        raise LinkspreadError(
            f"the table must have the column {wanted!r} for the {what}, and has "
            f"{', '.join(map(repr, names))}. Name one of these."
        )
    return wanted


def check_distinct(ids: Array, column: str) -> Array:
    """Return ids of which none occurs twice."""
    _, first, n_times = np.unique(ids, return_index=True, return_counts=True)
    if np.any(n_times > 1):
        again = ids[first[n_times > 1][0]]
        rows = np.flatnonzero(ids == again) + 1
        raise ViewError(
            f"ids must be distinct, but {again.item()!r} in column {column!r} stands "
            f"in rows {rows[0]:,} and {rows[1]:,}, and {int(np.sum(n_times > 1)):,} "
            "ids occur more than once. Drop the repeated rows, or name another column "
            "with --id-column."
        )
    return ids


def _read(path: Path, as_text: list[str]) -> Any:
    """Return a pyarrow table; in CSV files some columns are kept as they are typed."""
    arrow = require("pyarrow", extra="tables", purpose=PURPOSE)
    try:
        if path.suffix.lower() == ".parquet":
            parquet = require("pyarrow.parquet", extra="tables", purpose=PURPOSE)
            return parquet.read_table(path)
        text = require("pyarrow.csv", extra="tables", purpose=PURPOSE)
        tab = path.suffix.lower() == ".tsv"
        return text.read_csv(
            path,
            parse_options=text.ParseOptions(
                delimiter="\t" if tab else ",", newlines_in_values=True
            ),
            convert_options=text.ConvertOptions(
                column_types={name: arrow.string() for name in as_text}
            ),
        )
    except (OSError, ValueError) as error:  # pyarrow's own errors derive from these
        reason = str(error).partition("\n")[0][:120]
        raise ViewError(
            f"the file must be a table, and cannot be read as one ({reason}). Correct "
            "that row, or write the file anew."
        ) from error


def _check_names(names: list[str]) -> None:
    """Refuse columns of the same name."""
    again = [name for name in names if names.count(name) > 1]
    if again:
        raise ViewError(
            f"columns must have different names, but {again[0]!r} occurs "
            f"{names.count(again[0])} times. Rename it."
        )


def _feature_names(table: Any, kept: set[str | None]) -> list[str]:
    """Return the columns that are features where nobody said which."""
    others = [field for field in table.schema if field.name not in kept]
    lists = [field.name for field in others if _is_list(field.type)]
    numbers = [field.name for field in others if _is_number(field.type)]
    if len(lists) == 1:
        return lists
    for field in others:
        _check_all_text(table.column(field.name), field)
    if lists or not numbers:
        got = f"{len(lists)} columns of lists" if lists else "no numeric column"
        raise ViewError(
            f"the table must have numeric columns or one column of lists, got {got}. "
            f"It has {', '.join(f'{f.name!r} ({f.type})' for f in table.schema)}; name "
            "the features behind a colon, such as file.parquet:embedding."
        )
    return numbers


def _check_all_text(column: Any, field: Any) -> None:
    """Refuse a column of numbers with something else among them."""
    if str(field.type) not in ("string", "large_string") or not len(column):
        return
    if _as_number(column[0].as_py()) is None:
        return
    for row, value in enumerate(column.to_pylist(), start=1):
        if value is not None and _as_number(value) is None:
            raise ViewError(
                f"column {field.name!r} must hold numbers throughout, got "
                f"{value!r:.60} in row {row:,}. Correct it, or name the features "
                "behind a colon to leave the column out."
            )


def _values(table: Any, names: list[str]) -> Array:
    """Return features as an array, from columns of numbers or one of lists."""
    types = {name: table.schema.field(name).type for name in names}
    if len(names) == 1 and _is_list(types[names[0]]):
        return _from_lists(table.column(names[0]), names[0])
    for name, kind in types.items():
        if not _is_number(kind):
            first = table.column(name)[0].as_py() if len(table) else None
            raise ViewError(
                f"column {name!r} must hold numbers, got {kind} such as {first!r:.60}. "
                "Leave it out, or turn it into features first."
            )
    single = all(str(kind) == "float" for kind in types.values())
    values = np.empty((len(table), len(names)), np.float32 if single else np.float64)
    for place, name in enumerate(names):
        column = table.column(name)
        values[:, place] = column.to_numpy()
        _check_finite(values[:, place], name, column)
    return values


def _from_lists(column: Any, name: str) -> Array:
    """Return a column of lists of equal length as an array."""
    lengths = np.array([-1 if row is None else len(row) for row in _rows(column)])
    # The length of most rows; a table without any row is refused later.
    width = int(np.bincount(np.maximum(lengths, 0)).argmax()) if len(lengths) else 0
    wrong = np.flatnonzero((lengths != width) | (lengths <= 0))
    if len(wrong):
        got = "no list" if lengths[wrong[0]] < 0 else f"{lengths[wrong[0]]} values"
        raise ViewError(
            f"lists of column {name!r} must all have the same length, {width} here, "
            f"got {got} in row {wrong[0] + 1:,} and {len(wrong) - 1:,} more such rows. "
            "Fill these rows in, or drop them."
        )
    values = np.array([np.asarray(row) for row in _rows(column)])
    if values.dtype.kind not in "iuf":
        raise ViewError(
            f"lists of column {name!r} must hold numbers only, got {column.type} such "
            f"as {column[0].as_py()!r:.60}. Write them as lists of float."
        )
    return values if values.dtype == np.float32 else values.astype(np.float64)


def _rows(column: Any) -> Any:
    """Return the rows of a column of lists as arrays, None where there is no list."""
    return column.to_numpy()


def _check_finite(values: Array, name: str, column: Any) -> None:
    """Refuse what is no finite number, naming its row."""
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        got = column[int(bad[0])].as_py()
        shown = "nothing" if got is None else repr(got)
        raise ViewError(
            f"column {name!r} must hold finite numbers, got {shown} in row "
            f"{bad[0] + 1:,} and {len(bad) - 1:,} more such rows. Fill them in, or "
            "drop those rows."
        )


def _ids(table: Any, name: str) -> Array:
    """Return the ids, one for each row."""
    values = table.column(name).to_pylist()
    for row, value in enumerate(values, start=1):
        if value is None or value == "":
            raise ViewError(
                f"column {name!r} must have an id in each row, got none in row "
                f"{row:,}. Give that row an id, or drop it."
            )
        if not isinstance(value, int | str):
            raise ViewError(
                f"ids in column {name!r} must be texts or whole numbers, got "
                f"{value!r:.60} in row {row:,}. Name another column with --id-column."
            )
    return check_distinct(np.array(values), name)


def _texts(table: Any, name: str | None) -> Array:
    """Return a column as texts, empty where there is no value."""
    values = table.column(name).to_pylist()
    return np.array(["" if value is None else str(value) for value in values])


def _as_number(value: Any) -> float | None:
    """Return the number that a text is, or None."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _is_number(kind: Any) -> bool:
    """Tell whether a type of pyarrow is one of numbers."""
    name = str(kind)
    return name.startswith(("int", "uint", "float", "halffloat", "double"))


def _is_list(kind: Any) -> bool:
    """Tell whether a type of pyarrow is one of lists."""
    return str(kind).startswith(("list", "large_list", "fixed_size_list"))

"""Files as tables: parquet, CSV, TSV, npy, npz and zarr, whole or in chunks.

The only reader of such files in linkspread:

- `read_table` returns features with ids and labels, for `fit`;
- `read_columns` returns columns as in the file, those of CSV as texts;
- `read_texts` returns all columns as texts;
- `find_chunks`, `read_chunk` and `read_id_column` read a file a few rows at a time.
"""

import csv
import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from scipy import sparse

from linkspread.ground.checks import check_sparse, naming
from linkspread.ground.errors import LinkspreadError, ViewError, require
from linkspread.tables.frames import Table, read_frame

Array = np.ndarray
Error = type[LinkspreadError]
Rows = list[list[str]]

# Files with named columns.
WITH_COLUMNS = (".parquet", ".csv", ".tsv")
SUFFIXES = (".npy", ".npz", ".zarr", *WITH_COLUMNS)
# Files that can be read a chunk of rows at a time.
CHUNKED = (".npy", ".parquet", ".zarr")
# Delimiters of text files; of equally frequent ones the first is taken.
DELIMITERS = "\t;,"
# Characters of a cell, which may be a long article; Python's limit is 131,072.
MAX_CELL = 1 << 26
# Size of a chunk of files without chunks: large enough to read at full speed.
CHUNK_BYTES = 1 << 26


def read_table(
    path: str | Path,
    *,
    columns: Sequence[str] = (),
    id_column: str | None = None,
    label_column: str | None = None,
    array: str | None = None,
) -> Table:
    r"""Read features, and ids and labels if there are any, from a file.

    Parameters
    ----------
    path : str or Path
        Ends in .parquet, .csv, .tsv, .npy, .npz or .zarr. npy files are memory-mapped,
        copy-on-write.
    columns : sequence of str, default=()
        Features of parquet, CSV or TSV, as for `read_frame`.
    id_column : str, default=None
        Column, or array of an npz archive, with the ids; None takes `id` if there is
        one.
    label_column : str, default=None
        Column of the labels; ignored if the file lacks it.
    array : str, default=None
        Array of an npz archive; may be omitted if there is only one beside the ids.

    Returns
    -------
    table : Table

    Examples
    --------
    >>> import tempfile
    >>> from linkspread.tables import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "text.csv")
    ...     _ = path.write_text("id,a,b\nt1,1,2\nt2,3,4\n")
    ...     table = read_table(path)
    >>> table.ids.tolist(), table.values.tolist()
    (['t1', 't2'], [[1.0, 2.0], [3.0, 4.0]])
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ViewError(
            f"a table must be a file that ends in {', '.join(SUFFIXES)}, got "
            f"{str(path)!r}. Save it as one of these, or correct the path."
        )
    if not (path.exists() if suffix == ".zarr" else path.is_file()):
        raise ViewError(
            f"the file of a table must exist, and there is none at {str(path)!r}. "
            "Correct the path."
        )
    with naming_path(path):
        if suffix in WITH_COLUMNS:
            as_text = [id_column or "id", *([label_column] if label_column else [])]
            is_parquet = suffix == ".parquet"
            return read_frame(
                _read_parquet(path) if is_parquet else _read_numbers(path, as_text),
                columns=columns,
                id_column=id_column,
                label_column=label_column,
                first_row=1,
            )
        if columns:
            raise ViewError(
                f"`columns` must be of a file with named columns "
                f"({', '.join(WITH_COLUMNS)}), got {', '.join(columns)!r:.60}. Leave "
                "them out."
            )
        if suffix == ".npz":
            return _read_archive(path, array, id_column or "id")
        return Table(_open_array(path))


def read_columns(
    path: str | Path,
    *,
    error: Error = ViewError,
    is_data: Callable[[Rows], bool] | None = None,
) -> dict[str, Any]:
    """Return the columns of a parquet, CSV or TSV file by name.

    Columns of parquet are arrays, those of CSV lists of texts.

    Parameters
    ----------
    path : str or Path
    error : class of LinkspreadError, default=ViewError
        Raised where the file cannot be read.
    is_data : callable, default=None
        Returns whether the first of the rows of a CSV file is data; a file without
        header is refused.

    Returns
    -------
    columns : dict from str to ndarray or list of str
        A repeated name gets the number of the column appended.
    """
    path = Path(path)
    _check_file(path, error)
    if path.suffix.lower() == ".parquet":
        table = _read_parquet(path, error)
        names, columns = table.column_names, (own.to_numpy() for own in table.columns)
    else:
        header, *rows = _read_lines(path, error, is_data)
        names = [name.strip() for name in header]
        columns = ([row[i] for row in rows] for i in range(len(names)))
    return _by_name(names, columns)


def read_texts(path: str | Path, *, error: Error = ViewError) -> dict[str, list[str]]:
    """Return the columns of a parquet, CSV or TSV file as texts.

    Parameters
    ----------
    path : str or Path
    error : class of LinkspreadError, default=ViewError
        Raised if the file cannot be read, or names of columns are repeated or empty.

    Returns
    -------
    columns : dict from str to list of str
        Empty texts for missing values.
    """
    path = Path(path)
    _check_file(path, error)
    columns: list[list[str]]
    if path.suffix.lower() == ".parquet":
        table = _read_parquet(path, error)
        names = table.column_names
        columns = [[_as_text(v) for v in own.to_pylist()] for own in table.columns]
    else:
        names, *rows = _read_lines(path, error)
        columns = [[row[i] for row in rows] for i in range(len(names))]
    names = [str(name).strip() for name in names]
    if len(set(names)) < len(names) or not all(names):
        raise error(
            f"columns of {path.name!r} must have unique names, got "
            f"{', '.join(map(repr, names))!s:.120}. Rename them."
        )
    return dict(zip(names, columns, strict=True))


@contextmanager
def naming_path(path: Path) -> Iterator[None]:
    """Prefix the message of any error with the path of a file."""
    try:
        yield
    except LinkspreadError as error:
        raise type(error)(f"{path}: {error}") from error


def find_chunks(
    path: Path, chunk_rows: int | None = None
) -> tuple[list[tuple[int, int]], int, Any]:
    """Return origin and rows of the chunks of a file, its width and its precision.

    The origin is a row, or the number of a row group of parquet. Invalid files raise
    ValueError or OSError.
    """
    if path.suffix == ".parquet":
        opened = _open_parquet(path)
        batch = next(opened.iter_batches(batch_size=1))
        first = _features_of(_arrow().Table.from_batches([batch]), path.name)
        groups = map(opened.metadata.row_group, range(opened.num_row_groups))
        chunks = [(k, own.num_rows) for k, own in enumerate(groups) if own.num_rows]
        return chunks, first.shape[1], first.dtype.type
    table = _open_zarr(path) if path.suffix == ".zarr" else np.load(path, mmap_mode="r")
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"a table of shape {table.shape}")
    n_rows, n_features = table.shape
    step = chunk_rows or max(CHUNK_BYTES // (n_features * table.dtype.itemsize), 1)
    if path.suffix == ".zarr" and chunk_rows is None:
        # Reading part of a chunk takes as long as reading all of it.
        step = max(step // table.chunks[0], 1) * table.chunks[0]
    starts = range(0, n_rows, step)
    precision = np.float32 if table.dtype == np.float32 else np.float64
    return [(a, min(step, n_rows - a)) for a in starts], n_features, precision


def read_chunk(path: str, origin: int, n_rows: int, *, name: str) -> Any:
    """Return one chunk of a file."""
    if path.endswith(".parquet"):
        return _features_of(_open_parquet(path).read_row_group(origin), name)
    if path.endswith(".zarr"):
        return np.asarray(_open_zarr(path)[origin : origin + n_rows])
    return np.load(path, mmap_mode="r")[origin : origin + n_rows]


def read_id_column(paths: Sequence[str]) -> Array | None:
    """Return the column `id` of parquet files; None if a file has none."""
    if not all(path.endswith(".parquet") for path in paths):
        return None
    opened = [_open_parquet(path) for path in paths]
    if not all("id" in file.schema_arrow.names for file in opened):
        return None
    parts = [file.read(columns=["id"]).column("id").to_pylist() for file in opened]
    return np.array([item for part in parts for item in part])


def _features_of(frame: Any, name: str) -> Array:
    """Return the features of a part of a parquet file."""
    with naming(name):
        return read_frame(frame, read_ids=False).values


def _check_file(path: Path, error: Error) -> None:
    """Refuse a file of another type, or a missing one."""
    if path.suffix.lower() not in WITH_COLUMNS:
        raise error(
            f"a table of columns must end in .csv, .tsv, .parquet, got {path.name!r}. "
            "Save it as CSV with a header such as text,image,weight."
        )
    if not path.is_file():
        raise error(
            f"a table must exist, and there is none at {str(path)!r}. Check the path."
        )


def _read_lines(
    path: Path, error: Error, is_data: Callable[[Rows], bool] | None = None
) -> Rows:
    """Return the rows of a delimited file, the first with the column names."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise error(
            f"a table of texts must be UTF-8, and {path.name!r} is not at byte "
            f"{wrong.start}. Save it as UTF-8."
        ) from wrong
    delimiter = find_delimiter(_first_line(text), path.suffix)
    # Not splitlines(): a quoted id may hold a line break.
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True
    )
    try:
        with _long_cells():
            numbered = [(reader.line_num, row) for row in reader if row]
    except csv.Error as wrong:
        raise error(
            f"{path.name!r} must be a text file with commas, semicolons or tabs as "
            f"delimiters, and line {reader.line_num} cannot be read ({wrong}). Save it "
            "again."
        ) from wrong
    rows = [row for _, row in numbered]
    if not rows or (is_data is not None and is_data(rows)):
        got = repr(delimiter.join(rows[0])) if rows else "an empty file"
        raise error(
            f"{path.name!r} must begin with a line of column names, got {got}. "
            "Add one such as id,text,image or text,image,weight."
        )
    for number, row in numbered:
        if len(row) != len(rows[0]):
            raise error(
                f"line {number} of {path.name!r} must have {len(rows[0])} values like "
                f"its header, got {len(row)}: {delimiter.join(row)!r:.80}. Correct it; "
                "put values with a delimiter in quotes."
            )
    return rows


def find_delimiter(header: str, suffix: str = "") -> str:
    """Return the character between columns: a comma, semicolon or tab."""
    names = re.sub(r'"[^"]*"', "", header)
    if suffix.lower() == ".tsv" and "\t" in names:
        return "\t"
    return max(DELIMITERS, key=names.count) if set(names) & set(DELIMITERS) else ","


def _first_line(text: str) -> str:
    """Return the first line that is not empty."""
    first = re.search(r"[^\r\n]+", text)
    return first[0] if first else ""


@contextmanager
def _long_cells() -> Iterator[None]:
    """Raise the limit of cells, which is a setting of the whole process."""
    before = csv.field_size_limit(MAX_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _by_name(names: Sequence[str], columns: Iterable[Any]) -> dict[str, Any]:
    """Return columns by name; repeated names get their number appended."""
    named: dict[str, Any] = {}
    for number, (name, column) in enumerate(zip(names, columns, strict=True), start=1):
        named[f"{name} (column {number})" if name in named else name] = column
    return named


def _as_text(value: Any) -> str:
    """Return a cell as in CSV; a missing value is an empty text."""
    return "" if value is None or value != value else str(value)


def _read_numbers(path: Path, as_text: Sequence[str]) -> Any:
    """Return a pyarrow table of a delimited file, with some columns as texts."""
    text = require("pyarrow.csv", purpose="Reading tables")
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        header, row = lines.readline(), lines.readline()
    if "\ufffd" in header or "\0" in header:
        raise ViewError(
            f"the file must be text in UTF-8, got the header {header.strip()[:40]!r}. "
            "Save it again in UTF-8."
        )
    delimiter = find_delimiter(header, path.suffix)
    fields = row.strip().split(delimiter)
    commas = any(re.fullmatch(r'"?-?\d+,\d+"?', field) for field in fields)
    try:
        return text.read_csv(
            path,
            parse_options=text.ParseOptions(
                delimiter=delimiter, newlines_in_values=True
            ),
            convert_options=text.ConvertOptions(
                column_types=dict.fromkeys(as_text, _arrow().string()),
                decimal_point="," if delimiter == ";" and commas else ".",
            ),
        )
    except (OSError, ValueError) as wrong:  # pyarrow's own errors derive from these
        raise ViewError(
            f"the file must be a table, and cannot be read as one ({_reason(wrong)}). "
            "Correct that row, or write the file again."
        ) from wrong


def _arrow() -> Any:
    """Import pyarrow."""
    return require("pyarrow", purpose="Reading tables")


def _read_parquet(path: Path, error: Error = ViewError) -> Any:
    """Return a parquet file as a pyarrow table."""
    parquet = require("pyarrow.parquet", purpose="Reading parquet")
    try:
        return parquet.read_table(path)
    except (OSError, ValueError) as wrong:  # pyarrow's own errors derive from these
        raise error(
            f"{path.name!r} must be a parquet file, and it cannot be read as one "
            f"({_reason(wrong)}). Write it again."
        ) from wrong


def _open_parquet(path: str | Path) -> Any:
    """Open a parquet file for partial reading."""
    parquet = require("pyarrow.parquet", purpose="Reading parquet")
    return parquet.ParquetFile(path)


def _open_zarr(path: str | Path) -> Any:
    """Open a zarr array, read-only."""
    zarr = require("zarr", purpose="Reading zarr")
    try:
        return zarr.open_array(str(path), mode="r")
    except Exception as error:  # of many types, by the version of zarr
        raise ValueError(f"not a zarr array ({error})") from error


def _open_array(path: Path) -> Any:
    """Return the array of a zarr folder or an npy file, the latter mapped."""
    with _numpy_errors():
        if path.suffix.lower() == ".zarr":
            return np.asarray(_open_zarr(path)[:])
        return np.load(path, mmap_mode="c", allow_pickle=False)


def _read_archive(path: Path, wanted: str | None, id_key: str) -> Table:
    """Return an array of an npz archive, or a sparse matrix that scipy saved."""
    with _numpy_errors(), np.load(path, allow_pickle=False) as arrays:
        keys = list(arrays.files)
        if {"format", "shape"} <= set(keys):
            X = check_sparse(sparse.load_npz(path), name="the table")
            return Table(sparse.csr_array(X))
        others = [wanted] if wanted else [key for key in keys if key != id_key]
        if len(others) != 1 or others[0] not in keys:
            got = repr(wanted) if wanted else f"{len(others)} arrays"
            raise ViewError(
                f"one array of the archive must be chosen, got {got}. It has "
                f"{', '.join(map(repr, keys))}; choose one (on the command line "
                f"after a colon, file.npz:{keys[0] if keys else 'vectors'})."
            )
        ids = arrays[id_key] if id_key in keys else None
        return Table(arrays[others[0]], ids=ids)


@contextmanager
def _numpy_errors() -> Iterator[None]:
    """Turn errors of reading a file of numpy or zarr into a ViewError."""
    try:
        with warnings.catch_warnings():
            # numpy warns about old files.
            warnings.simplefilter("ignore")
            yield
    except LinkspreadError:
        raise
    except (ValueError, OSError, EOFError, BadZipFile) as error:
        pickled = re.search("pickle|object", str(error), flags=re.IGNORECASE)
        reason = (
            "it holds Python objects (pickle), which could run code"
            if pickled
            else f"it cannot be read ({str(error)[:80]})"
        )
        raise ViewError(
            f"the file must hold numbers as numpy saves them, and {reason}. Save it "
            "again with np.save(path, array.astype('float32'))."
        ) from error


def _reason(error: Exception) -> str:
    """Return the first line of an error of a library."""
    return str(error).partition("\n")[0][:120]

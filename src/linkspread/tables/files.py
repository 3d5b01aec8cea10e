"""Files as tables: parquet, CSV, TSV, npy, npz and zarr, whole or in chunks.

The only reader of such files in linkspread:

- `read_table` returns features with ids and labels, for `fit`;
- `read_columns` returns columns as in the file, those of CSV as texts;
- `read_texts` returns all columns as texts;
- `find_chunks`, `read_chunk` and `read_id_column` read a file a few rows at a time.

Damaged files, and small files that would fill the memory, are refused in a sentence.
"""

import csv
import io
import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.ground.checks import check_sparse, naming
from linkspread.ground.errors import LinkspreadError, ViewError, require
from linkspread.ground.progress import format_bytes
from linkspread.tables.frames import as_text, read_frame
from linkspread.tables.validation import WITH_COLUMNS, Table

Array = np.ndarray
Rows = list[list[str]]

SUFFIXES = (".npy", ".npz", ".zarr", *WITH_COLUMNS)
# Files that can be read a chunk of rows at a time.
CHUNKED = (".npy", ".parquet", ".zarr")
# Delimiters of text files; of equally frequent ones the first is taken.
DELIMITERS = "\t;,"
# Characters of a cell, which may be a long article; Python's limit is 131,072.
MAX_CELL = 1 << 26
# Size of a chunk of files without chunks: large enough to read at full speed.
CHUNK_BYTES = 1 << 26
# A file may become this large in memory, or this many times as large as on the disk.
ALWAYS_ALLOWED, MAX_INFLATION = 1 << 29, 250
# A sparse table may have this many rows and columns, and so many more for each entry.
MAX_EMPTY, PER_ENTRY = 1 << 24, 64
NUMPY_REMEDY = "Save it again with np.save(path, array.astype('float32'))."


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
    path, suffix = _check_file(path, SUFFIXES)
    with naming_path(path), _reading("be a table", "Write it again."):
        if suffix in WITH_COLUMNS:
            texts = [id_column or "id", *([label_column] if label_column else [])]
            is_parquet = suffix == ".parquet"
            frame = _read_parquet(path) if is_parquet else _read_numbers(path, texts)
            named: Any = {"id_column": id_column, "label_column": label_column}
            return read_frame(frame, columns=columns, first_row=1, **named)
        if columns:
            raise ViewError(
                f"`columns` must be of a file with named columns "
                f"({', '.join(WITH_COLUMNS)}), got {', '.join(columns)!r:.60}. Leave "
                "them out."
            )
        with _reading("hold numbers as numpy saves them", NUMPY_REMEDY):
            if suffix == ".npz":
                return _read_archive(path, array, id_column or "id")
            if suffix == ".zarr":
                return Table(np.asarray(_open_zarr(path)[:]))
            return Table(np.load(path, mmap_mode="c", allow_pickle=False))


def read_columns(
    path: str | Path,
    *,
    error: type[LinkspreadError] = ViewError,
    is_data: Callable[[Rows], bool] | None = None,
) -> dict[str, Any]:
    """Return the columns of a parquet (arrays), CSV or TSV file (texts) by name.

    Raises `error`. A CSV file without header, for which `is_data` returns True for its
    rows, is refused. A repeated name gets the number of the column appended.
    """
    with _raising(error), _reading("be a table", "Write it again."):
        path, suffix = _check_file(path, WITH_COLUMNS)
        if suffix == ".parquet":
            table = _read_parquet(path)
            names, columns = table.column_names, [c.to_numpy() for c in table.columns]
        else:
            header, *rows = _read_lines(path, is_data)
            names = [name.strip() for name in header]
            columns = [[row[i] for row in rows] for i in range(len(names))]
    named: dict[str, Any] = {}
    for number, (name, column) in enumerate(zip(names, columns, strict=True), start=1):
        named[f"{name} (column {number})" if name in named else name] = column
    return named


def read_texts(
    path: str | Path, *, error: type[LinkspreadError] = ViewError
) -> dict[str, list[str]]:
    """Return the columns of a parquet, CSV or TSV file as texts, "" if missing.

    Raises `error`, also for names that are repeated or empty.
    """
    with _raising(error), _reading("be a table", "Write it again."):
        path, suffix = _check_file(path, WITH_COLUMNS)
        columns: list[list[str]]
        if suffix == ".parquet":
            table = _read_parquet(path)
            names = table.column_names
            columns = [[as_text(v) for v in own.to_pylist()] for own in table.columns]
        else:
            names, *rows = _read_lines(path)
            columns = [[row[i] for row in rows] for i in range(len(names))]
        names = [str(name).strip() for name in names]
        if len(set(names)) < len(names) or not all(names):
            raise ViewError(
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
        first = _features_of(batch, path.name)
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


def _features_of(part: Any, name: str) -> Array:
    """Return the features of a record batch or a table of a parquet file."""
    from pyarrow import RecordBatch, Table

    frame = Table.from_batches([part]) if isinstance(part, RecordBatch) else part
    with naming(name):
        return read_frame(frame, read_ids=False).values


def _check_file(path: str | Path, suffixes: Sequence[str]) -> tuple[Path, str]:
    """Return a path and its ending; refuse other endings, and missing files."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in suffixes:
        raise ViewError(
            f"a table must be a file that ends in {', '.join(suffixes)}, got "
            f"{str(path)!r}. Save it as one of these, or correct the path."
        )
    if not (path.exists() if suffix == ".zarr" else path.is_file()):
        raise ViewError(
            f"the file of a table must exist, and there is none at {str(path)!r}. "
            "Correct the path."
        )
    return path, suffix


def _read_lines(path: Path, is_data: Callable[[Rows], bool] | None = None) -> Rows:
    """Return the rows of a delimited file, the first with the column names."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        raise ViewError(
            f"a table of texts must be UTF-8, and {path.name!r} is not at byte "
            f"{wrong.start}. Save it as UTF-8."
        ) from wrong
    first = re.search(r"[^\r\n]+", text)
    delimiter = find_delimiter(first[0] if first else "", path.suffix)
    # Not splitlines(): a quoted id may hold a line break.
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True
    )
    # The limit of cells is a setting of the whole process.
    before = csv.field_size_limit(MAX_CELL)
    try:
        numbered = [(reader.line_num, row) for row in reader if row]
    except csv.Error as wrong:
        raise ViewError(
            f"{path.name!r} must be a text file with commas, semicolons or tabs as "
            f"delimiters, and line {reader.line_num} cannot be read ({wrong}). Save it "
            "again."
        ) from wrong
    finally:
        csv.field_size_limit(before)
    rows = [row for _, row in numbered]
    if not rows or (is_data is not None and is_data(rows)):
        got = repr(delimiter.join(rows[0])) if rows else "an empty file"
        raise ViewError(
            f"{path.name!r} must begin with a line of column names, got {got:.80}. "
            "Add one such as id,text,image or text,image,weight."
        )
    for number, row in numbered:
        if len(row) != len(rows[0]):
            raise ViewError(
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


def _read_numbers(path: Path, texts: Sequence[str]) -> Any:
    """Return a pyarrow table of a delimited file, with some columns as texts."""
    import pyarrow
    from pyarrow import csv as arrow_csv

    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        header, row = lines.readline(1 << 20), lines.readline(1 << 20)
    if "\ufffd" in header or "\0" in header:
        raise ViewError(
            f"the file must be text in UTF-8, got the header {header.strip()[:40]!r}. "
            "Save it again in UTF-8."
        )
    delimiter = find_delimiter(header, path.suffix)
    fields = row.strip().split(delimiter)
    commas = any(re.fullmatch(r'"?-?\d+,\d+"?', field) for field in fields)
    with _reading("be a table", "Correct that row, or write the file again."):
        return arrow_csv.read_csv(
            path,
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(texts, pyarrow.string()),
                decimal_point="," if delimiter == ";" and commas else ".",
            ),
        )


def _open_parquet(path: str | Path) -> Any:
    """Open a parquet file for partial reading."""
    from pyarrow import parquet

    return parquet.ParquetFile(path)


def _read_parquet(path: Path) -> Any:
    """Return a parquet file as a pyarrow table."""
    import pyarrow

    with _reading("be a parquet file", "Write it again.", name=repr(path.name)):
        opened = _open_parquet(path)
        groups = map(opened.metadata.row_group, range(opened.num_row_groups))
        chunks = [own.column(j) for own in groups for j in range(own.num_columns)]
        # Repeated values take no space in the file, but eight bytes each here.
        sizes = [max(c.total_uncompressed_size, 8 * c.num_values) for c in chunks]
        _check_size(sum(sizes), path)
        _check_size(_repeated_text(opened, path, chunks), path)
        batches, n_bytes = [], 0
        for batch in opened.iter_batches():
            n_bytes += batch.nbytes
            _check_size(n_bytes, path)
            batches.append(batch)
        return pyarrow.Table.from_batches(batches, schema=opened.schema_arrow)


def _repeated_text(opened: Any, path: Path, chunks: Sequence[Any]) -> int:
    """Return the size in memory of texts that the file holds only once."""
    from pyarrow import compute, parquet

    names = {c.path_in_schema for c in chunks
             if c.physical_type == "BYTE_ARRAY" and c.has_dictionary_page
             and c.total_uncompressed_size * c.num_values > ALWAYS_ALLOWED}  # fmt: skip
    total = 0
    for name in names & set(opened.schema_arrow.names):
        column = parquet.ParquetFile(path, read_dictionary=[name]).read([name])[name]
        for chunk in column.chunks if hasattr(column.type, "value_type") else ():
            lengths = compute.binary_length(chunk.dictionary)
            total += compute.sum(lengths.take(chunk.indices)).as_py() or 0
    return total


def _open_zarr(path: str | Path) -> Any:
    """Open a zarr array, read-only."""
    zarr = require("zarr", purpose="Reading zarr")
    try:
        return zarr.open_array(str(path), mode="r")
    except Exception as error:  # of many types, by the version of zarr
        raise ValueError(f"not a zarr array ({error})") from error


def _read_archive(path: Path, wanted: str | None, id_key: str) -> Table:
    """Return an array of an npz archive, or a sparse matrix that scipy saved."""
    # Of a damaged archive that it opens by name, numpy would leave the file open.
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        _check_size(sum(own.file_size for own in arrays.zip.infolist()), path)
        _check_shapes(arrays.zip)
        keys = list(arrays.files)
        if {"format", "shape"} <= set(keys):
            file.seek(0)
            X = sparse.load_npz(file)
            most = MAX_EMPTY + PER_ENTRY * X.nnz
            if max(X.shape) > most:
                raise ViewError(
                    f"a sparse table of {X.nnz:,} entries must have at most {most:,} "
                    f"rows and columns, got shape {X.shape}. Leave out empty ones."
                )
            return Table(sparse.csr_array(check_sparse(X, name="the table")))
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


def _check_shapes(archive: Any) -> None:
    """Refuse arrays that declare more numbers than they have."""
    for member in archive.infolist():
        with archive.open(member) as file:
            is_old = np.lib.format.read_magic(file) == (1, 0)
            read = "read_array_header_1_0" if is_old else "read_array_header_2_0"
            shape, _, dtype = getattr(np.lib.format, read)(file)
        if math.prod(shape) * dtype.itemsize > member.file_size:
            raise ValueError(f"{member.filename} is too short for shape {shape}")


def _check_size(n_bytes: int, path: Path) -> None:
    """Refuse a small file that would fill the memory."""
    most = max(ALWAYS_ALLOWED, MAX_INFLATION * path.stat().st_size)
    if n_bytes > most:
        raise ViewError(
            f"a file of this size must hold at most {format_bytes(most)}, got "
            f"{format_bytes(n_bytes)}. Save it without compression, or as .npy."
        )


@contextmanager
def _raising(error: type[LinkspreadError]) -> Iterator[None]:
    """Raise the errors of views as another class."""
    try:
        yield
    except ViewError as wrong:
        raise error(str(wrong)) from wrong


@contextmanager
def _reading(rule: str, remedy: str, *, name: str = "the file") -> Iterator[None]:
    """Turn any error of a library that reads a file into a sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numpy warns about old files
            yield
    except LinkspreadError:
        raise
    except Exception as error:  # damaged files raise errors of any class
        text = str(error).partition("\n")[0][:120] or type(error).__name__
        reason = f"it cannot be read ({text})"
        if re.search("pickle|python object", text, flags=re.IGNORECASE):
            reason = "it holds Python objects (pickle), which could run code"
        raise ViewError(f"{name} must {rule}, and {reason}. {remedy}") from error

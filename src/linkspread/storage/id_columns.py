"""Columns of ids as parquet, so that any tool can read which items a model has.

A stranger's parquet can be small and unpack to anything. So the pages are plain, and
the number of rows, the type and the sizes are checked before any of them is read.
"""

from typing import Any, BinaryIO

import numpy as np

from linkspread.ground.errors import ModelError, require
from linkspread.ground.progress import format_bytes
from linkspread.storage.files import HashingFile

Array = np.ndarray

COLUMN = "id"
# Rows that are read together.
BATCH = 1 << 12
# NumPy gives every id of a column the width of the longest, at four bytes a letter.
MAX_WIDENED, MAX_WIDENING = 1 << 28, 64


def check_ids(ids: Array) -> None:
    """Refuse ids that a reader would refuse."""
    _pyarrow()  # says now if it is missing
    if ids.dtype.kind == "U" and ids.nbytes > MAX_WIDENED:
        _check_widening(len(ids), ids.itemsize // 4, int(np.char.str_len(ids).sum()))


def write_ids(file: HashingFile, ids: Array) -> None:
    """Write ids as one parquet file."""
    arrow = _pyarrow()
    buffer = arrow.BufferOutputStream()
    kind = arrow.int64() if ids.dtype.kind == "i" else arrow.string()
    column = arrow.array(ids.tolist() if ids.dtype.kind == "U" else ids, type=kind)
    _pyarrow(".parquet").write_table(
        arrow.table({COLUMN: column}),
        buffer,
        compression="none",
        use_dictionary=False,
        store_schema=False,
    )
    file.write(np.frombuffer(buffer.getvalue(), np.uint8))


def read_ids(file: BinaryIO, n_bytes: int, n_ids: int) -> Array:
    """Return the ids of a parquet file."""
    parquet = _pyarrow(".parquet")
    try:
        # From memory, in this thread: a file that Arrow's own threads still read when
        # an error has closed it would end the process.
        opened = parquet.ParquetFile(
            _pyarrow().BufferReader(file.read()),
            pre_buffer=False,
            thrift_string_size_limit=n_bytes,
            thrift_container_size_limit=n_bytes,
            page_checksum_verification=True,
        )
        _check_metadata(opened.metadata, opened.schema_arrow, n_bytes, n_ids)
        column = _read_pages(opened, n_bytes)
    except ModelError:
        raise
    # Whatever a broken file makes of the reader.
    except Exception as error:
        raise ModelError(
            f"ids must be a parquet file, and it cannot be read ({error!s:.80}). "
            "Save the model again."
        ) from error
    if len(column) != n_ids or column.null_count:
        raise ModelError(_wrong_number(n_ids, len(column) - column.null_count))
    if str(column.type) == "int64":
        return column.to_numpy().astype(np.int64)
    return _as_strings(column)


def _check_metadata(metadata: Any, schema: Any, n_bytes: int, n_ids: int) -> None:
    """Refuse a file that would not read as ids, before any page is read."""
    types = [str(field.type) for field in schema]
    if schema.names != [COLUMN] or types[0] not in ("int64", "string"):
        raise ModelError(
            f"ids must be one column {COLUMN!r} of int64 or string, got "
            f"{dict(zip(schema.names, types, strict=True))!s:.80}. Save the model "
            "again."
        )
    if metadata.num_rows != n_ids:
        raise ModelError(_wrong_number(n_ids, metadata.num_rows))
    chunks = [metadata.row_group(i).column(0) for i in range(metadata.num_row_groups)]
    is_plain = all(
        chunk.compression == "UNCOMPRESSED" and set(chunk.encodings) <= {"PLAIN", "RLE"}
        for chunk in chunks
    )
    if not is_plain or sum(chunk.total_uncompressed_size for chunk in chunks) > n_bytes:
        raise ModelError(
            "ids must be stored plain, and these are compressed or encoded. Save the "
            "model again."
        )


def _read_pages(opened: Any, n_bytes: int) -> Any:
    """Return the column, read a few rows at a time until it grows beyond the file."""
    parts, size = [], 0
    for batch in opened.iter_batches(batch_size=BATCH, use_threads=False):
        parts.append(batch.column(0))
        size += parts[-1].nbytes
        if size > 2 * n_bytes:
            raise ModelError(
                "ids must take no more room than their file, and unpack to more. "
                "Save the model again."
            )
    return _pyarrow().chunked_array(parts, type=opened.schema_arrow.field(0).type)


def _as_strings(column: Any) -> Array:
    """Return a column of texts as an array, unless that would be far larger."""
    compute = _pyarrow(".compute")
    lengths = compute.utf8_length(column)
    longest = compute.max(lengths).as_py() or 0
    total = compute.sum(lengths).as_py() or 0
    if 4 * longest * len(column) > MAX_WIDENED:
        _check_widening(len(column), longest, total)
    ids = np.array(column.to_pylist(), dtype=str)
    return ids if len(ids) else np.zeros(0, dtype=np.int64)


def _check_widening(n_ids: int, longest: int, total: int) -> None:
    """Refuse a few ids so long that all others would be padded to their width."""
    if n_ids * longest > MAX_WIDENING * max(total, 1):
        raise ModelError(
            f"ids must be of similar length, got one of {longest:,} letters among "
            f"{n_ids:,}, which together would take {format_bytes(4 * n_ids * longest)}."
            " Give shorter ids."
        )


def _wrong_number(n_ids: int, got: int) -> str:
    """Return the sentence about a wrong number of ids."""
    return f"there must be {n_ids:,} ids, got {got:,}. Save the model again."


def _pyarrow(part: str = "") -> Any:
    """Return pyarrow, or the sentence how to install it."""
    return require(f"pyarrow{part}", extra="tables", purpose="A model with ids")

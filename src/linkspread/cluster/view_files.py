"""The kinds of files that a view is read from, a chunk of rows at a time."""

from pathlib import Path
from typing import Any

import numpy as np

from linkspread.ground.errors import require
from linkspread.tables.validation import check_table

Array = np.ndarray

KINDS = (".npy", ".parquet")
ZARR = ".zarr"
# Of a chunk where the file itself has none: large enough to read at full speed.
CHUNK_BYTES = 1 << 26


def survey_file(file: Path, chunk_rows: int | None) -> tuple[list, int, Any]:
    """Return where the chunks of a file are, without reading them."""
    if file.suffix == ".parquet":
        return _survey_parquet(file)
    table = _zarr(file) if file.suffix == ZARR else np.load(file, mmap_mode="r")
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"a table of shape {table.shape}")
    n_rows, n_features = table.shape
    row_bytes = n_features * table.dtype.itemsize
    step = chunk_rows or max(CHUNK_BYTES // row_bytes, 1)
    if file.suffix == ZARR and chunk_rows is None:
        # Part of a chunk takes as long to read as all of it.
        step = max(step // table.chunks[0], 1) * table.chunks[0]
    starts = range(0, n_rows, step)
    single = np.float32 if table.dtype == np.float32 else np.float64
    return [(a, min(step, n_rows - a)) for a in starts], n_features, single


def read_chunk(path: str, origin: int, n_rows: int, *, name: str) -> Any:
    """Return one chunk of a file, as far as the file has so many rows."""
    if path.endswith(".parquet"):
        return check_table(_parquet(path).read_row_group(origin), view=name)
    if path.endswith(ZARR):
        return np.asarray(_zarr(path)[origin : origin + n_rows])
    return np.load(path, mmap_mode="r")[origin : origin + n_rows]


def read_ids(files: list[str]) -> Array | None:
    """Return the column `id` of parquet files; None where one has none."""
    if not all(file.endswith(".parquet") for file in files):
        return None
    opened = [_parquet(file) for file in files]
    if not all("id" in file.schema_arrow.names for file in opened):
        return None
    parts = [file.read(columns=["id"]).column("id").to_pylist() for file in opened]
    return np.array([item for part in parts for item in part])


def _survey_parquet(file: Path) -> tuple[list, int, Any]:
    """Return the row groups of a parquet file, its columns and its precision."""
    opened = _parquet(file)
    batch = next(opened.iter_batches(batch_size=1))
    arrow = require("pyarrow", extra="tables", purpose="reading parquet")
    first = check_table(arrow.Table.from_batches([batch]), view=file.name)
    groups = [opened.metadata.row_group(k) for k in range(opened.num_row_groups)]
    chunks = [(k, group.num_rows) for k, group in enumerate(groups) if group.num_rows]
    return chunks, first.shape[1], first.dtype.type


def _parquet(file: Any) -> Any:
    """Open a parquet file."""
    module = require("pyarrow.parquet", extra="tables", purpose="reading parquet")
    return module.ParquetFile(file)


def _zarr(file: Any) -> Any:
    """Open an array of zarr, to read only."""
    zarr = require("zarr", extra="zarr", purpose="reading zarr")
    try:
        return zarr.open_array(str(file), mode="r")
    except Exception as error:  # of many kinds, by the version of zarr
        raise ValueError(f"no array of zarr ({error})") from error

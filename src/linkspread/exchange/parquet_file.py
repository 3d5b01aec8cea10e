"""Vectors as a parquet file, for Arrow, pandas, polars, DuckDB and Spark."""

from pathlib import Path
from typing import Any

import numpy as np

from linkspread.exchange.embeddings import (
    Embeddings,
    describe,
    read_description,
    take_embeddings,
)
from linkspread.exchange.files import reading
from linkspread.ground.errors import require
from linkspread.models.vector_search import VectorSearch
from linkspread.storage.files import FilePath, new_file

KEY = b"linkspread"


def write_parquet(
    model: VectorSearch,
    path: FilePath,
    *,
    source: str,
    target: str,
    role: str = "found",
    dtype: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the vectors of a view's items to a parquet file.

    Its columns are `id` and `vector`, a list of fixed length. What they mean stands
    in the schema's metadata under "linkspread", as JSON.

    Parameters
    ----------
    model : CrossViewSearch, LinkSpreading, or a baseline of `studies.baselines`
        Fitted.
    path : path-like
    source : str
        View that searches.
    target : str
        View that is searched.
    role : {"searching", "found"}, default="found"
        "found" exports the items of `target`, "searching" those of `source`.
    dtype : {"float32", "float64"}, default=None
        None keeps the numbers as they are.
    overwrite : bool, default=False
        Whether a file that is there may be replaced.

    Returns
    -------
    path : Path
        The file written.
    """
    parquet = require("pyarrow.parquet", extra="tables", purpose="Writing parquet")
    taken = take_embeddings(model, source=source, target=target, role=role, dtype=dtype)
    with new_file(path, overwrite=overwrite) as temporary:
        # Checksums, so that `read_parquet` notices numbers that changed on the disk.
        parquet.write_table(_as_table(taken), temporary, write_page_checksum=True)
    return Path(path)


def read_parquet(path: FilePath) -> Embeddings:
    """Read the vectors that `write_parquet` wrote.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    embeddings : Embeddings
    """
    parquet = require("pyarrow.parquet", extra="tables", purpose="Reading parquet")
    with reading(path, what="a parquet file", writer="write_parquet"):
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read()
        meaning = read_description((table.schema.metadata or {}).get(KEY, b"null"))
        ids = table["id"].to_numpy()
        ids = ids if ids.dtype == np.int64 else ids.astype(str)
        n_dimensions = table.schema.field("vector").type.list_size
        numbers = table["vector"].combine_chunks().flatten().to_numpy()
        return Embeddings(ids, numbers.reshape(len(ids), n_dimensions), **meaning)


def _as_table(embeddings: Embeddings) -> Any:
    """Return ids and vectors as an Arrow table; the numbers are not copied."""
    arrow = require("pyarrow", extra="tables", purpose="Writing parquet")
    numbers = arrow.array(np.ascontiguousarray(embeddings.vectors).ravel())
    n_dimensions = embeddings.vectors.shape[1]
    vectors = arrow.FixedSizeListArray.from_arrays(numbers, n_dimensions)
    ids = arrow.array(embeddings.ids.tolist())
    table = arrow.table({"id": ids, "vector": vectors})
    return table.replace_schema_metadata({KEY: describe(embeddings).encode()})

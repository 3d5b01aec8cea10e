"""Export vectors as parquet files, NumPy archives or indexes of faiss.

An index of faiss has rows, not ids: row i of ``images.faiss`` is ``ids[i]`` of
``images.faiss.json`` beside it.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.exchange.embeddings import (
    INDEXES,
    Embeddings,
    as_float32,
    describe,
    read_description,
    reading,
    take_embeddings,
)
from linkspread.graphs.approximate import load_faiss
from linkspread.ground.checks import check_count, check_name
from linkspread.ground.errors import LinkspreadError
from linkspread.models.vector_search import VectorSearch
from linkspread.search.index import FaissItems
from linkspread.storage.files import FilePath, new_file

Array = np.ndarray

# Key in the metadata of a parquet file.
KEY = b"linkspread"


def write_parquet(
    model: VectorSearch, path: FilePath, *, overwrite: bool = False, **chosen: Any
) -> Path:
    """Write the vectors of a view's items to a parquet file.

    Its columns are `id` and `vector`, a list of fixed length. The schema's metadata
    describe them under "linkspread", as JSON.

    Parameters
    ----------
    model : CrossViewSearch, LinkSpreading, or a baseline of `studies.baselines`
        Fitted.
    path : path-like
    overwrite : bool, default=False
        Whether to replace an existing file.
    **chosen : object
        `source`, `target`, `role` and `dtype` of `take_embeddings`.

    Returns
    -------
    path : Path
    """
    import pyarrow
    from pyarrow import parquet

    taken = take_embeddings(model, **chosen)
    # The numbers are not copied.
    numbers = pyarrow.array(np.ascontiguousarray(taken.vectors).ravel())
    width = taken.vectors.shape[1]
    vectors = pyarrow.FixedSizeListArray.from_arrays(numbers, width)
    table = pyarrow.table({"id": taken.ids.tolist(), "vector": vectors})
    table = table.replace_schema_metadata({KEY: describe(taken).encode()})
    with new_file(path, overwrite=overwrite) as temporary:
        # Checksums, so that `read_parquet` detects damage.
        parquet.write_table(table, temporary, write_page_checksum=True)
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
    from pyarrow import parquet

    with reading(path, what="a parquet file", writer="write_parquet"):
        with parquet.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read()
        meaning = read_description((table.schema.metadata or {}).get(KEY, b"null"))
        ids = table["id"].to_numpy()
        ids = ids if ids.dtype == np.int64 else ids.astype(str)
        n_dimensions = table.schema.field("vector").type.list_size
        numbers = table["vector"].combine_chunks().flatten().to_numpy()
        return Embeddings(ids, numbers.reshape(len(ids), n_dimensions), **meaning)


def write_numpy(
    model: VectorSearch, path: FilePath, *, overwrite: bool = False, **chosen: Any
) -> Path:
    """Write the vectors of a view's items to a NumPy archive (.npz).

    Its arrays are `ids`, `vectors` and `linkspread`, their description as JSON. Read
    them with ``numpy.load(path)`` or `read_numpy`.

    Parameters
    ----------
    model : CrossViewSearch, LinkSpreading, or a baseline of `studies.baselines`
        Fitted.
    path : path-like
        No ending is added.
    overwrite : bool, default=False
        Whether to replace an existing file.
    **chosen : object
        `source`, `target`, `role` and `dtype` of `take_embeddings`.

    Returns
    -------
    path : Path
    """
    taken = take_embeddings(model, **chosen)
    text = np.array(describe(taken))
    with new_file(path, overwrite=overwrite) as temporary, temporary.open("wb") as file:
        np.savez(file, ids=taken.ids, vectors=taken.vectors, linkspread=text)
    return Path(path)


def read_numpy(path: FilePath) -> Embeddings:
    """Read the vectors that `write_numpy` wrote.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    embeddings : Embeddings
    """
    with reading(path, what="a NumPy archive", writer="write_numpy"):
        # Opened here, because NumPy does not close a file that is no archive.
        with (
            Path(path).open("rb") as file,
            np.load(file, allow_pickle=False) as archive,
        ):
            meaning = read_description(str(archive["linkspread"]))
            ids, vectors = archive["ids"], archive["vectors"]
        if ids.shape != vectors.shape[:1] or vectors.ndim != 2:
            raise LinkspreadError(f"{len(ids)} ids for vectors {vectors.shape}")
        return Embeddings(ids, vectors, **meaning)


@dataclass(frozen=True, eq=False)
class FaissIndex:
    """An index of faiss with the ids of its rows.

    Parameters
    ----------
    index : faiss.Index
        Of inner products; `index.search` gives rows.
    ids : ndarray of shape (n_items,), of int64 or str
    view : str
        View of the items.
    other_view : str
        View that they search, or from which they are found.
    role : {"searching", "found"}
        Whether the items are queries or results.
    """

    index: Any
    ids: Array
    view: str
    other_view: str
    role: str

    def search(self, vectors: Any, *, n_results: int = 10) -> tuple[Array, Array]:
        """Return the items with the largest inner products.

        Parameters
        ----------
        vectors : array-like of shape (n_queries, n_dimensions) or (n_dimensions,)
            Vectors of the other role.
        n_results : int, default=10
            Fewer are returned where there are fewer items.

        Returns
        -------
        ids : ndarray of shape (n_queries, n_results), or (n_results,) for one query
        scores : ndarray of the same shape
            Inner products, best first.
        """
        check_count(n_results, name="n_results", remedy="The default is 10.")
        queries = as_float32(np.atleast_2d(vectors))
        if queries.ndim != 2 or queries.shape[1] != self.index.d:
            raise LinkspreadError(
                f"`vectors` must have {self.index.d} columns as the index has, got "
                f"shape {np.shape(vectors)}. Take the vectors of the same model."
            )
        n_found = min(n_results, len(self.ids))
        scores, rows = FaissItems(self.index).search(queries, n_found)
        ids = self.ids[rows]
        return (ids[0], scores[0]) if np.ndim(vectors) == 1 else (ids, scores)


def write_faiss(
    model: VectorSearch,
    path: FilePath,
    *,
    index: str = "exact",
    overwrite: bool = False,
    **chosen: Any,
) -> Path:
    """Write the vectors of a view's items to an index file of faiss.

    A second file, with ".json" added to the name, holds the ids of the rows and a
    description. Vectors are in float32.

    Parameters
    ----------
    model : CrossViewSearch, LinkSpreading, or a baseline of `studies.baselines`
        Fitted.
    path : path-like
    index : {"exact", "hnsw"}, default="exact"
        "exact" compares a query with all items; "hnsw" walks a graph, which is faster
        and misses some results.
    overwrite : bool, default=False
        Whether to replace existing files.
    **chosen : object
        `source`, `target` and `role` of `take_embeddings`.

    Returns
    -------
    path : Path
    """
    load_faiss("Writing an index")
    check_name(index, INDEXES, name="index")
    taken = take_embeddings(model, **chosen, dtype="float32")
    with (
        new_file(_beside(path), overwrite=overwrite) as ids_file,
        new_file(path, overwrite=overwrite) as index_file,
    ):
        FaissItems.build(taken.vectors, index).write(index_file)
        content = {**json.loads(describe(taken)), "ids": taken.ids.tolist()}
        content["checksum"] = _checksum(index_file, content)
        ids_file.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    return Path(path)


def read_faiss(path: FilePath) -> FaissIndex:
    """Read the index and the ids that `write_faiss` wrote.

    Parameters
    ----------
    path : path-like
        The index file; the ids are read from the file beside it.

    Returns
    -------
    index : FaissIndex
    """
    load_faiss("Reading an index")
    with reading(_beside(path), what="the ids of an index", writer="write_faiss"):
        text = _beside(path).read_text(encoding="utf-8")
        meaning, content = read_description(text), json.loads(text)
        ids = np.array(content["ids"], dtype=None if content["ids"] else np.int64)
    with reading(path, what="an index file", writer="write_faiss"):
        # Checked before faiss reads the file, as it trusts sizes written there.
        if content.pop("checksum", None) != _checksum(Path(path), content):
            raise LinkspreadError("it does not belong to the ids beside it")
        return FaissIndex(FaissItems.read(Path(path)).index, ids, **meaning)


def _beside(path: FilePath) -> Path:
    """Return the file of the ids of an index file."""
    return Path(f"{Path(path)}.json")


def _checksum(index_file: Path, content: dict[str, Any]) -> str:
    """Return a digest of an index file and of its description."""
    with index_file.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
    digest.update(json.dumps(content, sort_keys=True).encode())
    return digest.hexdigest()

"""The vectors of one view as parquet files, NumPy archives or indexes of faiss.

An index of faiss has rows, not ids: row i of ``images.faiss`` is ``ids[i]`` of
``images.faiss.json`` beside it.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkspread import __version__
from linkspread.graphs.approximate import load_faiss
from linkspread.ground.checks import check_name
from linkspread.ground.errors import LinkspreadError
from linkspread.models.vector_search import VectorSearch
from linkspread.search.index import FaissItems
from linkspread.storage.files import FilePath, new_file

Array = np.ndarray

ROLES = ("searching", "found")
DTYPES = ("float32", "float64")
# Search of a vector database: "exact" compares all, "hnsw" walks a graph.
INDEXES = ("exact", "hnsw")
SCORES = "inner products of searching and found vectors, not cosines"


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Vectors of one view's items, whose inner products are scores."""

    ids: Array
    vectors: Array
    view: str
    other_view: str
    role: str

    def describe(self) -> dict[str, Any]:
        """Return the description that is stored in every export."""
        names = {name: getattr(self, name) for name in ("view", "other_view", "role")}
        return {"format": 1, "linkspread": __version__, **names, "scores": SCORES}


def write_vectors(
    model: VectorSearch,
    path: FilePath,
    *,
    source: str,
    target: str,
    role: str = "found",
    dtype: str | None = None,
    index: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the vectors of a view's items to a file; its ending is the format.

    .parquet has the columns `id` and `vector`, a list of fixed length; .npz the arrays
    `ids` and `vectors`, without pickle. .faiss is an index, and a second file, with
    ".json" added to the name, holds the ids of its rows. All describe the vectors as
    JSON: in the metadata of the schema, an array, and the second file.

    Parameters
    ----------
    model : CrossViewSearch, LinkSpreading, or a baseline of `studies.baselines`
        Fitted.
    path : path-like
        Ends in .parquet, .npz or .faiss.
    source, target : str
        View that searches and view that is searched.
    role : {"searching", "found"}, default="found"
        "found" takes the items of `target`, to be stored in a vector database;
        "searching" those of `source`, to query it.
    dtype : {"float32", "float64"}, default=None
        None keeps the precision of the model; an index has float32.
    index : {"exact", "hnsw"}, default=None
        Of an index only: "exact", the default, compares a query with all items; "hnsw"
        walks a graph, which is faster and misses some results.
    overwrite : bool, default=False
        Whether to replace existing files.

    Returns
    -------
    path : Path

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import linkspread as ls
    >>> from linkspread import exchange
    >>> links = ls.Links.from_pairs([(0, 0), (1, 1)], between=("text", "image"))
    >>> views = {"text": [[0.0], [1.0], [2.0]], "image": [[0.0], [1.0], [4.0]]}
    >>> model = ls.LinkSpreading(n_neighbors=1).fit(views, links)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/images.npz"
    ...     _ = exchange.write_vectors(model, path, source="text", target="image")
    ...     np.load(path)["ids"]
    array([0, 1, 2])
    """
    path = Path(path)
    write = FORMATS.get(path.suffix.lower())
    if write is None:
        raise LinkspreadError(
            f"a file of vectors must end in {', '.join(FORMATS)}, got {path.name!r}. "
            "Choose one of these."
        )
    if write is _write_faiss:
        load_faiss("Writing an index")
        check_name(index or "exact", INDEXES, name="index")
        check_name(dtype or "float32", DTYPES[:1], name="dtype")
        dtype = "float32"
    elif index is not None:
        raise LinkspreadError(
            f"`index` must be left out for {path.suffix}, got {index!r:.60}. Write a "
            ".faiss file."
        )
    taken = take_embeddings(model, source, target, role=role, dtype=dtype)
    write(taken, path, index=index or "exact", overwrite=overwrite)
    return path


def take_embeddings(
    model: Any,
    source: str,
    target: str,
    *,
    role: str = "found",
    dtype: str | None = None,
) -> Embeddings:
    """Return the vectors with which items search, or with which they are found."""
    check_model(model)
    check_name(role, ROLES, name="role")
    if dtype is not None:
        check_name(dtype, DTYPES, name="dtype")
    vectors = model.embeddings(source, target)[ROLES.index(role)]
    if not vectors.shape[1]:
        # No database takes vectors of length 0. One zero gives the same inner products.
        vectors = np.zeros((len(vectors), 1), vectors.dtype)
    if dtype is not None:
        with np.errstate(over="ignore"):
            single = np.ascontiguousarray(vectors, dtype=dtype)
        if not np.isfinite(single).all():
            raise LinkspreadError(
                f"vectors must be finite in {dtype}, got entries up to "
                f"{np.abs(vectors).max():.3g}. Scale the weights of the links down, or "
                "export float64 to NumPy or parquet."
            )
        vectors = single
    view, other = (target, source) if role == "found" else (source, target)
    ids = model.items_[view].ids
    try:
        "".join(ids.tolist() if ids.dtype.kind == "U" else ()).encode()
    except UnicodeEncodeError as error:
        raise LinkspreadError(
            f"ids of view {view!r} must be Unicode to be exported, got one with "
            f"{error.object[error.start]!r}. Give the items other ids and fit again."
        ) from error
    return Embeddings(ids, vectors, view, other, role)


def check_model(model: Any) -> None:
    """Refuse anything but a search between views."""
    if not isinstance(model, VectorSearch):
        raise LinkspreadError(
            "`model` must be a fitted search or one of the baselines, got "
            f"{type(model).__name__}. Give the fitted model itself."
        )


def _write_parquet(
    taken: Embeddings, path: Path, *, index: str, overwrite: bool
) -> None:
    """Write ids and vectors as columns."""
    import pyarrow
    from pyarrow import parquet

    # The numbers are not copied.
    numbers = pyarrow.array(np.ascontiguousarray(taken.vectors).ravel())
    width = taken.vectors.shape[1]
    vectors = pyarrow.FixedSizeListArray.from_arrays(numbers, width)
    table = pyarrow.table({"id": taken.ids.tolist(), "vector": vectors})
    table = table.replace_schema_metadata({"linkspread": _as_json(taken.describe())})
    with new_file(path, overwrite=overwrite) as temporary:
        # Checksums, so that readers detect damage.
        parquet.write_table(table, temporary, write_page_checksum=True)


def _write_numpy(taken: Embeddings, path: Path, *, index: str, overwrite: bool) -> None:
    """Write ids and vectors as the arrays of an archive."""
    about = np.array(_as_json(taken.describe()))
    with new_file(path, overwrite=overwrite) as temporary, temporary.open("wb") as file:
        np.savez(file, ids=taken.ids, vectors=taken.vectors, linkspread=about)


def _write_faiss(taken: Embeddings, path: Path, *, index: str, overwrite: bool) -> None:
    """Write vectors as an index, and the ids of its rows beside it."""
    beside = Path(f"{path}.json")
    with (
        new_file(beside, overwrite=overwrite) as ids_file,
        new_file(path, overwrite=overwrite) as index_file,
    ):
        FaissItems.build(taken.vectors, index).write(index_file)
        content = {**taken.describe(), "ids": taken.ids.tolist()}
        ids_file.write_text(_as_json(content), encoding="utf-8")


def _as_json(content: dict[str, Any]) -> str:
    """Return JSON that keeps letters of all languages."""
    return json.dumps(content, ensure_ascii=False)


# What writes the vectors of each format.
FORMATS: dict[str, Callable[..., None]] = {
    ".parquet": _write_parquet,
    ".npz": _write_numpy,
    ".faiss": _write_faiss,
}

"""Vectors as a NumPy archive of plain arrays, without pickle."""

from pathlib import Path

import numpy as np

from linkspread.exchange.embeddings import (
    Embeddings,
    describe,
    read_description,
    take_embeddings,
)
from linkspread.exchange.files import reading
from linkspread.ground.errors import LinkspreadError
from linkspread.models.vector_search import VectorSearch
from linkspread.storage.files import FilePath, new_file


def write_numpy(
    model: VectorSearch,
    path: FilePath,
    *,
    source: str,
    target: str,
    role: str = "found",
    dtype: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the vectors of a view's items to a NumPy archive (.npz).

    Its arrays are `ids`, `vectors` and `linkspread`, a text in JSON that says what
    they mean. Read them with ``numpy.load(path)`` or `read_numpy`.

    Parameters
    ----------
    model : CrossViewSearch, LinkSpreading, or a baseline of `studies.baselines`
        Fitted.
    path : path-like
        Taken as it is, without adding an ending.
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
    taken = take_embeddings(model, source=source, target=target, role=role, dtype=dtype)
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
        # Opened here, because NumPy leaves a file open that is no archive.
        with (
            Path(path).open("rb") as file,
            np.load(file, allow_pickle=False) as archive,
        ):
            meaning = read_description(str(archive["linkspread"]))
            ids, vectors = archive["ids"], archive["vectors"]
        if ids.shape != vectors.shape[:1] or vectors.ndim != 2:
            raise LinkspreadError(f"{len(ids)} ids for vectors {vectors.shape}")
        return Embeddings(ids, vectors, **meaning)

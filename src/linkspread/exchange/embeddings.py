"""The vectors of one view for export, and the description stored with them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkspread import __version__
from linkspread.ground.checks import check_name
from linkspread.ground.errors import LinkspreadError, MissingDependencyError
from linkspread.models.vector_search import VectorSearch
from linkspread.storage.files import FilePath

Array = np.ndarray

ROLES = ("searching", "found")
DTYPES = ("float32", "float64")
# Search of a vector database: "exact" compares all, "hnsw" walks a graph.
INDEXES = ("exact", "hnsw")
FORMAT = 1
SCORES = "inner products of searching and found vectors, not cosines"


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Vectors of one view's items, whose inner products are scores.

    Parameters
    ----------
    ids : ndarray of shape (n_items,), of int64 or str
    vectors : ndarray of shape (n_items, n_dimensions)
        Multiply them with those of the other role; the products are scores, not
        cosines, so do not normalise the vectors.
    view : str
        View of the items.
    other_view : str
        View that they search, or from which they are found.
    role : {"searching", "found"}
        Whether the items are queries or results.
    """

    ids: Array
    vectors: Array
    view: str
    other_view: str
    role: str


def take_embeddings(
    model: VectorSearch,
    *,
    source: str,
    target: str,
    role: str = "found",
    dtype: str | None = None,
) -> Embeddings:
    """Return the vectors with which items search, or with which they are found.

    Parameters
    ----------
    model : CrossViewSearch, LinkSpreading, or a baseline of `studies.baselines`
        Fitted.
    source, target : str
        View that searches and view that is searched.
    role : {"searching", "found"}, default="found"
        "found" takes the items of `target`, to be stored in a vector database;
        "searching" those of `source`, to query it.
    dtype : {"float32", "float64"}, default=None
        None keeps the precision of the model.

    Returns
    -------
    embeddings : Embeddings

    Examples
    --------
    >>> import linkspread as ls
    >>> from linkspread import exchange
    >>> links = ls.Links.from_pairs([(0, 0), (1, 1)], between=("text", "image"))
    >>> views = {"text": [[0.0], [1.0], [2.0]], "image": [[0.0], [1.0], [4.0]]}
    >>> model = ls.LinkSpreading(n_neighbors=1).fit(views, links)
    >>> exchange.take_embeddings(model, source="text", target="image").ids
    array([0, 1, 2])
    """
    check_model(model)
    check_name(role, ROLES, name="role")
    searching, found = model.embeddings(source, target)
    vectors = found if role == "found" else searching
    if not vectors.shape[1]:
        # No database takes vectors of length 0. One zero gives the same inner products.
        vectors = np.zeros((len(vectors), 1), vectors.dtype)
    view, other = (target, source) if role == "found" else (source, target)
    ids = _check_text(model.items_[view].ids, view)
    return Embeddings(ids, _as_dtype(vectors, dtype), view, other, role)


def check_model(model: Any) -> None:
    """Refuse anything but a search between views."""
    if not isinstance(model, VectorSearch):
        raise LinkspreadError(
            "`model` must be a fitted search or one of the baselines, got "
            f"{type(model).__name__}. Give the fitted model itself."
        )


def describe(embeddings: Embeddings) -> str:
    """Return the description of the vectors, as the JSON in every export."""
    content = {
        "format": FORMAT,
        "linkspread": __version__,
        "view": embeddings.view,
        "other_view": embeddings.other_view,
        "role": embeddings.role,
        "scores": SCORES,
    }
    return json.dumps(content, ensure_ascii=False)


def read_description(text: str | bytes) -> dict[str, str]:
    """Return `view`, `other_view` and `role` from the JSON of `describe`.

    Anything else raises a `ValueError`, which `reading` turns into a message.
    """
    content = json.loads(text)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise LinkspreadError(f"its format is not {FORMAT}")
    names = {name: str(content[name]) for name in ("view", "other_view", "role")}
    check_name(names["role"], ROLES, name="role")
    return names


@contextmanager
def reading(path: FilePath, *, what: str, writer: str) -> Iterator[None]:
    """Turn any error about a missing, damaged or foreign file into one message."""
    try:
        yield
    except MissingDependencyError:
        raise
    except FileNotFoundError as error:
        raise LinkspreadError(
            f"`path` must be {what}, got {str(path)!r}, which is no file. Correct it."
        ) from error
    except Exception as error:  # damaged bytes can fail anywhere in a reader
        reason = str(error).partition("\n")[0][:120].rstrip(".") or type(error).__name__
        raise LinkspreadError(
            f"`path` must be {what} written by `{writer}`, got {str(path)!r}, which "
            f"cannot be read ({reason}). Export it again."
        ) from error


def as_float32(vectors: Array) -> Array:
    """Return vectors as contiguous rows in float32; refuse overflow."""
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(vectors, dtype=np.float32)
    if not np.isfinite(single).all():
        raise LinkspreadError(
            "vectors must be finite in float32, got entries up to "
            f"{np.abs(vectors).max():.3g}. Scale the weights of the links down, or "
            "export float64 to NumPy or parquet."
        )
    return single


def _as_dtype(vectors: Array, dtype: str | None) -> Array:
    """Return vectors in the given precision."""
    if dtype is None:
        return vectors
    check_name(dtype, DTYPES, name="dtype")
    return as_float32(vectors) if dtype == "float32" else vectors.astype(np.float64)


def _check_text(ids: Array, view: str) -> Array:
    """Refuse ids that are not valid Unicode, such as undecodable file names."""
    for name in ids if ids.dtype.kind == "U" else ():
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise LinkspreadError(
                f"ids of view {view!r} must be Unicode to be exported, got {name!r}. "
                "Give the items other ids and fit again."
            ) from error
    return ids

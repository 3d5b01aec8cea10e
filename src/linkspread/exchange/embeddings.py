"""What an export holds: the vectors of one view's items, and what they mean."""

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
# How a vector store looks for the best: "exact" compares all, "hnsw" walks a graph.
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
        What the vectors are for.
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
    source : str
        View that searches.
    target : str
        View that is searched.
    role : {"searching", "found"}, default="found"
        "found" takes the items of `target`, to be put into a store; "searching" the
        items of `source`, to ask it.
    dtype : {"float32", "float64"}, default=None
        None keeps the numbers as they are.

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
    view, other = (target, source) if role == "found" else (source, target)
    ids = _check_text(model.items_[view].ids, view)
    return Embeddings(ids, _as_dtype(_widen(vectors), dtype), view, other, role)


def check_model(model: Any) -> None:
    """Refuse what cannot search one view from another."""
    if not isinstance(model, VectorSearch):
        raise LinkspreadError(
            "`model` must be a fitted search or one of the baselines, got "
            f"{type(model).__name__}. Give the fitted model itself."
        )


def describe(embeddings: Embeddings) -> str:
    """Return what the vectors mean, as the JSON that every export carries."""
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

    Anything else raises a `ValueError`, which readers of files turn into a sentence.
    """
    content = json.loads(text)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise LinkspreadError(f"it does not say that its format is {FORMAT}")
    names = {name: str(content[name]) for name in ("view", "other_view", "role")}
    check_name(names["role"], ROLES, name="role")
    return names


@contextmanager
def reading(path: FilePath, *, what: str, writer: str) -> Iterator[None]:
    """Turn all that a missing, damaged or foreign file can cause into a sentence."""
    try:
        yield
    except MissingDependencyError:
        raise
    except FileNotFoundError as error:
        raise LinkspreadError(
            f"`path` must be {what}, but {str(path)!r} is no file. Correct the path."
        ) from error
    except Exception as error:  # damaged bytes can fail anywhere in a reader
        reason = str(error).partition("\n")[0][:120].rstrip(".") or type(error).__name__
        raise LinkspreadError(
            f"`path` must be {what} written by `{writer}`, and {str(path)!r} cannot be "
            f"read as one ({reason}). Export it anew."
        ) from error


def as_float32(vectors: Array) -> Array:
    """Return vectors in single precision and row by row, as vector stores have them."""
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
    """Return vectors in the precision asked for."""
    if dtype is None:
        return vectors
    check_name(dtype, DTYPES, name="dtype")
    return as_float32(vectors) if dtype == "float32" else vectors.astype(np.float64)


def _widen(vectors: Array) -> Array:
    """Return vectors of one dimension or more."""
    # No store takes vectors of length 0. One zero has the same inner products.
    return vectors if vectors.shape[1] else np.zeros((len(vectors), 1), vectors.dtype)


def _check_text(ids: Array, view: str) -> Array:
    """Refuse ids that are no text, as undecodable names of files are."""
    for name in ids if ids.dtype.kind == "U" else ():
        try:
            name.encode()
        except UnicodeEncodeError as error:
            raise LinkspreadError(
                f"ids of view {view!r} must be Unicode to be exported, got {name!r}. "
                "Give the items other ids and fit again."
            ) from error
    return ids

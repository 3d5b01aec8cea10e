"""Choose the transformers of a collection, and store them without pickle."""

import hashlib
import importlib.metadata
import io
import json
from collections.abc import Mapping
from typing import Any, TypedDict

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from linkspread import __version__
from linkspread.features.choices import TRANSFORMERS, default_transformer
from linkspread.features.transformers import StoredTransformer
from linkspread.ground.errors import LinkspreadError, ViewError
from linkspread.manifests.collection import ItemCollection
from linkspread.manifests.rows import Texts
from linkspread.storage.folder import Content
from linkspread.storage.schema import Registry, Stored

# Increased when the rows of the same content and transformer change.
_ROWS_VERSION = 1
# Parameters that do not change the result.
_FOR_SPEED = ("n_jobs", "verbose")


def choose_transformers(
    collection: ItemCollection,
    given: Mapping[str, Any] | None = None,
    *,
    names: Mapping[str, str] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> dict[str, Any]:
    """Return the given transformer of each view, or the default one of its kind.

    ``names`` has a short name of a transformer for "picture", for "text" or for both.
    """
    given = given or {}
    unknown = next((view for view in given if view not in collection.views), None)
    if unknown is not None:
        raise ViewError(
            f"`transformers` must be for views of the collection, "
            f"{', '.join(map(repr, collection.views))}, got {unknown!r:.60}. Name one "
            "of these."
        )
    chosen = {}
    for view, items in collection.views.items():
        chosen[view] = given.get(view)
        if chosen[view] is None:
            own = default_transformer(items.kind, (names or {}).get(items.kind))
            wanted = {"random_state": random_state, "n_jobs": n_jobs}
            known = own.get_params(deep=False)
            own.set_params(**{k: v for k, v in wanted.items() if k in known})
            chosen[view] = own
    return chosen


def is_fitted(transformer: Any) -> bool:
    """Return whether a transformer is fitted."""
    try:
        check_is_fitted(transformer)
    except NotFittedError:
        return False
    return True


def with_speed_of(transformer: Any, like: Any) -> Any:
    """Return a transformer with the `n_jobs` and `verbose` of another."""
    params = like.get_params(deep=False)
    return transformer.set_params(**{n: params[n] for n in _FOR_SPEED if n in params})


def recipe(transformer: Any) -> str:
    """Return class, parameters and versions of a transformer, as JSON."""
    params = transformer.get_params(deep=False)
    try:
        pillow = importlib.metadata.version("pillow")
    except importlib.metadata.PackageNotFoundError:
        pillow = ""
    document = {
        "class": f"{type(transformer).__module__}.{type(transformer).__qualname__}",
        "parameters": {
            n: _plain(v, n) for n, v in params.items() if n not in _FOR_SPEED
        },
        "versions": [_ROWS_VERSION, __version__, np.__version__, pillow],
    }
    return json.dumps(document, sort_keys=True)


def fingerprint(transformer: Any) -> bytes:
    """Return a hash of a fitted transformer: its recipe and its fitted state."""
    found = hashlib.sha256(recipe(transformer).encode())
    content = Registry(STORED).encode(_learnt(transformer), about={})
    found.update(json.dumps(content.tree, sort_keys=True).encode())
    for name, array in sorted(content.arrays.items()):
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.digest()


# Names the encoding of `pack` in the keys of the cache: another one is never read.
PACKED = b"learnt 2"


def pack(transformer: Any) -> bytes:
    """Return a fitted transformer as bytes."""
    content = Registry(STORED).encode(transformer, about={})
    tree = np.frombuffer(json.dumps(content.tree).encode(), np.uint8)
    arrays: dict[str, Any] = {"tree": tree, **content.arrays}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def unpack(packed: bytes) -> Any:
    """Return the fitted transformer of bytes."""
    with np.load(io.BytesIO(packed), allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    tree = json.loads(arrays.pop("tree").tobytes())
    return Registry(STORED).decode(Content(tree, arrays, about={}))


class TransformerState(TypedDict):
    """The stored form of a fitted transformer: plain values, arrays and texts."""

    parameters: dict[str, Any]
    learnt: dict[str, Any]


def _learnt(transformer: Any) -> dict[str, Any]:
    """Return the fitted state of a transformer, lists of strings as texts."""
    return {
        name: Texts.from_strings(own) if isinstance(own, list) else own
        for name, own in transformer.get_state().items()
    }


def _take(transformer: Any) -> TransformerState:
    """Return the stored form of a fitted transformer."""
    params = transformer.get_params(deep=False)
    plain = {name: _plain(value, name) for name, value in params.items()}
    return {"parameters": plain, "learnt": _learnt(transformer)}


def _stored(of: type[StoredTransformer]) -> Stored:
    """Return how transformers of one class are stored."""

    def make(parameters: dict[str, Any], learnt: dict[str, Any]) -> StoredTransformer:
        state = {n: list(v) if isinstance(v, Texts) else v for n, v in learnt.items()}
        return of.from_state(parameters, state)

    return Stored(of, take=_take, make=make, state=TransformerState)


def _plain(value: Any, name: str) -> Any:
    """Return a value for JSON; refuse other types."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is not None and not isinstance(value, bool | int | float | str):
        raise LinkspreadError(
            f"`{name}` of a transformer must be a number, a string or None, "
            f"got {type(value).__name__}. Give a plain value, such as an integer as "
            "`random_state`."
        )
    return value


# All classes of transformers that may be stored or loaded.
STORED = [
    Stored(Texts, make=Texts.from_buffers),
    *(_stored(of) for of in TRANSFORMERS.values()),
]

"""Fitted transformers as arrays and plain values, and back; no pickle."""

import hashlib
import importlib.metadata
import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from linkspread import __version__
from linkspread.features import TRANSFORMERS
from linkspread.ground.errors import LinkspreadError, ModelError
from linkspread.manifests.packed_texts import checked_texts, pack_texts

# Raised when rows of the same content and transformer are no longer the same.
ROWS_VERSION = 1
# Parameters that change how long it takes and not what comes out.
MANNERS = ("n_jobs", "verbose")
PLAIN = (type(None), bool, int, float, str)


def is_fitted(transformer: Any) -> bool:
    """Tell whether a transformer has learnt already."""
    try:
        check_is_fitted(transformer)
    except NotFittedError:
        return False
    return True


def with_manners(transformer: Any, like: Any) -> Any:
    """Return a transformer that goes about its work as another one."""
    parameters = like.get_params(deep=False)
    manners = {name: parameters[name] for name in MANNERS if name in parameters}
    return transformer.set_params(**manners)


def recipe(transformer: Any) -> str:
    """Return what a transformer is before it has learnt: class, parameters, version."""
    parameters = transformer.get_params(deep=False)
    parameters = {k: v for k, v in parameters.items() if k not in MANNERS}
    document = {
        "class": f"{type(transformer).__module__}.{type(transformer).__qualname__}",
        "parameters": {name: _plain(value, name) for name, value in parameters.items()},
        "versions": [ROWS_VERSION, __version__, np.__version__, _pillow_version()],
    }
    return json.dumps(document, sort_keys=True)


def fingerprint(transformer: Any) -> bytes:
    """Return a hash of a fitted transformer: what it is and what it has learnt."""
    found = hashlib.sha256(recipe(transformer).encode())
    state = take_state(transformer)
    found.update(json.dumps(state["values"], sort_keys=True).encode())
    for name, array in sorted(state["arrays"].items()):
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.digest()


def take_state(transformer: Any) -> dict[str, Any]:
    """Return a fitted transformer as plain values and arrays of numbers."""
    if not hasattr(transformer, "get_state"):
        raise ModelError(
            "a transformer to be saved must have the method `get_state`, and "
            f"{type(transformer).__name__} has none. Use one of linkspread.features."
        )
    parameters = transformer.get_params(deep=False)
    state: dict[str, Any] = {
        "class": type(transformer).__name__,
        "parameters": {n: _plain(v, n) for n, v in parameters.items()},
        "values": {},
        "arrays": {},
    }
    for name, value in transformer.get_state().items():
        is_array = isinstance(value, np.ndarray)
        if is_array and value.dtype.kind in "OU":
            value, is_array = value.tolist(), False
        if is_array:
            state["arrays"][name] = value
        elif isinstance(value, list) and all(isinstance(own, str) for own in value):
            packed = pack_texts(value)
            state["arrays"] |= {
                f"{name}|bytes": packed.data,
                f"{name}|ends": packed.ends,
            }
        else:
            state["values"][name] = _plain(value, name)
    return state


def make_transformer(state: Mapping[str, Any]) -> Any:
    """Return the fitted transformer of a state, if its class is a known one."""
    classes = {own.__name__: own for own in TRANSFORMERS.values()}
    if state["class"] not in classes:
        raise ModelError(
            f"a transformer must be one of {', '.join(sorted(classes))}, got "
            f"{state['class']!r:.60}. Make the features again."
        )
    values, arrays = dict(state["values"]), dict(state["arrays"])
    for name in [name for name in arrays if name.endswith("|ends")]:
        stem = name.removesuffix("|ends")
        packed = checked_texts(arrays.pop(f"{stem}|bytes"), arrays.pop(name))
        values[stem] = list(packed)
    return classes[state["class"]].from_state(
        dict(state["parameters"]), values | arrays
    )


def pack_blob(state: Mapping[str, Any]) -> bytes:
    """Return a state as bytes."""
    rest = {name: own for name, own in state.items() if name != "arrays"}
    text = np.frombuffer(json.dumps(rest).encode(), np.uint8)
    buffer = io.BytesIO()
    # Numbered: a name of an array could be one of NumPy's own arguments.
    names = np.frombuffer(json.dumps(list(state["arrays"])).encode(), np.uint8)
    arrays = {f"a{i}": own for i, own in enumerate(state["arrays"].values())}
    np.savez(buffer, rest=text, names=names, **arrays)
    return buffer.getvalue()


def unpack_blob(blob: bytes) -> dict[str, Any]:
    """Return the state of bytes."""
    with np.load(io.BytesIO(blob), allow_pickle=False) as stored:
        names = json.loads(stored["names"].tobytes())
        arrays = {name: stored[f"a{i}"] for i, name in enumerate(names)}
        return {**json.loads(stored["rest"].tobytes()), "arrays": arrays}


def _plain(value: Any, name: str) -> Any:
    """Return a value that JSON can hold as it is."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, list | tuple):
        return [_plain(own, name) for own in value]
    if not isinstance(value, PLAIN):
        raise LinkspreadError(
            f"`{name}` of a transformer must be a number, a text or None to be saved, "
            f"got {type(value).__name__}. Give a plain value, such as an integer as "
            "`random_state`."
        )
    return value


def _pillow_version() -> str:
    """Return the version of what decodes pictures, without importing it."""
    try:
        return importlib.metadata.version("pillow")
    except importlib.metadata.PackageNotFoundError:
        return ""

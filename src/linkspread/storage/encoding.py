"""Values to JSON: plain ones as they are, arrays and objects by reference."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from linkspread.ground.errors import ModelError
from linkspread.storage.tensors import are_finite, as_tensor

if TYPE_CHECKING:
    from linkspread.storage.objects import Registry

Array = np.ndarray


class Ids:
    """A column of ids, which is stored as parquet."""

    def __init__(self, values: Array) -> None:
        self.values = values


class Encoder:
    """Turn values into JSON, and gather their arrays.

    What is met twice, be it an object or an array, is stored once.
    """

    def __init__(self, registry: "Registry") -> None:
        self._registry = registry
        self.nodes: list[dict[str, Any]] = []
        self.arrays: dict[str, Array] = {}
        self.ids: dict[str, Array] = {}
        # With each known thing kept, so that no other can have its address.
        self._objects: dict[int, tuple[Any, int]] = {}
        self._places: dict[Any, tuple[Any, str]] = {}

    def encode(self, value: Any, name: str) -> Any:
        """Return a value as JSON."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return self._number(value, name)
        if isinstance(value, list | tuple):
            kind = "tuple" if isinstance(value, tuple) else "list"
            return {
                kind: [self.encode(own, f"{name}.{i}") for i, own in enumerate(value)]
            }
        if isinstance(value, np.ndarray):
            return {"array": self._array(value, name)}
        if sparse.issparse(value):
            return {"csr": self._csr(value, name)}
        if isinstance(value, Ids):
            name = _unused(name, self.ids)
            self.ids[name] = value.values
            return {"ids": name}
        if isinstance(value, Mapping):
            return {"dict": [self._entry(key, own, name) for key, own in value.items()]}
        return {"object": self._object(value, name)}

    def _number(self, value: float, name: str) -> float:
        """Return a finite number."""
        if not math.isfinite(value):
            raise ModelError(
                f"numbers of a model must be finite to be saved, but `{name}` is "
                f"{value}. Fit the model anew."
            )
        return value

    def _entry(self, key: Any, value: Any, name: str) -> list[Any]:
        """Return an entry of a mapping; keys are texts or tuples of them."""
        is_pair = isinstance(key, tuple) and all(isinstance(own, str) for own in key)
        if not (isinstance(key, str) or is_pair):
            raise ModelError(
                f"keys of `{name}` must be texts to be saved, got {key!r:.60}. Name "
                "views by texts."
            )
        label = key if isinstance(key, str) else ", ".join(key)
        written = list(key) if is_pair else key
        return [written, self.encode(value, f"{name}.{label}")]

    def _array(self, value: Array, name: str) -> str:
        """Return the name of an array, gathered now if not before."""
        interface = value.__array_interface__
        place = (interface["data"][0], value.shape, value.strides, value.dtype.str)
        if value.size and place in self._places:
            return self._places[place][1]
        try:
            stored = as_tensor(value)
            if value.dtype.kind == "f" and not are_finite(stored):
                raise ModelError(
                    "arrays of a model must be finite, and this one is not. Fit anew."
                )
        except ModelError as error:
            raise ModelError(f"`{name}` cannot be saved: {error}") from error
        name = _unused(name, self.arrays)
        self.arrays[name] = stored
        self._places[place] = value, name
        return name

    def _csr(self, value: Any, name: str) -> dict[str, Any]:
        """Return a sparse matrix as three arrays and its shape."""
        matrix = sparse.csr_array(value)
        parts = {
            part: self._array(getattr(matrix, part), f"{name}.{part}")
            for part in ("data", "indices", "indptr")
        }
        return {**parts, "shape": [int(n) for n in matrix.shape]}

    def _object(self, value: Any, name: str) -> int:
        """Return the number of an object, taken apart now if not before."""
        if id(value) in self._objects:
            return self._objects[id(value)][1]
        known = self._registry.by_name.get(type(value).__name__)
        if known is None or type(value) is not known.of:
            raise ModelError(
                f"a model to be saved must hold what linkspread knows, and `{name}` is "
                f"{_named(value)}, which only this program has. Choose by name "
                "instead, or keep the program that fits the model."
            )
        fields = known.fields_of(value)
        encoded = {key: self.encode(v, f"{name}.{key}") for key, v in fields.items()}
        self.nodes.append({"class": known.name, "fields": encoded})
        number = len(self.nodes) - 1
        self._objects[id(value)] = value, number
        return number


def _unused(name: str, taken: Mapping[str, Any]) -> str:
    """Return a name that nothing has: views may be called anything."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name} ({number})"
    return found


def _named(value: Any) -> str:
    """Return the name of a function, or the class of anything else."""
    if callable(value) and hasattr(value, "__name__"):
        return f"the function {value.__name__!r:.60}"
    return f"of class {type(value).__name__!r:.60}"

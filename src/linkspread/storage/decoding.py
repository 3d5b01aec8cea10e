"""JSON back to values, each checked before anything is made of it."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from linkspread.ground.errors import ModelError
from linkspread.storage.files import brief, naming_file
from linkspread.storage.folder import Content

if TYPE_CHECKING:
    from linkspread.storage.objects import Registry

Array = np.ndarray

# More objects than any model has: each may take time and memory to be made.
MAX_OBJECTS = 5000
PARTS = ("data", "indices", "indptr")


class Decoder:
    """Put together the objects of a folder."""

    def __init__(self, registry: "Registry", content: Content) -> None:
        self._registry = registry
        self._content = content
        self._made: list[Any] = []
        # Arrays that two matrices share must be checked, but not twice.
        self._matrices: dict[tuple[Any, ...], sparse.csr_array] = {}

    def decode_all(self) -> dict[str, Any]:
        """Return the values of the tree by name."""
        tree = self._content.tree
        if set(tree) != {"objects", "root"} or not isinstance(tree["objects"], list):
            raise _strange("`content`", tree)
        if len(tree["objects"]) > MAX_OBJECTS:
            raise ModelError(
                f"a model must have at most {MAX_OBJECTS:,} objects, got "
                f"{len(tree['objects']):,}. Save the model again."
            )
        for number, node in enumerate(tree["objects"]):
            self._made.append(self._make(node, number))
        if not isinstance(tree["root"], dict):
            raise _strange("`root`", tree["root"])
        return {name: self.decode(value) for name, value in tree["root"].items()}

    def decode(self, value: Any) -> Any:
        """Return the value that JSON stands for."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if not isinstance(value, dict) or len(value) != 1:
            raise _strange("a value", value)
        ((kind, own),) = value.items()
        readers = {
            "array": self._array,
            "csr": self._csr,
            "dict": self._dict,
            "ids": self._ids,
            "list": self._list,
            "object": self._object,
            "tuple": lambda own: tuple(self._list(own)),
        }
        if kind not in readers:
            raise _strange("a value", value)
        return readers[kind](own)

    def _make(self, node: Any, number: int) -> Any:
        """Return one object."""
        if not isinstance(node, dict) or set(node) != {"class", "fields"}:
            raise _strange(f"object {number}", node)
        name, fields = node["class"], node["fields"]
        if not isinstance(name, str) or name not in self._registry.by_name:
            raise ModelError(
                f"object {number} must be of a class that linkspread knows, got "
                f"{brief(name)}. Install the version that saved the model."
            )
        if not isinstance(fields, dict):
            raise _strange(f"object {number}", node)
        decoded = {key: self.decode(value) for key, value in fields.items()}
        return self._registry.by_name[name].build(decoded)

    def _array(self, name: Any) -> Array:
        """Return an array by name."""
        if not isinstance(name, str) or name not in self._content.arrays:
            raise ModelError(
                f"arrays must be those of the file, got {brief(name)}, which it lacks. "
                "Save the model again."
            )
        return self._content.arrays[name]

    def _ids(self, name: Any) -> Array:
        """Return a column of ids by name."""
        if not isinstance(name, str) or name not in self._content.ids:
            raise _strange("a column of ids", name)
        return self._content.ids[name]

    def _csr(self, own: Any) -> sparse.csr_array:
        """Return a sparse matrix whose indices all point into it."""
        if not isinstance(own, dict) or set(own) != {*PARTS, "shape"}:
            raise _strange("a sparse matrix", own)
        key = (*(own[part] for part in PARTS), *self._shape(own["shape"]))
        if key not in self._matrices:
            data, indices, indptr = (self._array(own[part]) for part in PARTS)
            shape = self._shape(own["shape"])
            with naming_file(self._content.arrays_file):
                check_csr(data, indices, indptr, shape, name=own["indices"])
            matrix = sparse.csr_array((data, indices, indptr), shape=shape)
            self._matrices[key] = matrix
        return self._matrices[key]

    def _shape(self, shape: Any) -> tuple[int, int]:
        """Return the shape of a matrix."""
        is_shape = isinstance(shape, list) and len(shape) == 2
        if not is_shape or not all(type(n) is int and 0 <= n < 2**62 for n in shape):
            raise _strange("a shape", shape)
        return shape[0], shape[1]

    def _dict(self, entries: Any) -> dict[Any, Any]:
        """Return a mapping, in the order in which it was."""
        found = {}
        for entry in self._checked_list(entries):
            if not isinstance(entry, list) or len(entry) != 2:
                raise _strange("an entry of a mapping", entry)
            key, value = entry
            if isinstance(key, list) and all(isinstance(own, str) for own in key):
                key = tuple(key)
            if not isinstance(key, str | tuple) or key in found:
                raise _strange("a key of a mapping", key)
            found[key] = self.decode(value)
        return found

    def _list(self, values: Any) -> list[Any]:
        """Return a list of values."""
        return [self.decode(value) for value in self._checked_list(values)]

    def _checked_list(self, values: Any) -> list[Any]:
        """Return a list, if it is one."""
        if not isinstance(values, list):
            raise _strange("a list", values)
        return values

    def _object(self, number: Any) -> Any:
        """Return an object that was made before."""
        if type(number) is not int or not 0 <= number < len(self._made):
            raise _strange("the number of an earlier object", number)
        return self._made[number]


def check_csr(
    data: Array, indices: Array, indptr: Array, shape: tuple[int, int], *, name: str
) -> None:
    """Refuse arrays that are no sparse matrix: compiled loops would trust them."""
    is_flat = data.ndim == indices.ndim == indptr.ndim == 1
    are_integers = indices.dtype.kind == indptr.dtype.kind == "i"
    if (
        not is_flat
        or not are_integers
        or min(indices.itemsize, indptr.itemsize) < 4
        or len(indptr) != shape[0] + 1
        or len(indices) != len(data)
        or indptr[0] != 0
        or indptr[-1] != len(indices)
        or np.any(indptr[1:] < indptr[:-1])
        or indices.min(initial=0) < 0
        or indices.max(initial=-1) >= shape[1]
    ):
        raise ModelError(
            f"a sparse matrix must have indices within its shape {shape}, and array "
            f"{brief(name)} has not. Save the model again."
        )


def _strange(what: str, got: Any) -> ModelError:
    """Return the sentence about JSON of another form than was written."""
    return ModelError(
        f"{what} must be as linkspread writes it, got {brief(got)}. Save the model "
        "again."
    )

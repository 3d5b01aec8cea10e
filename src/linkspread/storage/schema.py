"""Objects of registered classes as a JSON tree and arrays, and back.

A class is registered by name; its fields and their types come from its annotations, or
from those of the function that builds its objects. Other classes are neither stored
nor loaded, and nothing is executed. Objects are a flat list in which each comes after
those it contains, so reading needs no recursion and cycles are impossible.
"""

import functools
import math
import operator
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np
from scipy import sparse

from linkspread.ground.errors import LinkspreadError, ModelError
from linkspread.ground.progress import format_bytes
from linkspread.storage.files import brief, damaged, naming_file
from linkspread.storage.folder import Content
from linkspread.storage.tensors import are_finite, as_tensor

Array = np.ndarray

# Most objects of a file, because each takes time and memory to build.
MAX_OBJECTS = 5000
# Numbers that JSON lacks, such as an infinite ridge.
NOT_FINITE = {repr(own): own for own in (math.inf, -math.inf, math.nan)}
CSR_PARTS = ("data", "indices", "indptr")
# Largest array of texts in bytes, and how much larger padding may make one above that.
MAX_PADDED, MAX_PADDING = 1 << 28, 64


def _is_array(value: Any, *n_dimensions: int, dtypes: str = "f") -> bool:
    """Return whether something is an array of numbers, or of ids."""
    is_array = isinstance(value, np.ndarray) and value.ndim in n_dimensions
    # Fitted arrays have at least single precision.
    return is_array and value.dtype.kind in dtypes and value.itemsize >= 4


def _is_sparse(value: Any) -> bool:
    """Return whether something is a sparse matrix of a fitted model."""
    floats = (np.float32, np.float64)
    return isinstance(value, sparse.csr_array) and value.dtype in floats


Test = Callable[[Any], bool]
# Stored integers are sizes and counts.
TESTS: dict[Any, Test] = {
    Any: lambda value: True,
    bool: lambda value: type(value) is bool,
    float: lambda value: type(value) in (int, float),
    int: lambda value: type(value) is int and value >= 0,
    np.ndarray: lambda value: _is_array(value, 1, 2),
    types.NoneType: lambda value: value is None,
    sparse.csr_array: _is_sparse,
}
# Array types for annotations: floats of one and two dimensions, dense or sparse
# matrices, positions of items, ids (texts or integers), and any array.
Vector = Annotated[np.ndarray, lambda value: _is_array(value, 1)]
Matrix = Annotated[np.ndarray, lambda value: _is_array(value, 2)]
AnyMatrix = Annotated[Any, lambda value: _is_array(value, 2) or _is_sparse(value)]
Positions = Annotated[np.ndarray, lambda value: _is_array(value, 1, dtypes="i")]
IdArray = Annotated[np.ndarray, lambda value: _is_array(value, 1, dtypes="iU")]
AnyArray = Annotated[np.ndarray, lambda value: isinstance(value, np.ndarray)]


def rule_of(annotation: Any) -> Test:
    """Return the test that an annotation states, such as ``dict[str, Matrix]``."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation in TESTS:
        return TESTS[annotation]
    if origin is Annotated:
        return inner[1]
    if origin is Literal:
        return lambda value: isinstance(value, str) and value in inner
    if origin is None and isinstance(annotation, type):
        return lambda value: isinstance(value, annotation)
    if origin not in (Union, types.UnionType, tuple, list, dict, Mapping):
        raise TypeError(f"{annotation} is not an annotation of a storable type")
    tests = [rule_of(own) for own in inner if own is not ...]
    if origin in (Union, types.UnionType):
        return lambda value: any(test(value) for test in tests)
    if origin is tuple and inner[-1] is not ...:
        return lambda value: (
            isinstance(value, tuple)
            and len(value) == len(tests)
            and all(test(own) for test, own in zip(tests, value, strict=True))
        )
    if origin in (tuple, list):
        return lambda value: isinstance(value, origin) and all(map(tests[0], value))
    return lambda value: (
        isinstance(value, dict)
        and all(map(tests[0], value))
        and all(map(tests[1], value.values()))
    )


@dataclass(frozen=True)
class Stored:
    """How objects of one class are stored; a dataclass needs nothing but its name.

    `take` returns by name the fields of an object that are not attributes. `make`
    builds an object from fields, whose types its annotations state, or those of the
    class `state`. `check` returns whether the parts of a built object fit each other.
    """

    of: type
    take: Callable[[Any], Mapping[str, Any]] | None = None
    make: Callable[..., Any] | None = None
    state: type | None = None
    check: Callable[[Any], bool] | None = None

    @property
    def name(self) -> str:
        """Name of the class in the tree."""
        return self.of.__name__

    @functools.cached_property
    def tests(self) -> dict[str, Test]:
        """The test of each field, from the annotations."""
        stated: Any = self.state or self.make
        if stated is None:
            is_plain = is_dataclass(self.of)
            stated = self.of if is_plain else vars(self.of)["__init__"]
        hints = typing.get_type_hints(stated, include_extras=True)
        return {name: rule_of(own) for name, own in hints.items() if name != "return"}

    def fields_of(self, value: Any) -> dict[str, Any]:
        """Return the fields of an object."""
        taken = {} if self.take is None else self.take(value)
        return {
            name: taken[name] if name in taken else getattr(value, name)
            for name in self.tests
        }

    def build(self, fields: Mapping[str, Any]) -> Any:
        """Build an object from fields, checked."""
        if set(fields) != set(self.tests):
            raise damaged(f"a {self.name} must have {', '.join(self.tests)}", [*fields])
        for name, test in self.tests.items():
            if not test(fields[name]):
                raise ModelError(
                    f"`{name}` of a {self.name} must be of the kind that is saved, got "
                    f"{_describe(fields[name])}. Save the model again."
                )
        value = (self.make or self.of)(**fields)
        if self.check is not None and not self.check(value):
            raise ModelError(
                f"the parts of a {self.name} must fit each other, and do not. Save the "
                "model again."
            )
        return value


class Registry:
    """The classes that can be stored: dataclasses and Stored.

    >>> from dataclasses import dataclass
    >>> from linkspread.storage.schema import Registry
    >>> @dataclass
    ... class Point:
    ...     x: float
    ...     y: float | None = None
    >>> registry = Registry([Point])
    >>> registry.decode(registry.encode(Point(0.5), about={}))
    Point(x=0.5, y=None)
    """

    def __init__(self, stored: Iterable[type | Stored]) -> None:
        made = [own if isinstance(own, Stored) else Stored(own) for own in stored]
        self.by_name = {own.name: own for own in made}

    def encode(self, value: Any, *, about: dict[str, Any]) -> Content:
        """Return a value as the contents of a folder."""
        encoder = _Encoder(self)
        root = encoder.encode(value, "")
        tree = {"objects": encoder.nodes, "root": root}
        return Content(tree, encoder.arrays, about)

    def decode(self, content: Content, *, of: Any = Any) -> Any:
        """Return the value of a folder, each part checked before it is used."""
        try:
            value = _Decoder(self, content).decode_all()
        except ModelError:
            raise
        except LinkspreadError as error:
            raise ModelError(f"{error} (in a stored model)") from error
        # A malformed file can raise any of these.
        except (
            ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError,
            ValueError,
        ) as error:  # fmt: skip
            raise ModelError(
                "objects of a model must be as they were saved, and these cannot be "
                f"built ({type(error).__name__}: {error!s:.80}). Save the model "
                "again."
            ) from error
        if not rule_of(of)(value):
            wanted = getattr(of, "__name__", of)
            raise ModelError(
                f"the folder must hold a {wanted!s:.90}, got {_describe(value)}. Give "
                "another folder."
            )
        return value


class _Encoder:
    """Values to JSON: plain ones as they are, arrays and objects by reference.

    An object or array that occurs twice is stored once.
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.nodes: list[dict[str, Any]] = []
        self.arrays: dict[str, Array] = {}
        # The values are kept alive, so that no other gets their address.
        self._objects: dict[int, tuple[Any, int]] = {}
        self._places: dict[Any, tuple[Any, str]] = {}

    def encode(self, value: Any, name: str) -> Any:
        """Return a value as JSON; `name` is for messages and array names."""
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": repr(value)}
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, list | tuple):
            kind = "tuple" if isinstance(value, tuple) else "list"
            own = [self.encode(v, _joined(name, i)) for i, v in enumerate(value)]
            return {kind: own}
        if (
            isinstance(value, np.ndarray)
            and value.dtype.kind == "U"
            and value.ndim == 1
        ):
            return {"ids": [self._array(own, name) for own in _pack_ids(value, name)]}
        if isinstance(value, np.ndarray):
            return {"array": self._array(value, name)}
        if sparse.issparse(value):
            matrix = sparse.csr_array(value)
            parts = {
                part: self._array(getattr(matrix, part), _joined(name, part))
                for part in CSR_PARTS
            }
            return {"csr": {**parts, "shape": [int(n) for n in matrix.shape]}}
        if isinstance(value, Mapping):
            return {"dict": [self._entry(key, own, name) for key, own in value.items()]}
        return {"object": self._object(value, name)}

    def _entry(self, key: Any, value: Any, name: str) -> list[Any]:
        """Return an entry of a mapping; keys are texts or tuples of them."""
        texts = key if isinstance(key, tuple) else (key,)
        if not all(isinstance(own, str) for own in texts):
            raise ModelError(
                f"keys of `{name}` must be texts to be saved, got {key!r:.60}. Name "
                "views by texts."
            )
        own = self.encode(value, _joined(name, ", ".join(texts)))
        return [list(key) if isinstance(key, tuple) else key, own]

    def _array(self, value: Array, name: str) -> str:
        """Return the name of an array, which is added once."""
        interface = value.__array_interface__
        place = (interface["data"][0], value.shape, value.strides, value.dtype.str)
        if value.size and place in self._places:
            return self._places[place][1]
        stored = as_tensor(value, name)
        if value.dtype.kind == "f" and not are_finite(stored):
            raise ModelError(
                f"arrays must be finite to be saved, but `{name}` is not. Fit the "
                "model again."
            )
        name = _unused(name, self.arrays)
        self.arrays[name] = stored
        self._places[place] = value, name
        return name

    def _object(self, value: Any, name: str) -> int:
        """Return the number of an object, which is encoded once."""
        if id(value) in self._objects:
            return self._objects[id(value)][1]
        known = self._registry.by_name.get(type(value).__name__)
        if known is None or type(value) is not known.of:
            what = f"of class {type(value).__name__!r:.60}"
            if callable(value) and hasattr(value, "__name__"):
                what = f"the function {value.__name__!r:.60}"
            raise ModelError(
                f"a model must consist of linkspread's classes, and `{name}` is "
                f"{what}, which cannot be stored. Choose by name instead, or keep the "
                "program that fits the model."
            )
        encoded = {
            key: self.encode(own, _joined(name, key))
            for key, own in known.fields_of(value).items()
        }
        self.nodes.append({"class": known.name, "fields": encoded})
        number = len(self.nodes) - 1
        self._objects[id(value)] = value, number
        return number


class _Decoder:
    """JSON to values; what is malformed raises an error."""

    def __init__(self, registry: Registry, content: Content) -> None:
        self._registry = registry
        self._content = content
        self._made: list[Any] = []
        # Matrices are checked once, even if several share their arrays.
        self._matrices: dict[str, sparse.csr_array] = {}
        self._readers: dict[str, Callable[[Any], Any]] = {
            "array": lambda name: self._content.arrays[name],
            "csr": self._csr,
            "dict": self._dict,
            "float": NOT_FINITE.__getitem__,
            "ids": self._ids,
            "list": self._list,
            "object": self._object,
            "tuple": lambda own: tuple(self._list(own)),
        }

    def decode_all(self) -> Any:
        """Return the value of the tree."""
        tree = self._content.tree
        if set(tree) != {"objects", "root"} or not isinstance(tree["objects"], list):
            raise _malformed("`content`", tree)
        if len(tree["objects"]) > MAX_OBJECTS:
            n_objects = len(tree["objects"])
            raise damaged(f"a model must have at most {MAX_OBJECTS} objects", n_objects)
        for number, node in enumerate(tree["objects"]):
            self._made.append(self._make(node, number))
        return self._decode(tree["root"])

    def _decode(self, value: Any) -> Any:
        """Return the value that JSON stands for."""
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if not isinstance(value, dict) or len(value) != 1:
            raise _malformed("a value", value)
        ((kind, own),) = value.items()
        if kind not in self._readers:
            raise _malformed("a value", value)
        try:
            return self._readers[kind](own)
        except KeyError as error:
            raise damaged(f"the {kind} must be in the folder", own) from error

    def _make(self, node: Any, number: int) -> Any:
        """Return one object."""
        if not isinstance(node, dict) or set(node) != {"class", "fields"}:
            raise _malformed(f"object {number}", node)
        name, fields = node["class"], node["fields"]
        if not isinstance(name, str) or name not in self._registry.by_name:
            raise ModelError(
                f"object {number} must be of a class that linkspread knows, got "
                f"{brief(name)}. Install the version that saved the model."
            )
        if not isinstance(fields, dict):
            raise _malformed(f"object {number}", node)
        decoded = {key: self._decode(value) for key, value in fields.items()}
        return self._registry.by_name[name].build(decoded)

    def _csr(self, own: Any) -> sparse.csr_array:
        """Return a sparse matrix; compiled loops trust its indices."""
        if not isinstance(own, dict) or set(own) != {*CSR_PARTS, "shape"}:
            raise _malformed("a sparse matrix", own)
        key = repr(own)
        if key not in self._matrices:
            parts = [self._content.arrays[own[part]] for part in CSR_PARTS]
            with naming_file(self._content.arrays_file):
                self._matrices[key] = make_csr(parts, own["shape"], own["indices"])
        return self._matrices[key]

    def _ids(self, names: Any) -> Array:
        """Return a column of ids that are texts."""
        lengths, data = (self._content.arrays[name] for name in names)
        with naming_file(self._content.arrays_file):
            return _unpack_ids(lengths, data)

    def _dict(self, entries: Any) -> dict[Any, Any]:
        """Return a mapping in its original order."""
        found = {}
        for entry in entries if isinstance(entries, list) else [None]:
            if not isinstance(entry, list) or len(entry) != 2:
                raise _malformed("an entry of a mapping", entry)
            key = tuple(entry[0]) if isinstance(entry[0], list) else entry[0]
            texts = key if isinstance(key, tuple) else (key,)
            if not all(isinstance(own, str) for own in texts) or key in found:
                raise _malformed("a key of a mapping", key)
            found[key] = self._decode(entry[1])
        return found

    def _list(self, values: Any) -> list[Any]:
        """Return a list of values."""
        if not isinstance(values, list):
            raise _malformed("a list", values)
        return [self._decode(value) for value in values]

    def _object(self, number: Any) -> Any:
        """Return an object built before."""
        if type(number) is not int or not 0 <= number < len(self._made):
            raise _malformed("the number of an earlier object", number)
        return self._made[number]


def _pack_ids(ids: Array, name: str) -> tuple[Array, Array]:
    """Return the lengths of texts, and all of them one after the other in UTF-8."""
    lengths = np.char.str_len(ids).astype(np.int64)
    _check_padding(lengths)
    try:
        data = "".join(ids.tolist()).encode()
    except UnicodeEncodeError as error:
        raise ModelError(
            f"ids must be Unicode to be saved, but one of `{name}` is "
            f"{brief(error.object[error.start :])}. Give the items other ids."
        ) from error
    return lengths, np.frombuffer(data, np.uint8)


def _unpack_ids(lengths: Array, data: Array) -> Array:
    """Return texts from their lengths and their letters in UTF-8."""
    text = data.tobytes().decode("utf-8")
    total = int(lengths.sum())
    is_flat = lengths.ndim == 1 and lengths.dtype == np.int64
    if not is_flat or lengths.min(initial=0) < 0 or total != len(text):
        raise damaged(f"ids must have {len(text):,} letters together", total)
    _check_padding(lengths)
    ends = np.cumsum(lengths)
    places = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
    return np.array([text[start:end] for start, end in places], dtype=str)


def _check_padding(lengths: Array) -> None:
    """Refuse texts that NumPy, which pads them to the longest, makes far larger."""
    n_bytes = 4 * len(lengths) * int(lengths.max(initial=0))
    if n_bytes > max(MAX_PADDED, 4 * MAX_PADDING * int(lengths.sum())):
        raise ModelError(
            f"ids must be of similar length, got one of {lengths.max():,} letters "
            f"among {len(lengths):,}, which together would take "
            f"{format_bytes(n_bytes)}. Give shorter ids."
        )


def make_csr(parts: list[Array], shape: Any, name: str) -> sparse.csr_array:
    """Return a sparse matrix, or refuse invalid arrays."""
    data, indices, indptr = parts
    try:
        n_rows, n_columns = map(operator.index, shape)
        # SciPy checks no pointers where the last is 0.
        is_ordered = bool(np.all(indptr[1:] >= indptr[:-1]))
        if is_ordered and indices.dtype.kind == indptr.dtype.kind == "i":
            matrix = sparse.csr_array(
                (data, indices, indptr), shape=(n_rows, n_columns)
            )
            matrix.check_format(full_check=True)
            return matrix
    except (ValueError, TypeError, IndexError, OverflowError):
        pass
    raise ModelError(
        f"a sparse matrix must have indices within its shape {brief(shape)}, and those "
        f"of array {brief(name)} are not. Save the model again."
    )


def _joined(name: str, part: Any) -> str:
    """Return the name of a part, prefixed by that of the whole."""
    return f"{name}.{part}" if name else f"{part}"


def _unused(name: str, taken: Mapping[str, Any]) -> str:
    """Return an unused name, as names of views may coincide."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name} ({number})"
    return found


def _describe(value: Any) -> str:
    """Return the type of a value for a message."""
    if isinstance(value, np.ndarray) or sparse.issparse(value):
        return f"{value.dtype} of shape {value.shape}"
    return f"{type(value).__name__}"


def _malformed(what: str, got: Any) -> ModelError:
    """Return the error about malformed JSON."""
    return damaged(f"{what} must be of linkspread's format", got)

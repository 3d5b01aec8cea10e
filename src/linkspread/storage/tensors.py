"""JSON, checked, and arrays in the safetensors format, memory-mapped.

The format is eight bytes with the length of a header, the header in JSON, and the
arrays one after the other in C order. It is written and read here, without the package
of that name: no dependency, the same bytes for the same arrays, no second copy in
memory, a checksum on the way, and a header that is checked completely.
"""

import hashlib
import json
import math
import mmap
import os
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO, NoReturn

import numpy as np

from linkspread.ground.errors import ModelError
from linkspread.storage.files import HashingFile, brief, damaged

Array = np.ndarray

# Numbers only: neither texts nor objects.
DTYPES: dict[str, np.dtype[Any]] = {
    name: np.dtype(code)
    for name, code in (
        ("F64", "<f8"), ("I64", "<i8"), ("U64", "<u8"),
        ("F32", "<f4"), ("I32", "<i4"), ("U32", "<u4"),
        ("F16", "<f2"), ("I16", "<i2"), ("U16", "<u2"),
        ("I8", "|i1"), ("U8", "|u1"), ("BOOL", "|b1"),
    )
}  # fmt: skip
NAMES = {dtype: name for name, dtype in DTYPES.items()}
MAX_HEADER = 1 << 22
MAX_DIMENSIONS = 2
LENGTH_BYTES = 8
# How deep JSON may be nested.
MAX_DEPTH = 24
# Entries checked at a time.
CHECKED_ENTRIES = 1 << 20


def as_tensor(array: Array, name: str) -> Array:
    """Return an array in the form that is stored, or refuse it."""
    dtype = array.dtype.newbyteorder("<")
    if dtype not in NAMES or array.ndim > MAX_DIMENSIONS:
        raise ModelError(
            f"arrays must be of plain numbers in at most {MAX_DIMENSIONS} dimensions "
            f"to be saved, but `{name}` is {array.dtype} of shape {array.shape}. "
            "Convert it."
        )
    return np.asarray(array, dtype=dtype, order="C")


def are_finite(array: Array) -> bool:
    """Return whether all numbers of a contiguous array are finite."""
    flat = array.reshape(-1)
    starts = range(0, len(flat), CHECKED_ENTRIES)
    return all(np.isfinite(flat[i : i + CHECKED_ENTRIES]).all() for i in starts)


def write_tensors(file: HashingFile, arrays: Mapping[str, Array]) -> None:
    """Write arrays as one safetensors file."""
    # Wide types first, so that all are aligned.
    order = sorted(arrays, key=lambda name: -arrays[name].dtype.itemsize)
    header, start = {}, 0
    for name in order:
        end = start + arrays[name].nbytes
        header[name] = {
            "dtype": NAMES[arrays[name].dtype.newbyteorder("<")],
            "shape": list(arrays[name].shape),
            "data_offsets": [start, end],
        }
        start = end
    text = json.dumps(header, separators=(",", ":")).encode("ascii")
    if len(text) > MAX_HEADER:
        raise ModelError(
            f"a model must have a header of at most {MAX_HEADER:,} bytes, got "
            f"{len(text):,} for {len(header):,} arrays. Save fewer fits in one model."
        )
    text += b" " * (-len(text) % LENGTH_BYTES)
    file.write(len(text).to_bytes(LENGTH_BYTES, "little"))
    file.write(text)
    for name in order:
        file.write(as_tensor(arrays[name], name).reshape(-1).view(np.uint8))


def read_tensors(file: BinaryIO) -> dict[str, Array]:
    """Return the arrays of a safetensors file, mapped into memory copy-on-write."""
    n_bytes = os.fstat(file.fileno()).st_size
    header, start = _read_header(file, n_bytes)
    places = _check_header(header, n_bytes - start)
    mapped: Any = b""
    if n_bytes > start:
        mapped = mmap.mmap(file.fileno(), n_bytes, access=mmap.ACCESS_COPY)
    arrays = {}
    for name, (dtype, shape, offset) in places.items():
        count = math.prod(shape)
        flat = np.zeros(0, dtype)
        if count:
            flat = np.frombuffer(mapped, dtype, count, start + offset)
        if dtype.kind == "f" and not are_finite(flat):
            raise ModelError(
                f"array {brief(name)} must be finite, and is not. Save the model again."
            )
        if dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
            raise ModelError(
                f"array {brief(name)} must hold 0 and 1 only, and does not. Save the "
                "model again."
            )
        arrays[name] = flat.reshape(shape)
    return arrays


def _read_header(file: BinaryIO, n_bytes: int) -> tuple[dict[str, Any], int]:
    """Return the header, and where the arrays start."""
    file.seek(0)
    length = int.from_bytes(file.read(LENGTH_BYTES), "little")
    if not 0 < length <= min(n_bytes - LENGTH_BYTES, MAX_HEADER):
        raise damaged(
            f"the header must have at most {MAX_HEADER:,} bytes and end within the "
            f"{n_bytes:,} bytes of the file",
            length,
        )
    header = parse_json(file.read(length))
    header.pop("__metadata__", None)
    return header, LENGTH_BYTES + length


Place = tuple[np.dtype[Any], tuple[int, ...], int]


def _check_header(header: dict[str, Any], n_bytes: int) -> dict[str, Place]:
    """Return dtype, shape and offset of each array; together they fill the file."""
    places = {name: _check_array(name, entry) for name, entry in header.items()}
    end = 0
    for name, (dtype, shape, start) in sorted(places.items(), key=lambda p: p[1][2]):
        if start != end or start % dtype.itemsize:
            raise damaged(f"array {brief(name)} must begin at {end:,}", start)
        end = start + math.prod(shape) * dtype.itemsize
    if end != n_bytes:
        raise damaged(f"arrays must fill the {n_bytes:,} bytes of the file", end)
    return places


def _check_array(name: str, entry: Any) -> Place:
    """Return dtype, shape and offset of one array."""
    keys = {"dtype", "shape", "data_offsets"}
    what = f"array {brief(name)}"
    if not isinstance(entry, dict) or set(entry) != keys:
        raise damaged(f"{what} must have a dtype, a shape and offsets", entry)
    shape, offsets, kind = entry["shape"], entry["data_offsets"], entry["dtype"]
    if not isinstance(kind, str) or kind not in DTYPES:
        raise damaged(f"{what} must be of one of {', '.join(DTYPES)}", kind)
    dtype = DTYPES[kind]
    is_shape = _are_counts(shape) and len(shape) <= MAX_DIMENSIONS
    is_place = _are_counts(offsets) and len(offsets) == 2
    if (
        not is_shape
        or not is_place
        or offsets[1] - offsets[0] != math.prod(shape) * dtype.itemsize
    ):
        raise damaged(f"{what} must have a shape that fits its bytes", entry)
    return dtype, tuple(shape), offsets[0]


def _are_counts(values: Any) -> bool:
    """Return whether something is a list of sizes."""
    return isinstance(values, list) and all(
        type(value) is int and 0 <= value <= sys.maxsize for value in values
    )


def parse_json(data: bytes) -> dict[str, Any]:
    """Return a JSON object; refuse depth, repeated names and numbers not finite."""
    try:
        document = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except RecursionError as error:
        raise _too_deep() from error
    except ModelError:
        raise
    except ValueError as error:  # also for invalid UTF-8
        raise damaged("it must be JSON", str(error)) from error
    if not isinstance(document, dict):
        raise damaged("it must be a JSON object", document)
    check_depth(document)
    return document


def check_depth(document: Any) -> None:
    """Refuse a document that is nested too deep."""
    level = [document]
    for _ in range(MAX_DEPTH):
        nodes = [node for node in level if isinstance(node, dict | list)]
        level = [
            child
            for node in nodes
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return
    raise _too_deep()


def checksum(document: dict[str, Any]) -> str:
    """Return a checksum of a document, independent of its layout."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; refuse repeated names."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise damaged("names in a JSON object must be unique", [k for k, _ in pairs])
    return found


def _refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and infinity."""
    raise damaged("numbers must be finite", name)


def _finite(text: str) -> float:
    """Return a number; refuse one that overflows."""
    value = float(text)
    return value if math.isfinite(value) else _refuse_constant(text)


def _too_deep() -> ModelError:
    """Return the error about JSON that is nested too deep."""
    return ModelError(
        f"JSON must be nested at most {MAX_DEPTH} deep, and is deeper. Save the "
        "model again."
    )

"""Studies as JSON files, which are replaced as a whole.

The types of the data classes define the format, so a field is described only once.
"""

import json
import math
import tempfile
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

from linkspread.ground.errors import LinkspreadError
from linkspread.storage.files import FilePath, new_file
from linkspread.studies.report.study import Study

FORMAT = 2
WORDS = {str: "a text", bool: "true or false", int: "a whole number"}


def check_folder(folder: FilePath) -> Path:
    """Make a folder; refuse one that cannot be written, before long work."""
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise LinkspreadError(
            f"The report must go to a folder that can be written, got "
            f"{str(folder)!r}: {error.strerror}. Choose another folder."
        ) from error
    return folder


def write_page(path: FilePath, text: str) -> Path:
    """Write a text file in one step."""
    with new_file(path, overwrite=True) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return Path(path)


def write_study(path: FilePath, study: Study) -> Path:
    """Write a study as JSON."""
    text = json.dumps(to_json(study), ensure_ascii=False, indent=1)
    return write_page(path, text + "\n")


def read_study(path: FilePath) -> Study:
    """Read a study that `write_study` wrote."""
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise LinkspreadError(
            f"A study must be a file that can be read, got {str(path)!r}: "
            f"{error.strerror}. Correct the path, or compute the study first."
        ) from error
    except (ValueError, RecursionError) as error:
        raise LinkspreadError(
            f"A study must be a JSON file, got {str(path)!r}: {error}. "
            "Compute the study again."
        ) from error
    return from_json(content)


def to_json(study: Study) -> dict[str, Any]:
    """Return a study as plain values: dicts, lists, texts, finite numbers."""
    return {"format": FORMAT, **_encode(study, "study")}


def from_json(content: Any) -> Study:
    """Return the study that `to_json` turned into plain values."""
    content = dict(_object(content, "study"))
    version = content.pop("format", None)
    if type(version) is not int or version != FORMAT:
        raise _malformed("study.format", f"{FORMAT}", version)
    return _decode(Study, content, "study")


def _encode(value: Any, where: str) -> Any:
    """Return a value for JSON, without fields that have their default."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if is_dataclass(value):
        own = [(field, getattr(value, field.name)) for field in fields(value)]
        value = {field.name: x for field, x in own if x != _default(field)}
    if isinstance(value, Mapping):
        return {_key(k, where): _encode(v, f"{where}.{k}") for k, v in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_encode(v, f"{where}[{i}]") for i, v in enumerate(value)]
    return _scalar(value, where)


def _default(field: Any) -> Any:
    """Return the default of a field, MISSING where it has none."""
    made = field.default_factory
    return field.default if made is MISSING else made()


def _decode(hint: Any, value: Any, where: str) -> Any:
    """Return a value of JSON in the type of a field, or refuse it."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        if isinstance(value, dict | list):
            return _decode(
                dict[str, Any] if isinstance(value, dict) else list[Any], value, where
            )
        return _scalar(value, where)
    if origin in (Union, types.UnionType):  # only `X | None` occurs
        return None if value is None else _decode(inner[0], value, where)
    if is_dataclass(hint):
        return _decode_fields(cast(type, hint), value, where)
    if origin is dict:
        items = _object(value, where).items()
        return {k: _decode(inner[1], v, f"{where}.{k}") for k, v in items}
    if origin in (tuple, list, Sequence):
        if not isinstance(value, list):
            raise _malformed(where, "a list", value)
        found = [_decode(inner[0], v, f"{where}[{i}]") for i, v in enumerate(value)]
        return found if origin is list else tuple(found)
    if hint is float:
        if type(value) not in (int, float):
            raise _malformed(where, "a number", value)
        return float(_scalar(value, where))
    if type(value) is not hint:
        raise _malformed(where, WORDS[hint], value)
    return value


def _decode_fields(cls: type, value: Any, where: str) -> Any:
    """Return a data class from an object; fields with a default may be missing."""
    hints = get_type_hints(cls)
    unknown = _object(value, where).keys() - hints.keys()
    needed = {field.name for field in fields(cls) if _default(field) is MISSING}
    missing = needed - value.keys()
    if unknown:
        rule = f"without other fields than {list(hints)}"
        raise _malformed(where, rule, min(unknown))
    if missing:
        raise _malformed(where, f"with the field {min(missing)!r}", list(value))
    return cls(**{k: _decode(hints[k], v, f"{where}.{k}") for k, v in value.items()})


def _scalar(value: Any, where: str) -> Any:
    """Return None, a text, a bool or a finite number; refuse other values."""
    if value is None or isinstance(value, str | bool):
        return value
    if not isinstance(value, int | float):
        raise _malformed(where, "a plain value", value)
    try:
        is_finite = math.isfinite(value)
    except OverflowError:  # a whole number beyond all floats
        is_finite = False
    if not is_finite:
        raise _malformed(where, "a finite number", value)
    return value


def _object(value: Any, where: str) -> dict[str, Any]:
    """Return a dict whose keys are texts; refuse other values."""
    if not isinstance(value, dict):
        raise _malformed(where, "an object", value)
    return {_key(key, where): inner for key, inner in value.items()}


def _key(key: Any, where: str) -> str:
    """Return a key that is a text, as JSON would convert others silently."""
    if not isinstance(key, str):
        raise _malformed(where, "an object with texts as keys", key)
    return key


def _malformed(where: str, rule: str, value: Any) -> LinkspreadError:
    """Return the error about a value that no study can have."""
    try:
        got = repr(value)
    except ValueError:  # Python prints no number of more than 4,300 digits
        got = "a very large number"
    got = got if len(got) <= 80 else f"{got[:77]}..."
    return LinkspreadError(
        f"`{where}` must be {rule}, got {got}. Compute the study again, or correct "
        "this entry."
    )

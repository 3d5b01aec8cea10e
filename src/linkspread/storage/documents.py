"""JSON that comes from outside: bounded, finite, without repeated names."""

import hashlib
import json
import math
from typing import Any, NoReturn

from linkspread.ground.errors import ModelError
from linkspread.ground.progress import format_bytes

# Nested deeper than this nothing of ours is.
MAX_DEPTH = 24
# Levels with a line for each entry; below that a line holds all.
OPEN_LEVELS = 3


def parse_json(data: bytes) -> dict[str, Any]:
    """Return an object of JSON, or say what is wrong with it."""
    try:
        document = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except RecursionError as error:
        raise ModelError(_too_deep()) from error
    except ModelError:
        raise
    except ValueError as error:  # also of text that is no UTF-8
        raise ModelError(
            f"it must be JSON, and is not ({error!s:.80}). Save the model again."
        ) from error
    if not isinstance(document, dict):
        raise ModelError(
            f"it must be an object of JSON, got a {type(document).__name__}. "
            "Save the model again."
        )
    check_depth(document)
    return document


def check_depth(document: Any, max_depth: int = MAX_DEPTH) -> None:
    """Refuse a document that is nested too deep."""
    level = [document]
    for _ in range(max_depth):
        level = [
            child
            for node in level
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
        if not level:
            return
    raise ModelError(_too_deep())


def format_json(document: dict[str, Any], *, max_bytes: int) -> bytes:
    """Return a document as people can read it."""
    data = _laid_out(document, OPEN_LEVELS).encode("utf-8")
    if len(data) > max_bytes:
        raise ModelError(
            f"names and parameters of a model must take at most "
            f"{format_bytes(max_bytes)} as JSON, got {format_bytes(len(data))}. Give "
            "large matrices as arrays, and shorter names of columns."
        )
    return data


def checksum(document: dict[str, Any]) -> str:
    """Return a checksum of what a document says, however it is written."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _laid_out(value: Any, n_levels: int, margin: str = "") -> str:
    """Return JSON whose outer levels have an entry on each line."""
    if n_levels == 0 or not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    inner = f"{margin} "
    if isinstance(value, dict):
        names = [f"{json.dumps(name, ensure_ascii=False)}: " for name in value]
        values, (opening, closing) = list(value.values()), "{}"
    else:
        names, values, (opening, closing) = [""] * len(value), value, "[]"
    parts = [
        f"{inner}{name}{_laid_out(own, n_levels - 1, inner)}"
        for name, own in zip(names, values, strict=True)
    ]
    return f"{opening}\n" + ",\n".join(parts) + f"\n{margin}{closing}"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object whose names are all different."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ModelError(
            "names within JSON must be different, and some are repeated. Save the "
            "model again."
        )
    return found


def _refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and infinity."""
    raise ModelError(f"numbers must be finite, got {name}. Save the model again.")


def _finite(text: str) -> float:
    """Return a number that did not overflow."""
    value = float(text)
    if not math.isfinite(value):
        raise ModelError(
            f"numbers must be finite, got {text:.40}. Save the model again."
        )
    return value


def _too_deep() -> str:
    """Return the sentence about JSON that is nested too deep."""
    return (
        f"JSON must be nested at most {MAX_DEPTH} deep, and is deeper. Save the "
        "model again."
    )

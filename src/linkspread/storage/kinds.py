"""What a field of a stored object may hold, so that nothing else is put there.

>>> from linkspread.storage.kinds import NUMBER, TEXT
>>> (NUMBER | TEXT).accepts(0.5), NUMBER.accepts("0.5")
(True, False)
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Kind:
    """A rule about a value."""

    name: str
    accepts: Callable[[Any], bool]

    def __or__(self, other: "Kind") -> "Kind":
        return Kind(
            f"{self.name} or {other.name}",
            lambda value: self.accepts(value) or other.accepts(value),
        )


ANYTHING = Kind("anything", lambda value: True)
SHARE = Kind(
    "a number in [0, 1)", lambda value: type(value) in (int, float) and 0 <= value < 1
)
POSITIVE = Kind(
    "a number above 0", lambda value: type(value) in (int, float) and value > 0
)
COUNT = Kind("an integer from 0", lambda value: type(value) is int and value >= 0)
FLAG = Kind("true or false", lambda value: type(value) is bool)
NOTHING = Kind("nothing", lambda value: value is None)
NUMBER = Kind("a number", lambda value: type(value) in (int, float))
TEXT = Kind("a text", lambda value: isinstance(value, str))


def array(n_dimensions: int, dtypes: str = "f") -> Kind:
    """Return the rule that something is an array."""

    def accepts(value: Any) -> bool:
        is_array = isinstance(value, np.ndarray) and value.ndim == n_dimensions
        # Half precision and the like are for what users give, not for fits.
        return is_array and value.dtype.kind in dtypes and value.itemsize >= 4

    return Kind(f"an array of {n_dimensions} dimension(s)", accepts)


def csr() -> Kind:
    """Return the rule that something is a sparse matrix of floats."""
    return Kind(
        "a sparse matrix",
        lambda value: (
            isinstance(value, sparse.csr_array)
            and value.dtype in (np.float32, np.float64)
        ),
    )


def fields(*kinds: Kind) -> Kind:
    """Return the rule that something is a tuple with one value of each kind."""

    def accepts(value: Any) -> bool:
        is_tuple = isinstance(value, tuple) and len(value) == len(kinds)
        return is_tuple and all(
            kind.accepts(own) for kind, own in zip(kinds, value, strict=True)
        )

    return Kind(f"a tuple of {', '.join(kind.name for kind in kinds)}", accepts)


def instance(*classes: type) -> Kind:
    """Return the rule that something is of one of these classes."""
    names = " or ".join(own.__name__ for own in classes)
    return Kind(f"a {names}", lambda value: isinstance(value, classes))


def mapping(of: Kind, *, keys: Kind = TEXT) -> Kind:
    """Return the rule that something maps keys to values of a kind."""

    def accepts(value: Any) -> bool:
        if not isinstance(value, dict):
            return False
        return all(keys.accepts(k) and of.accepts(v) for k, v in value.items())

    return Kind(f"a mapping to {of.name}", accepts)


def sequence(of: Kind, *, type: Any = tuple, length: int | None = None) -> Kind:
    """Return the rule that something lists values of a kind."""

    def accepts(value: Any) -> bool:
        is_sequence = isinstance(value, type) and length in (None, len(value))
        return is_sequence and all(of.accepts(own) for own in value)

    return Kind(f"a {type.__name__} of {of.name}", accepts)

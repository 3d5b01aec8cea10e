"""Checks of the parameters that several estimators have."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np

from linkspread.ground.errors import LinkspreadError

Error = type[LinkspreadError]

# Weights of judgements are between its inverse and this. One link outweighs no more
# than a million others, so that scores stay finite and a link can be removed again.
MAX_WEIGHT = 1e6


@contextmanager
def naming(view: str) -> Iterator[None]:
    """Prefix the message of any error with the name of a view."""
    try:
        yield
    except LinkspreadError as error:
        named = type(error)(f"view {view!r}: {error}")
        # Some errors have further attributes.
        vars(named).update(vars(error))
        raise named from error


def check_name(
    value: Any, names: Iterable[str], *, name: str, error: Error = LinkspreadError
) -> str:
    """Return the value if it is one of the names."""
    known = sorted(names)
    if isinstance(value, str) and value in known:
        return value
    raise error(
        f"`{name}` must be one of {', '.join(map(repr, known))}, got {value!r:.60}. "
        "Choose one of these."
    )


def check_positive(
    value: Any,
    *,
    name: str,
    remedy: str,
    zero: bool = False,
    error: Error = LinkspreadError,
) -> float:
    """Return a finite number above 0, or with `zero` of at least 0."""
    if is_number(value) and (value > 0 or (zero and value == 0)) and value < np.inf:
        return float(value)
    rule = "a number of at least 0" if zero else "a positive number"
    raise error(f"`{name}` must be {rule}, got {value!r:.60}. {remedy}")


def check_count(
    value: Any,
    *,
    name: str,
    remedy: str,
    at_least: int = 1,
    error: Error = LinkspreadError,
) -> int:
    """Return an integer of at least `at_least`."""
    if is_integer(value) and value >= at_least:
        return int(value)
    kind = "a positive integer" if at_least == 1 else f"an integer from {at_least}"
    raise error(f"`{name}` must be {kind}, got {value!r:.60}. {remedy}")


def is_number(value: Any) -> bool:
    """Return whether a value is a real number and not a boolean."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_)


def is_integer(value: Any) -> bool:
    """Return whether a value is an integer and not a boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool | np.bool_)


def check_sparse(X: Any, *, name: str) -> Any:
    """Refuse a sparse matrix whose indices lead outside; compiled loops trust them."""
    try:
        whole = X if X.format in ("csr", "csc", "bsr") else X.tocsr()
        # SciPy checks no pointers where the last is 0, and then reads beyond the end.
        if np.any(whole.indptr[1:] < whole.indptr[:-1]):
            raise ValueError("pointers to rows must not decrease")
        whole.check_format(full_check=True)
    except (ValueError, IndexError) as error:
        raise LinkspreadError(
            f"{name} must be a sparse matrix with indices inside its shape "
            f"{X.shape}, got another ({error}). Build it again from its entries."
        ) from error
    return X

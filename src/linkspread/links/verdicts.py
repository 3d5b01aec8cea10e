"""What people say of pairs, as weights: words, yes and no, signed numbers, ratings."""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from linkspread.ground.errors import LinkError

Array = np.ndarray

# What says must, and what says cannot beside it.
OPPOSITES = (("must", "cannot"), ("yes", "no"), ("y", "n"), ("true", "false"),
             ("same", "different"))  # fmt: skip
WORDS = {must: 1.0 for must, _ in OPPOSITES} | {no: -1.0 for _, no in OPPOSITES}
UNSURE = {"", "unsure", "?", "none", "nan", "null", "<na>", "nat"}


def read_verdicts(
    values: Sequence[Any], *, column: str, must_above: Any = None
) -> Array:
    """Return a weight for each verdict: above 0 must, below 0 cannot, NaN unsure."""
    numbers, words = _split(values, column)
    if must_above is None:
        numbers = _signed(numbers, column)
    else:
        line = _check_line(must_above)
        sides = [numbers > line, numbers < line]
        numbers = np.select(sides, [1.0, -1.0], default=np.nan)
    return np.where(np.isnan(numbers), words, numbers)


def read_strengths(values: Sequence[Any], *, column: str, said: Array) -> Array:
    """Return how much each verdict counts, which must be above 0 where one was said."""
    try:
        strengths = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise LinkError(
            f"weights in column {column!r} must be numbers ({error}). Correct them."
        ) from error
    bad = said & ~(np.isfinite(strengths) & (strengths > 0))
    if bad.any():
        raise LinkError(
            "weights beside verdicts must be finite and above 0, got "
            f"{strengths[bad][0]:g} in row {int(bad.argmax()) + 1:,} of column "
            f"{column!r}. The verdict tells must from cannot; write 1 for the usual "
            "weight."
        )
    return strengths


def _split(values: Sequence[Any], column: str) -> tuple[Array, Array]:
    """Return what numbers say and what words say, each NaN where it says nothing."""
    words = np.full(len(values), np.nan)
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return _check_finite(values.astype(np.float64), column), words
    numbers = words.copy()
    for row, value in enumerate(values):
        word = "" if value is None else str(value).strip().lower()
        if word in WORDS:
            words[row] = WORDS[word]
        elif word not in UNSURE:
            numbers[row] = _number(value, column, row)
    return _check_finite(numbers, column), words


def _signed(numbers: Array, column: str) -> Array:
    """Return numbers whose signs tell must from cannot; 0 beside 1 alone is no."""
    found = np.unique(numbers[~np.isnan(numbers)])
    if set(found.tolist()) <= {0.0, 1.0}:
        return np.where(numbers == 0, -1.0, numbers)
    low, high = found[0], found[-1]
    says_sign = set(found.tolist()) <= {-1.0, 0.0, 1.0}
    if len(found) > 1 and (low >= 0 or high <= 0) and not says_sign:
        line = f"{low + (high - low) / 2:g}"
        raise LinkError(
            "ratings and probabilities must come with the line between cannot and "
            f"must, got numbers from {low:g} to {high:g} in column {column!r}. Write "
            f"`must_above={line}` (--must-above {line} on the command line), or must "
            "and cannot, with weights in a column of their own named 'weight'."
        )
    if 0 in found:
        raise LinkError(
            "a verdict of 0 must stand beside 1 alone, where it means no, got numbers "
            f"from {low:g} to {high:g} in column {column!r}. Write unsure for neither, "
            "or leave zeros out with `must_above=0` (--must-above 0 on the command "
            "line)."
        )
    return numbers


def _check_finite(numbers: Array, column: str) -> Array:
    """Return numbers of which none is infinite."""
    if np.isinf(numbers).any():
        row = int(np.isinf(numbers).argmax())
        raise LinkError(
            f"verdicts must be finite, got {numbers[row]} in row {row + 1:,} of column "
            f"{column!r}. Write 1 for must and -1 for cannot."
        )
    return numbers


def _number(value: Any, column: str, row: int) -> float:
    """Return the number that a verdict is which is no word."""
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise LinkError(
            "verdicts must be must, cannot or unsure, yes or no, 1 or 0, or a weight, "
            f"got {value!r:.60} in row {row + 1:,} of column {column!r}. Correct it, "
            "or name the column that has them 'verdict' (FILE:left,right,verdict on "
            "the command line)."
        ) from error


def _check_line(must_above: Any) -> float:
    """Return the line between cannot and must."""
    is_number = isinstance(must_above, Real) and not isinstance(must_above, bool)
    if not is_number or not math.isfinite(must_above):
        raise LinkError(
            f"`must_above` must be a finite number, got {must_above!r:.60}. Give the "
            "line between cannot and must, such as 3 for one to five stars."
        )
    return float(must_above)

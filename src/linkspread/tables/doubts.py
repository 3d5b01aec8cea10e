"""Columns that may not be features: indexes, ids, labels, dates, very large numbers.

Columns with the largest numbers dominate all distances, and often are not features.
The user is warned, and decides.

>>> import numpy as np
>>> from linkspread.tables import Table
>>> from linkspread.tables.doubts import doubtful_columns
>>> rng = np.random.default_rng(0)
>>> values = np.column_stack([rng.random((50, 3)), rng.integers(1990, 2020, 50)])
>>> doubtful_columns(Table(values, ("a", "b", "c", "year")))
{'year': 'looks like a date and makes 100 % of all squared distances'}
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.tables.validation import N_SHOWN, Table

Array = np.ndarray

# Rows examined, and rows of the first, quick check of all columns.
MAX_ROWS = 100_000
N_HEAD = 200
# With fewer rows nothing is concluded from the values.
MIN_ROWS = 10
DOMINATING = 0.9
MAX_CLASSES = 20

INDEX_NAME = re.compile(r"Unnamed: \d+(_level_\d+)?|__index_level_\d+__|")
ID_NAME = re.compile(r"(?i:id|key|uuid|guid)")
# Compound names, which are not words of a vocabulary.
SURE_ID_NAME = re.compile(
    r".+[_. -](?i:id|key|uuid|guid)|.*[a-z0-9](Id|ID|Key|Uuid|UUID)"
)
DATE_WORDS = {"year", "date", "datetime", "timestamp"}
# Years, and seconds since 1970, of 1990 to 2100, and the same in smaller units.
UNITS = (1, 10**3, 10**6, 10**9)
SPANS = [(1900, 2100), *((631_152_000 * u, 4_102_444_800 * u) for u in UNITS)]


def doubtful_columns(table: Table) -> dict[str, str]:
    """Return the columns that may not be features, and why.

    Columns the user has named one by one are not doubted. Without names only a column
    that dominates all distances is found, by its place such as "column 7".
    """
    n_rows, n_columns = table.shape
    if table.chosen or n_columns < 2:
        return {}
    rows = np.arange(n_rows)
    if n_rows > MAX_ROWS:
        rows = np.linspace(0, n_rows - 1, MAX_ROWS).astype(np.intp)
    X = table.values if len(rows) == n_rows else table.values[rows]
    variances = _variances(X)
    reasons: dict[int, list[str]] = {}
    if table.names and not sparse.issparse(X) and np.any(variances > 0):
        varied = np.flatnonzero(variances > 0).tolist()
        reasons = _reasons(X, table.names, rows, varied)
    share = variances / (variances.sum() or 1.0)
    largest = int(share.argmax())
    if share[largest] > DOMINATING and np.count_nonzero(variances) > 1:
        reason = f"makes {100 * share[largest]:.0f} % of all squared distances"
        reasons.setdefault(largest, []).append(reason)
    names = table.names or [f"column {place}" for place in range(n_columns)]
    return {names[place]: " and ".join(reasons[place]) for place in sorted(reasons)}


def describe_doubts(
    table: Table, view: str, *, leave_out: Callable[[str, list[str]], str]
) -> str | None:
    """Return a warning about doubtful columns, None if there are none.

    ``leave_out(view, ["-a", "-b"])`` returns what to write to leave columns out.
    """
    reasons = doubtful_columns(table)
    if not reasons:
        return None
    shown = [
        f"{repr(name) if table.names else name} {why}"
        for name, why in list(reasons.items())[:N_SHOWN]
    ]
    more = len(reasons) - len(shown)
    rest = f", and {more:,} more" if more else ""
    them = "it" if len(reasons) == 1 else "them"
    remedy = f"Leave {them} out, or scale {them}."
    if table.names:
        written = leave_out(view, [f"-{name}" for name in reasons])
        remedy = f"Leave {them} out with {written}, or name the columns to use."
    return (
        f"view {view!r} may be misled by its columns: {', '.join(shown)}{rest}. "
        f"{remedy}"
    )


def _variances(X: Any) -> Array:
    """Return the variance of each column, in one pass."""
    if sparse.issparse(X):
        # The means of sparse columns are near 0, so there is no cancellation.
        means = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
        squares = np.asarray((X.multiply(X)).mean(axis=0, dtype=np.float64)).ravel()
        return np.maximum(squares - means**2, 0)
    sums = np.zeros((2, X.shape[1]))
    step = max(1, (1 << 20) // X.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(X), step):
            # Shifted by the first row, against cancellation of large numbers.
            block = X[start : start + step].astype(np.float64) - X[0]
            sums += block.sum(axis=0), np.einsum("ij,ij->j", block, block)
        means, squares = sums / len(X)
        return np.nan_to_num(np.maximum(squares - means**2, 0), posinf=0.0)


def _reasons(
    X: Array, names: tuple[str, ...], rows: Array, varied: list[int]
) -> dict[int, list[str]]:
    """Return the first reason why each doubtful column may not be a feature."""
    head, n_columns = X[:N_HEAD], len(varied)
    found: dict[int, list[str]] = {}
    # The values of few rows prove nothing.
    is_long = len(X) >= MIN_ROWS
    # Columns of whole numbers in the first rows; each is checked again before use.
    whole_heads = np.all(head == np.rint(head), axis=0)
    integers = [j for j in varied if whole_heads[j]]

    def are_few(places: list[int]) -> bool:
        """Return whether columns are exceptions in their table."""
        n = len(places)
        return 0 < n <= max(2, n_columns // 10) and 2 * n <= n_columns

    def is_whole(j: int) -> bool:
        return bool(np.all(X[:, j] == np.rint(X[:, j])))

    def doubt(places: Iterable[int], reason: str) -> None:
        for j in places:
            found.setdefault(j, [reason])

    few_integers = are_few(integers)
    doubt((j for j in varied if INDEX_NAME.fullmatch(names[j])), "counts the rows")
    if is_long:
        start = head - rows[:N_HEAD, np.newaxis]
        near = np.all(start == start[0], axis=0) & np.isin(start[0], (0, 1))
        counting = (
            j for j in varied if near[j] and np.all(X[:, j] - rows == start[0, j])
        )
        doubt(counting, "counts the rows")
    named = (j for j in varied if _is_date(names[j]) and np.median(X[:, j]) >= 1000)
    doubt(named, "looks like a date")
    if is_long:
        low, high = head.min(axis=0), head.max(axis=0)
        dates = [
            j
            for a, b in SPANS
            for j in integers
            if a <= low[j] and high[j] <= b
            if a <= X[:, j].min() and X[:, j].max() <= b and is_whole(j)
        ]
        doubt(dates if are_few(dates) else (), "looks like a date")
    n_values = {j: len(np.unique(head[:, j])) for j in integers}
    named = (
        j
        for j in integers
        if SURE_ID_NAME.fullmatch(names[j])
        or (ID_NAME.fullmatch(names[j]) and (few_integers or n_values[j] > MAX_CLASSES))
    )
    doubt(filter(is_whole, named), "looks like an id")
    if not is_long:
        return found
    distinct = [j for j in integers if n_values[j] == len(head)]
    ids = (j for j in distinct if _is_numbered(X[:, j], few_integers) and is_whole(j))
    doubt(ids if are_few(distinct) else (), "looks like an id")
    # Counts, TF-IDF and one-hot codes are mostly zeros; few distinct values are normal
    # there.
    is_sparse = np.mean(head[:, varied] == 0) > 0.5
    if not is_sparse and len(integers) <= 2 and n_columns - len(integers) >= 3:
        most = min(MAX_CLASSES, len(X) // 5)
        labels = (j for j in integers if len(np.unique(X[:, j])) <= most)
        doubt(filter(is_whole, labels), "looks like a label")
    return found


def _is_date(name: str) -> bool:
    """Return whether a column is named like year, release_date or createdAt."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    words = [word.lower() for word in words]
    return bool(DATE_WORDS & {*words}) or (len(words) > 1 and words[-1] == "at")


def _is_numbered(column: Array, few_integers: bool) -> bool:
    """Return whether whole numbers are all distinct, and not by chance."""
    values = np.unique(column)
    # Random numbers of such a short range would collide (birthday paradox). Those of a
    # long range need not, and are only unusual among fractions.
    meets = values[-1] - values[0] < len(values) ** 2 / 6
    return len(values) == len(column) and bool(meets or few_integers)

"""Columns that may not be features: indexes, ids, labels, dates, very large numbers.

Columns with the largest numbers dominate all distances, and often are not features.
The user is warned, and decides.

>>> import numpy as np
>>> from linkspread.tables import Table, doubtful_columns
>>> rng = np.random.default_rng(0)
>>> values = np.column_stack([rng.random((50, 3)), rng.integers(1990, 2020, 50)])
>>> doubtful_columns(Table(values, ("a", "b", "c", "year")))
{'year': 'looks like a date and makes 100 % of all squared distances'}
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.tables.frames import N_SHOWN, Table

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
YEARS = (1900, 2100)
# Seconds since 1970, of 1990 to 2100, and the same in smaller units.
EPOCH = (631_152_000, 4_102_444_800)
UNITS = (1, 10**3, 10**6, 10**9)


def doubtful_columns(table: Table) -> dict[str, str]:
    """Return the columns that may not be features, and why.

    Parameters
    ----------
    table : Table
        Columns the user has named one by one are not doubted. Without names only a
        column that dominates all distances is found.

    Returns
    -------
    reasons : dict from str to str
        By the name of the column, or its place such as "column 7".
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
        reasons = _Columns(X, table.names, rows, variances > 0).reasons()
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


class _Columns:
    """The named columns of a dense table, and the checks on them."""

    def __init__(
        self, X: Array, names: tuple[str, ...], rows: Array, varied: Array
    ) -> None:
        self.X, self.names, self.rows = X, names, rows
        self.varied = np.flatnonzero(varied).tolist()
        head = X[:N_HEAD]
        whole = np.all(head == np.rint(head), axis=0) & varied
        # Columns of whole numbers in the first rows; each is checked again before use.
        self.integers = np.flatnonzero(whole).tolist()
        self.few_integers = self._are_few(self.integers)
        # Counts, TF-IDF and one-hot codes are mostly zeros; few distinct values are
        # normal there.
        self.is_sparse = np.mean(head[:, varied] == 0) > 0.5

    def reasons(self) -> dict[int, list[str]]:
        """Return the first reason why each doubtful column may not be a feature."""
        found: dict[int, list[str]] = {}
        for by_name, by_values, reason in (
            (self._index_names, self._indexes, "counts the rows"),
            (self._date_names, self._dates, "looks like a date"),
            (self._id_names, self._ids, "looks like an id"),
            (list, self._labels, "looks like a label"),
        ):
            # The values of few rows prove nothing.
            more = by_values() if len(self.X) >= MIN_ROWS else []
            for place in [*by_name(), *more]:
                found.setdefault(place, [reason])
        return found

    def _are_few(self, places: Any) -> bool:
        """Return whether columns are exceptions in their table."""
        n_columns = len(self.varied)
        return (
            0 < len(places) <= max(2, n_columns // 10) and 2 * len(places) <= n_columns
        )

    def _is_whole(self, place: int) -> bool:
        """Return whether a column holds only whole numbers."""
        return bool(np.all(self.X[:, place] == np.rint(self.X[:, place])))

    def _index_names(self) -> list[int]:
        """Return columns that pandas names so if it saves an index."""
        return [j for j in self.varied if INDEX_NAME.fullmatch(self.names[j])]

    def _indexes(self) -> list[int]:
        """Return columns that count the rows from 0 or 1."""
        head, rows = self.X[:N_HEAD], self.rows[:N_HEAD, np.newaxis]
        start = head - rows
        near = np.all(start == start[0], axis=0) & np.isin(start[0], (0, 1))
        return [j for j in np.flatnonzero(near).tolist()
                if np.all(self.X[:, j] - self.rows == start[0, j])]  # fmt: skip

    def _date_names(self) -> list[int]:
        """Return columns named like year, release_date or createdAt, not scaled."""
        found = []
        for j in self.varied:
            words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", self.names[j])
            words = [word.lower() for word in words]
            is_date = DATE_WORDS & set(words) or (len(words) > 1 and words[-1] == "at")
            if is_date and np.median(self.X[:, j]) >= 1000:
                found.append(j)
        return found

    def _dates(self) -> list[int]:
        """Return columns of whole numbers that are years or times."""
        low, high = self.X[:N_HEAD].min(axis=0), self.X[:N_HEAD].max(axis=0)
        spans = [YEARS, *((EPOCH[0] * unit, EPOCH[1] * unit) for unit in UNITS)]
        found = [j for a, b in spans for j in self.integers
                 if a <= low[j] and high[j] <= b
                 and a <= self.X[:, j].min() and self.X[:, j].max() <= b
                 and self._is_whole(j)]  # fmt: skip
        return found if self._are_few(found) else []

    def _id_names(self) -> list[int]:
        """Return columns of whole numbers that are named like an id."""
        return [j for j in self.integers
                if (SURE_ID_NAME.fullmatch(self.names[j])
                    or (ID_NAME.fullmatch(self.names[j])
                        and (self.few_integers or self._has_many(j))))
                and self._is_whole(j)]  # fmt: skip

    def _ids(self) -> list[int]:
        """Return columns of whole numbers that all differ."""
        head = np.sort(self.X[:N_HEAD, self.integers], axis=0)
        differ = np.all(np.diff(head, axis=0) > 0, axis=0)
        distinct = [j for j, own in zip(self.integers, differ, strict=True) if own]
        few = self._are_few(distinct)
        return [j for j in distinct if self._is_numbered(j)] if few else []

    def _has_many(self, place: int) -> bool:
        """Return whether a column has too many values for small counts."""
        return len(np.unique(self.X[:N_HEAD, place])) > MAX_CLASSES

    def _is_numbered(self, place: int) -> bool:
        """Return whether whole numbers are all distinct, and not by chance."""
        values = np.unique(self.X[:, place])
        if len(values) < len(self.X) or not self._is_whole(place):
            return False
        # Random numbers of such a short range would collide (birthday paradox). Those
        # of a long range need not, and are only unusual among fractions.
        meets = values[-1] - values[0] < len(values) ** 2 / 6
        return bool(meets or self.few_integers)

    def _labels(self) -> list[int]:
        """Return columns of a few whole numbers among columns of fractions."""
        n_fractions = len(self.varied) - len(self.integers)
        if self.is_sparse or len(self.integers) > 2 or n_fractions < 3:
            return []
        most = min(MAX_CLASSES, len(self.X) // 5)
        return [j for j in self.integers if self._is_whole(j)
                and len(np.unique(self.X[:, j])) <= most]  # fmt: skip

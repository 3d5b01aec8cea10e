"""Judged pairs as they arrive: tuples, arrays, DataFrames, CSV or parquet files."""

from pathlib import Path
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from linkspread.exceptions import LinkError
from linkspread.links.files import WORDS, read_columns
from linkspread.links.items import as_ids

__all__ = ["PairTable", "read_pairs"]

Array = np.ndarray


class PairTable:
    """Ids of both sides and a weight for each judged pair.

    Parameters
    ----------
    left, right : ndarray of shape (n,)
        Ids of the items: integers or strings.
    weights : array-like of shape (n,)
        Positive for must, negative for cannot; numbers, or "must" and "cannot".
    positions : tuple of two ndarray of shape (n,), default=None
        Rows and columns of the items, once their views are known.
    by_row : bool, default=False
        Whether the ids are positions even in views whose items have other ids.
    """

    def __init__(
        self,
        left: Array,
        right: Array,
        weights: Any,
        positions: tuple[Array, Array] | None = None,
        *,
        by_row: bool = False,
    ) -> None:
        self.left = left
        self.right = right
        self.weights = _check_weights(weights)
        self.positions = positions
        self.by_row = by_row

    def __len__(self) -> int:
        return len(self.weights)

    def known_positions(self, between: tuple[str, str]) -> tuple[Array, Array]:
        """Return the rows and columns of the pairs, which must be known.

        Parameters
        ----------
        between : tuple of two str
            Names of the views, for the message.

        Returns
        -------
        rows, columns : ndarray of shape (n,)
        """
        if self.positions is None:
            raise LinkError(
                f"pairs between {between[0]!r} and {between[1]!r} must be resolved to "
                "positions, and are known by ids only. Call "
                "`links.resolve({view: n_items_or_ids, ...})` first."
            )
        return self.positions

    def take(self, chosen: Array) -> "PairTable":
        """Return some of the pairs.

        Parameters
        ----------
        chosen : ndarray of bool of shape (n,)

        Returns
        -------
        table : PairTable
        """
        positions = self.positions
        if positions is not None:
            positions = positions[0][chosen], positions[1][chosen]
        left, right, weights = (
            self.left[chosen],
            self.right[chosen],
            self.weights[chosen],
        )
        return PairTable(left, right, weights, positions, by_row=self.by_row)

    def turned(self) -> "PairTable":
        """Return the same pairs with left and right exchanged."""
        positions = None if self.positions is None else self.positions[::-1]
        return PairTable(
            self.right, self.left, self.weights, positions, by_row=self.by_row
        )


def read_pairs(pairs: Any, *, between: tuple[str, str]) -> PairTable:
    """Read judged pairs from any of the accepted forms.

    Parameters
    ----------
    pairs : sequence of tuples, ndarray, DataFrame, str or Path
        See :meth:`linkspread.links.Links.from_pairs`.
    between : tuple of two str
        Names of the views, which are looked for among the columns of tables.

    Returns
    -------
    table : PairTable
    """
    if isinstance(pairs, str | Path):
        columns = read_columns(Path(pairs))
    elif nw.dependencies.is_into_dataframe(pairs):
        columns = _from_frame(pairs)
    elif isinstance(pairs, np.ndarray):
        columns = _from_array(pairs)
    else:
        columns = _from_rows(pairs)
    return _from_columns(columns, between)


def _from_frame(table: Any) -> dict[str, Any]:
    """Return the columns of a DataFrame of any library."""
    try:
        frame = nw.from_native(table, eager_only=True)
        # pandas numbers the columns of a frame that was made without names.
        return {str(column.name): column.to_numpy() for column in frame.iter_columns()}
    except nw.exceptions.DuplicateError as error:
        raise LinkError(
            "the columns of a table of pairs must have different names, got "
            f"{list(getattr(table, 'column_names', getattr(table, 'columns', [])))}. "
            "Rename one of those that are alike."
        ) from error


def _from_array(rows: Array) -> dict[str, Any]:
    """Return the columns of an array with two or three of them."""
    if rows.ndim != 2 or rows.shape[1] not in (2, 3):
        raise LinkError(
            "an array of pairs must have two columns of ids and perhaps one of "
            f"weights, got shape {rows.shape}. Give one row per pair."
        )
    names = ("left", "right", "weight")[: rows.shape[1]]
    return dict(zip(names, rows.T, strict=True))


def _from_rows(rows: Any) -> dict[str, Any]:
    """Return the columns of tuples of two or three values."""
    try:
        # A string is a sequence too, but "ab" is no pair of a and b.
        rows = [(row,) if isinstance(row, str) else tuple(row) for row in rows]
    except TypeError as error:
        raise LinkError(
            "pairs must be a list of tuples, an array, a DataFrame or the path of a "
            f"file, got {rows!r:.60}. Write [(left, right, 1.0), ...]."
        ) from error
    widths = {len(row) for row in rows}
    if not widths <= {2, 3}:
        raise LinkError(
            f"pairs must have two ids and perhaps a weight each, got rows of "
            f"{', '.join(map(str, sorted(widths)))} values. Write (left, right, 1.0) "
            "for a must-link and (left, right, -1.0) for a cannot-link."
        )
    rows = [(*row, 1.0)[:3] for row in rows]
    names = ("left", "right", "weight")
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _from_columns(columns: dict[str, Any], between: tuple[str, str]) -> PairTable:
    """Pick the two id columns and the weight column of a table."""
    left, right = _id_columns(list(columns), between)
    others = [name for name in columns if name not in (left, right)]
    weight = "weight" if "weight" in others else next(iter(others), None)
    weights = np.ones(len(columns[left])) if weight is None else columns[weight]
    left_ids, right_ids = (
        as_ids(columns[name], view)
        for name, view in zip((left, right), between, strict=True)
    )
    return PairTable(left_ids, right_ids, weights)


def _id_columns(names: list[str], between: tuple[str, str]) -> tuple[str, str]:
    """Return the names of the columns of the left and of the right ids."""
    if between[0] != between[1] and set(between) <= set(names):
        return between
    first = [name for name in names if name != "weight"][:2]
    if len(first) < 2:
        raise LinkError(
            f"a table of pairs must have a column for each side, got {names}. "
            f"Name them {between[0]!r} and {between[1]!r}, with 'weight' as a third."
        )
    places = zip(between, first, strict=True)
    if between[0] != between[1] and any(v in names and v != n for v, n in places):
        raise LinkError(
            f"the columns of a table of pairs must be named {between[0]!r} and "
            f"{between[1]!r}, or have these ids in the first two in this order, got "
            f"{names}. Name both columns after their views."
        )
    return first[0], first[1]


def _check_weights(weights: Any) -> Array:
    """Return weights as finite numbers other than zero."""
    if not (isinstance(weights, np.ndarray) and weights.dtype.kind in "iuf"):
        weights = [_weight(weight) for weight in weights]
    values = np.asarray(weights, dtype=np.float64)
    bad = ~np.isfinite(values) | (values == 0)
    if bad.any():
        raise LinkError(
            f"weights of links must be finite and not 0, got {values[bad][0]} in "
            f"{int(bad.sum()):,} of {len(values):,}. Write 1 for must and -1 for "
            "cannot (0 does not mean cannot)."
        )
    return values


def _weight(value: Any) -> float:
    """Return the number that a weight is or that a word stands for."""
    if isinstance(value, str) and value.strip().lower() in WORDS:
        return WORDS[value.strip().lower()]
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise LinkError(
            f"weights of links must be numbers, 'must' or 'cannot', got {value!r:.60}. "
            "Write 1 for must and -1 for cannot."
        ) from error

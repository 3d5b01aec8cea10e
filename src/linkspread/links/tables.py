"""Judged pairs as they arrive: tuples, arrays, DataFrames, CSV or parquet files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from linkspread.ground.errors import LinkError
from linkspread.links.items import as_ids
from linkspread.links.verdicts import OPPOSITES, read_strengths, read_verdicts
from linkspread.storage import PairColumns
from linkspread.tables import read_columns

Array = np.ndarray

# Names of the column of verdicts, in the order in which they are looked for; "weight"
# is one too where it stands alone, and else says how much each verdict counts.
VERDICTS = ("verdict", "judgement", "judgment", "label", "link")
WEIGHT = "weight"
# What pandas calls a column that has no name, such as the index of a saved table.
UNNAMED = ("Unnamed: ", "__index_level_")
PLACES = ("left", "right", "verdict", WEIGHT)


class PairTable:
    """Ids of both sides and a weight for each judged pair."""

    def __init__(
        self,
        left: Array,
        right: Array,
        weights: Any,
        positions: tuple[Array, Array] | None = None,
        *,
        by_row: bool = False,
        n_unsure: int = 0,
    ) -> None:
        self.left = left
        self.right = right
        self.weights = _check_weights(weights)
        self.positions = positions
        self.by_row = by_row
        self.n_unsure = n_unsure

    def __len__(self) -> int:
        return len(self.weights)

    def known_positions(self, between: tuple[str, str]) -> tuple[Array, Array]:
        """Return the rows and columns of the pairs, which must be known."""
        if self.positions is None:
            raise LinkError(
                f"pairs between {between[0]!r} and {between[1]!r} must be resolved to "
                "positions, and are known by ids only. Call "
                "`links.resolve({view: n_items_or_ids, ...})` first."
            )
        return self.positions

    def take(self, chosen: Array) -> "PairTable":
        """Return some of the pairs."""
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


def read_pairs(
    pairs: Any, *, between: tuple[str, str], must_above: float | None = None
) -> PairTable:
    """Read judged pairs from any form that `Links.from_pairs` takes."""
    if isinstance(pairs, PairColumns):  # of the link store: signed weights, no verdicts
        _check_some(len(pairs.weight), len(pairs.weight), between)
        ids = as_ids(pairs.left, between[0]), as_ids(pairs.right, between[1])
        return PairTable(*ids, pairs.weight)
    chosen: tuple[str, ...] = ()
    if isinstance(pairs, str | Path):
        columns = read_file(pairs)
    elif nw.dependencies.is_into_dataframe(pairs):
        columns = _from_frame(pairs)
    else:
        is_array = isinstance(pairs, np.ndarray)
        columns = _from_array(pairs) if is_array else _from_rows(pairs)
        # By place: a view may be called "right" and stand on the left.
        chosen = tuple(columns)
    return pairs_of_columns(columns, between, chosen=chosen, must_above=must_above)


def read_file(path: str | Path) -> dict[str, Any]:
    """Return the columns of a CSV, TSV or parquet file of links or labels."""
    return read_columns(path, error=LinkError, is_data=_begins_with_data)


def _begins_with_data(rows: list[list[str]]) -> bool:
    """Tell whether the line that should be a header is a judged pair already."""
    row, *others = rows
    numbered = len(row) > 1 and row[0].isdecimal() and row[1].isdecimal()
    if numbered or len(row) < 3:
        return numbered
    try:
        float(row[2])
        return True
    except ValueError:
        # A column may be called "same", but then it does not say same or different.
        verdicts = next((two for two in OPPOSITES if _third(row) in two), ())
        return bool(verdicts) and (
            not others or any(_third(other) in verdicts for other in others)
        )


def _third(row: list[str]) -> str:
    """Return the third value of a line, as verdicts are compared."""
    return row[2].strip().lower() if len(row) > 2 else ""


def pairs_of_columns(
    columns: Mapping[str, Any],
    between: tuple[str, str],
    *,
    chosen: Sequence[str] = (),
    must_above: float | None = None,
) -> PairTable:
    """Read judged pairs from columns: those chosen, or those whose names say so."""
    left, right, verdict, weight = _choose_columns(list(columns), between, chosen)
    said = np.ones(len(columns[left]))
    if verdict is not None:
        said = read_verdicts(columns[verdict], column=verdict, must_above=must_above)
    sure = ~np.isnan(said)
    if weight is not None:
        said = said * read_strengths(columns[weight], column=weight, said=sure)
    _check_some(int(sure.sum()), len(sure), between)
    return PairTable(
        as_ids(_take(columns[left], sure), between[0]),
        as_ids(_take(columns[right], sure), between[1]),
        said[sure],
        n_unsure=int(np.sum(~sure)),
    )


def _check_some(n_sure: int, n_rows: int, between: tuple[str, str]) -> None:
    """Refuse a table without any pair that somebody is sure of."""
    if not n_sure:
        got = f"{n_rows:,} that are unsure or empty" if n_rows else "none"
        raise LinkError(
            f"there must be at least one pair between {between[0]!r} and "
            f"{between[1]!r}, got {got}. Judge a few pairs first."
        )


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
    """Return the columns of an array with two to four of them."""
    if rows.ndim != 2 or not 2 <= rows.shape[1] <= len(PLACES):
        raise LinkError(
            "an array of pairs must have two columns of ids and perhaps one of "
            f"verdicts and one of weights, got shape {rows.shape}. Give one row per "
            "pair."
        )
    return dict(zip(PLACES, rows.T, strict=False))


def _from_rows(rows: Any) -> dict[str, Any]:
    """Return the columns of tuples of two to four values."""
    try:
        # A string is a sequence too, but "ab" is no pair of a and b.
        rows = [(row,) if isinstance(row, str) else tuple(row) for row in rows]
    except TypeError as error:
        raise LinkError(
            "pairs must be a list of tuples, an array, a DataFrame or the path of a "
            f"file, got {rows!r:.60}. Write [(left, right, 1.0), ...]."
        ) from error
    widths = {len(row) for row in rows}
    if not widths <= {2, 3, 4}:
        raise LinkError(
            f"pairs must have two ids and perhaps a verdict and a weight each, got "
            f"rows of {', '.join(map(str, sorted(widths)))} values. Write (left, "
            'right, "must") for a must-link and (left, right, "cannot") for a '
            "cannot-link."
        )
    rows = [(*row, 1.0, 1.0) for row in rows]
    names = PLACES[: max(widths, default=2)]
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _choose_columns(
    names: list[str], between: tuple[str, str], chosen: Sequence[str]
) -> tuple[str, str, str | None, str | None]:
    """Return the columns of both ids, of the verdict and of the weight, if any."""
    if chosen:
        _check_chosen(names, chosen)
        given = dict(zip(PLACES, chosen, strict=False))
        return chosen[0], chosen[1], given.get("verdict"), given.get(WEIGHT)
    left, right = _id_columns(names, between)
    others = [name for name in _named(names) if name not in (left, right)]
    known = {name.lower(): name for name in reversed(others)}
    verdict = next((known[name] for name in VERDICTS if name in known), None)
    if verdict is None:
        return left, right, known.get(WEIGHT) or next(iter(others), None), None
    return left, right, verdict, known.get(WEIGHT)


def _check_chosen(names: list[str], chosen: Sequence[str]) -> None:
    """Refuse columns that are not there, or too few or too many of them."""
    if not 2 <= len(chosen) <= len(PLACES):
        raise LinkError(
            "the columns of pairs must be two of ids and perhaps one of verdicts and "
            f"one of weights, got {', '.join(map(repr, chosen))}. Write "
            "FILE:left,right,verdict."
        )
    for name in chosen:
        if name not in names:
            raise LinkError(
                f"the table must have the column {name!r} for the pairs, and has "
                f"{', '.join(map(repr, names))}. Name one of these."
            )


def _id_columns(names: list[str], between: tuple[str, str]) -> tuple[str, str]:
    """Return the columns of both ids: named after the views, or the first two."""
    if between[0] != between[1] and set(between) <= set(names):
        return between
    said = *VERDICTS, WEIGHT
    first = [name for name in _named(names) if name.lower() not in said][:2]
    places = zip(between, first, strict=False)
    mixed = between[0] != between[1] and any(v in names and v != n for v, n in places)
    if len(first) < 2 or mixed:
        raise LinkError(
            f"a table of pairs must have a column named {between[0]!r} and one named "
            f"{between[1]!r}, or these ids in its first two columns in this order, and "
            f"has {', '.join(map(repr, names)) or 'none'}. Name the columns after "
            "their views (FILE:left,right,verdict on the command line)."
        )
    return first[0], first[1]


def _named(names: list[str]) -> list[str]:
    """Return the columns that somebody named: a saved index is no id or verdict."""
    return [name for name in names if name and not name.startswith(UNNAMED)]


def _take(column: Any, chosen: Array) -> Any:
    """Return some values of a column."""
    if isinstance(column, np.ndarray):
        return column[chosen]
    return [value for value, own in zip(column, chosen, strict=True) if own]


def _check_weights(weights: Any) -> Array:
    """Return weights as finite numbers other than zero."""
    values = np.asarray(weights, dtype=np.float64)
    bad = ~np.isfinite(values) | (values == 0)
    if bad.any():
        raise LinkError(
            f"weights of links must be finite and not 0, got {values[bad][0]} in "
            f"{int(bad.sum()):,} of {len(values):,}. Write 1 for must and -1 for "
            "cannot."
        )
    return values

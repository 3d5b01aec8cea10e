"""Reading of labels and judged pairs: tuples, arrays, DataFrames, CSV or parquet files.

Verdicts become weights: words, signed numbers, ratings.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from pathlib import Path
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from linkspread.ground.checks import is_number
from linkspread.ground.errors import LinkError
from linkspread.links.labels import class_names
from linkspread.links.pairs import (
    REMEDY,
    Items,
    PairTable,
    ViewPair,
    as_ids,
    list_first,
    with_positions,
)
from linkspread.storage import PairColumns
from linkspread.tables.files import naming_path, read_columns

Array = np.ndarray

# Names of the column of verdicts, by precedence. Without any of them "weight" holds
# signed verdicts; beside one it holds how much each verdict counts.
VERDICTS = ("verdict", "judgement", "judgment", "label", "link")
WEIGHT = "weight"
# Names that pandas gives unnamed columns, such as the index of a saved table.
UNNAMED = ("Unnamed: ", "__index_level_")
PLACES = ("left", "right", "verdict", WEIGHT)
# Words for must and for cannot.
OPPOSITES = (("must", "cannot"), ("yes", "no"), ("y", "n"), ("true", "false"),
             ("same", "different"))  # fmt: skip
WORDS = {must: 1.0 for must, _ in OPPOSITES} | {no: -1.0 for _, no in OPPOSITES}
UNSURE = {"", "unsure", "?", "none", "nan", "null", "<na>", "nat"}


def read_pairs(
    pairs: Any, *, between: ViewPair, must_above: float | None = None
) -> PairTable:
    """Read judged pairs from any form that `Links.from_pairs` takes."""
    if isinstance(pairs, PairColumns):  # of the link store: signed weights, no verdicts
        _check_some(len(pairs.weight), len(pairs.weight), between)
        ids = as_ids(pairs.left, between[0]), as_ids(pairs.right, between[1])
        return PairTable(*ids, pairs.weight)
    if isinstance(pairs, str | Path):
        return pairs_of_columns(read_file(pairs), between, must_above=must_above)
    if nw.dependencies.is_into_dataframe(pairs):
        return pairs_of_columns(_from_frame(pairs), between, must_above=must_above)
    columns = _from_rows(pairs)
    # By position: a view may be named "right" and be on the left.
    return pairs_of_columns(
        columns, between, chosen=tuple(columns), must_above=must_above
    )


def read_file(path: str | Path) -> dict[str, Any]:
    """Return the columns of a CSV, TSV or parquet file of links or labels."""
    return read_columns(path, error=LinkError, is_data=_begins_with_data)


def _begins_with_data(rows: list[list[str]]) -> bool:
    """Return whether the first row is a judged pair instead of a header."""
    row = rows[0]
    numbered = len(row) > 1 and row[0].isdecimal() and row[1].isdecimal()
    if numbered or len(row) < 3:
        return numbered
    try:
        float(row[2])
        return True
    except ValueError:
        # A header may be named "same", but then its column has other words.
        first, *others = [own[2].strip().lower() for own in rows if len(own) > 2]
        verdicts = next((two for two in OPPOSITES if first in two), ())
        return first in verdicts and (
            len(rows) == 1 or any(other in verdicts for other in others)
        )


def pairs_of_columns(
    columns: Mapping[str, Any],
    between: ViewPair,
    *,
    chosen: Sequence[str] = (),
    must_above: float | None = None,
) -> PairTable:
    """Read judged pairs from chosen columns, or by the names of columns."""
    places = _choose_columns(list(columns), between, chosen)
    left, right = columns[places["left"]], columns[places["right"]]
    said, verdict, weight = np.ones(len(left)), places["verdict"], places[WEIGHT]
    if verdict is not None:
        said = read_verdicts(columns[verdict], column=verdict, must_above=must_above)
    sure = ~np.isnan(said)
    if weight is not None:
        said = said * _read_strengths(columns[weight], column=weight, said=sure)
    _check_some(int(sure.sum()), len(sure), between)
    ids = as_ids(_take(left, sure), between[0]), as_ids(_take(right, sure), between[1])
    return PairTable(*ids, said[sure], n_unsure=int(np.sum(~sure)))


def _check_some(n_sure: int, n_rows: int, between: ViewPair) -> None:
    """Refuse a table without any must or cannot."""
    if not n_sure:
        got = f"{n_rows:,} unsure or empty ones" if n_rows else "none"
        raise LinkError(
            f"there must be at least one pair between {between[0]!r} and "
            f"{between[1]!r}, got {got}. Judge a few pairs first."
        )


def _from_frame(table: Any) -> dict[str, Any]:
    """Return the columns of a DataFrame of any library."""
    try:
        frame = nw.from_native(table, eager_only=True)
        # pandas numbers columns without names.
        return {str(column.name): column.to_numpy() for column in frame.iter_columns()}
    except nw.exceptions.DuplicateError as error:
        raise LinkError(
            "the columns of a table of pairs must have different names, got "
            f"{list(getattr(table, 'column_names', getattr(table, 'columns', [])))}. "
            "Rename the repeated ones."
        ) from error


def _from_rows(rows: Any) -> dict[str, Any]:
    """Return the columns of tuples, or of an array, of two to four values."""
    if isinstance(rows, np.ndarray):
        if rows.ndim != 2 or not 2 <= rows.shape[1] <= len(PLACES):
            raise LinkError(
                "an array of pairs must have two columns of ids and optionally one of "
                f"verdicts and one of weights, got shape {rows.shape}. Give one row "
                "per pair."
            )
        return dict(zip(PLACES, rows.T, strict=False))
    try:
        # A string is a sequence, too, but "ab" is not a pair of a and b.
        rows = [(row,) if isinstance(row, str) else tuple(row) for row in rows]
    except TypeError as error:
        raise LinkError(
            "pairs must be a list of tuples, an array, a DataFrame or the path of a "
            f"file, got {rows!r:.60}. Write [(left, right, 1.0), ...]."
        ) from error
    widths = {len(row) for row in rows}
    if not widths <= {2, 3, 4}:
        raise LinkError(
            "pairs must have two ids and optionally a verdict and a weight, got rows "
            f"of {', '.join(map(str, sorted(widths)))} values. Write (left, right, "
            '"must") or (left, right, "cannot").'
        )
    rows = [(*row, 1.0, 1.0) for row in rows]
    names = PLACES[: max(widths, default=2)]
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def _choose_columns(
    names: list[str], between: ViewPair, chosen: Sequence[str]
) -> dict[str, Any]:
    """Return the columns of both ids, and None or those of verdicts and weights."""
    if chosen:
        if not 2 <= len(chosen) <= len(PLACES) or not set(chosen) <= set(names):
            raise LinkError(
                "columns of pairs must be two of ids and optionally one of verdicts "
                f"and one of weights, got {', '.join(map(repr, chosen))} of a table of "
                f"{', '.join(map(repr, names))}. Write FILE:left,right,verdict."
            )
        return dict.fromkeys(PLACES) | dict(zip(PLACES, chosen, strict=False))
    # A saved index is not an id or a verdict.
    named = [name for name in names if name and not name.startswith(UNNAMED)]
    left, right = _id_columns(names, named, between)
    others = [name for name in named if name not in (left, right)]
    known = {name.lower(): name for name in reversed(others)}
    verdict = next((known[name] for name in VERDICTS if name in known), None)
    weight = known.get(WEIGHT)
    if verdict is None:
        verdict, weight = weight or next(iter(others), None), None
    return {"left": left, "right": right, "verdict": verdict, WEIGHT: weight}


def _id_columns(names: list[str], named: list[str], between: ViewPair) -> ViewPair:
    """Return the columns of both ids: named after the views, or the first two."""
    if between[0] != between[1] and set(between) <= set(names):
        return between
    first = [name for name in named if name.lower() not in (*VERDICTS, WEIGHT)][:2]
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


def _take(column: Any, chosen: Array) -> Any:
    """Return some values of a column."""
    if isinstance(column, np.ndarray):
        return column[chosen]
    return list(compress(column, chosen))


def read_verdicts(
    values: Sequence[Any], *, column: str, must_above: Any = None
) -> Array:
    """Return a weight for each verdict: above 0 must, below 0 cannot, NaN unsure."""
    words = np.full(len(values), np.nan)
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
    else:
        numbers = words.copy()
        for row, value in enumerate(values):
            word = "" if value is None else str(value).strip().lower()
            if word in WORDS:
                words[row] = WORDS[word]
            elif word not in UNSURE:
                numbers[row] = _as_number(value, column, row)
    if np.isinf(numbers).any():
        row = int(np.isinf(numbers).argmax())
        raise LinkError(
            f"verdicts must be finite, got {numbers[row]} in row {row + 1:,} of column "
            f"{column!r}. Write 1 for must and -1 for cannot."
        )
    if must_above is None:
        numbers = _signed(numbers, column)
    else:
        _check_threshold(must_above)
        sides = [numbers > must_above, numbers < must_above]
        numbers = np.select(sides, [1.0, -1.0], default=np.nan)
    return np.where(np.isnan(numbers), words, numbers)


def _as_number(value: Any, column: str, row: int) -> float:
    """Return a verdict as a number."""
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise LinkError(
            "verdicts must be must, cannot or unsure, yes or no, 1 or 0, or a weight, "
            f"got {value!r:.60} in row {row + 1:,} of column {column!r}. Correct it, "
            "or name the column of verdicts 'verdict'."
        ) from error


def _signed(numbers: Array, column: str) -> Array:
    """Return numbers with signs for must and cannot; of only 0 and 1, 0 is cannot."""
    found = np.unique(numbers[~np.isnan(numbers)])
    if set(found.tolist()) <= {0.0, 1.0}:
        return np.where(numbers == 0, -1.0, numbers)
    low, high = found[0], found[-1]
    says_sign = low < 0 < high or set(found.tolist()) <= {-1.0, 0.0}
    if len(found) > 1 and not says_sign:
        line = f"{low + (high - low) / 2:g}"
        raise LinkError(
            "ratings and probabilities must come with the threshold between cannot and "
            f"must, got numbers from {low:g} to {high:g} in column {column!r}. Write "
            f"`must_above={line}` (--must-above {line} on the command line), or must "
            "and cannot, with weights in a separate column named 'weight'."
        )
    if 0 in found:
        raise LinkError(
            "a verdict of 0 must occur with 1 only, where it means no, got numbers "
            f"from {low:g} to {high:g} in column {column!r}. Write unsure for neither, "
            "or `must_above=0` (--must-above 0)."
        )
    return numbers


def _check_threshold(must_above: Any) -> None:
    """Refuse a threshold between cannot and must that is no finite number."""
    if not is_number(must_above) or not math.isfinite(must_above):
        raise LinkError(
            f"`must_above` must be a finite number, got {must_above!r:.60}. Give the "
            "threshold between cannot and must, such as 3 for one to five stars."
        )


def _read_strengths(values: Sequence[Any], *, column: str, said: Array) -> Array:
    """Return the weights of verdicts, positive for must and cannot."""
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
            f"{column!r}. The verdict gives must or cannot; write 1 for the usual one."
        )
    return strengths


def read_judged(
    path: Path,
    items: Mapping[str, Items],
    *,
    views: Sequence[str] = (),
    columns: Sequence[str] = (),
    must_above: float | None = None,
    skip_unknown: bool = False,
) -> tuple[ViewPair, PairTable, str]:
    """Read a file of judged pairs; return its views, pairs of items, and a note.

    Without `views`, the names of the columns say which two they are.
    """
    table = read_file(path)
    with naming_path(path):
        found = [view for view in items if view in table]
        between = tuple(views or (found if len(found) == 2 else items))
        if len(between) != 2 or not set(between) <= items.keys():
            got = between if views else tuple(table)
            raise LinkError(
                "a table of pairs must name two of the views "
                f"{', '.join(map(repr, items))}, got {', '.join(map(repr, got))}. "
                "Write text,image=FILE with the names of two views."
            )
        pairs = pairs_of_columns(table, between, chosen=columns, must_above=must_above)
        unknown = "skip" if skip_unknown else "raise"
        ((_, placed),), skipped = with_positions(
            [(between, pairs)], items, unknown=unknown
        )
    note = f"{path}: {skipped}" if skipped else ""
    return between, replace(placed, positions=None), note


def read_labels(
    path: Path,
    items: Items,
    *,
    columns: Sequence[str] = (),
    skip_unknown: bool = False,
) -> tuple[Array, str]:
    """Read a file of labels; return one for each item, "" unknown, and a note."""
    table = read_file(path)
    with naming_path(path):
        names, view = list(table), items.view
        id_column = next((name for name in ("id", view) if name in names), names[0])
        others = [name for name in names if name != id_column]
        chosen = columns or [id_column, *(["label"] if "label" in others else others)]
        if len(chosen) < 2 or len(columns) not in (0, 2) or not set(chosen) <= {*names}:
            raise LinkError(
                "a table of labels must have a column of ids and one of labels, got "
                f"{', '.join(map(repr, columns or names))} of "
                f"{', '.join(map(repr, names))}. Write FILE:id,label with the names "
                "of two columns."
            )
        ids = as_ids(table[chosen[0]], view)
        labels = class_names(table[chosen[1]], view=view)
        known, note = items.contains(ids), ""
        if not skip_unknown or not known.any():
            items.positions(ids, what="labels", remedy=REMEDY)
        elif not known.all():
            unknown = [repr(i) for i in dict.fromkeys(ids[~known].tolist())]
            note = (
                f"{path}: {np.sum(~known):,} of {len(ids):,} labels are of items that "
                f"view {view!r} does not have and were skipped: {list_first(unknown)}."
            )
        return labels_in_rows(ids[known], labels[known], items), note


def labels_in_rows(ids: Array, labels: Array, items: Items) -> Array:
    """Return labels in the rows of their items, empty for all others."""
    placed = np.full(items.n_items, "", dtype=object)
    rows = items.positions(ids).tolist()
    for row, id, label in zip(rows, ids.tolist(), labels.tolist(), strict=True):
        if label and placed[row] not in ("", label):
            raise LinkError(
                f"an item must have one label, but {id!r} of view {items.view!r} is "
                f"{placed[row]!r} and {label!r}. Keep one of the rows."
            )
        placed[row] = label or placed[row]
    return placed.astype(str)

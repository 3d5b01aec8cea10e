"""Judged pairs of a table: two ids and perhaps a verdict or a weight."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from linkspread.cli.input_columns import choose_column
from linkspread.cli.input_places import Place
from linkspread.cli.input_tables import naming_file
from linkspread.exceptions import LinkError, UnknownItemError
from linkspread.links import Items
from linkspread.links.files import read_columns

__all__ = ["JudgedTable", "check_known", "read_judged"]

ViewPair = tuple[str, str]
Pair = tuple[Any, Any, float]

MUST = {"must", "yes", "y", "true", "same"}
CANNOT = {"cannot", "no", "n", "false", "different"}
UNSURE = {"", "unsure", "?", "none", "nan", "null"}
# Names of the third column, in the order in which they are looked for.
VERDICTS = ("weight", "verdict", "judgement", "judgment", "label", "link")
N_SHOWN = 3


class JudgedTable(NamedTuple):
    """Judged pairs of two views.

    Attributes
    ----------
    between : tuple of two str
    pairs : list of (left id, right id, weight)
        Ids as the views have them; above 0 must, below 0 cannot.
    n_unsure : int
        Rows that say nothing and were left out.
    """

    between: ViewPair
    pairs: list[Pair]
    n_unsure: int


def read_judged(place: Place, items: Mapping[str, Items]) -> JudgedTable:
    """Read judged pairs.

    Parameters
    ----------
    place : Place
        Of a CSV, TSV or parquet file; its columns are the ids of both sides and
        perhaps the verdict.
    items : mapping from str to Items
        The items of all views.

    Returns
    -------
    table : JudgedTable
    """
    columns = read_columns(place.path)
    names = list(columns)
    with naming_file(place.path):
        between = _choose_views(place.views, names, list(items))
        left, right, verdict = _choose_columns(place.columns, names, between)
        weights = _weights(columns[verdict], verdict) if verdict else None
        sides = [
            check_known(columns[column], items[view], column)
            for column, view in zip((left, right), between, strict=True)
        ]
        n_rows = len(columns[left])
        said = weights or [1.0] * n_rows
        pairs = [
            (one, other, weight)
            for one, other, weight in zip(*sides, said, strict=True)
            if weight is not None
        ]
        if not pairs:
            raise LinkError(
                f"there must be at least one judged pair, got {n_rows:,} rows of which "
                f"{n_rows:,} are unsure or empty. Judge a few pairs first."
            )
    return JudgedTable(between, pairs, n_rows - len(pairs))


def check_known(ids: Sequence[Any], items: Items, column: str) -> list[Any]:
    """Return ids as a view has them, or say which of them it has not."""
    texts = np.array(["" if i is None else str(i) for i in ids])
    known = items.contains(texts) if len(texts) else np.zeros(0, dtype=bool)
    if not known.all():
        unknown = np.flatnonzero(~known)
        counted = Counter(texts[unknown].tolist())
        shown = ", ".join(map(repr, list(counted)[:N_SHOWN]))
        more = f" and {len(counted) - N_SHOWN:,} more" if len(counted) > N_SHOWN else ""
        have = ", ".join(map(repr, items.ids[:N_SHOWN].tolist()))
        raise UnknownItemError(
            f"column {column!r} must hold ids of view {items.view!r}, which has none "
            f"called {shown}{more}, the first in row {unknown[0] + 1:,}, "
            f"{len(unknown):,} of {len(texts):,} rows in all. Its {items.n_items:,} "
            f"ids are such as {have}; correct the table, or name the column of the ids "
            "with --id-column."
        )
    return items.ids[items.positions(texts)].tolist() if len(texts) else []


def _choose_views(
    given: tuple[str, ...], names: list[str], views: list[str]
) -> ViewPair:
    """Return the two views that a table is about."""
    for view in given:
        if view not in views:
            raise LinkError(
                "`--links` must be about views at hand, "
                f"{', '.join(map(repr, views))}, got {view!r}. Correct the name "
                "before the sign =."
            )
    found = [view for view in views if view in names]
    between = given or (found if len(found) == 2 else views)
    if len(between) != 2:
        raise LinkError(
            f"a table of pairs must say which two of the views "
            f"{', '.join(map(repr, views))} it is about, and its columns are "
            f"{', '.join(map(repr, names))}. Write --links text,image=FILE with the "
            "names of two views."
        )
    return between[0], between[1]


def _choose_columns(
    given: tuple[str, ...], names: list[str], between: ViewPair
) -> tuple[str, str, str | None]:
    """Return the columns of both ids and of the verdict, if there is one."""
    if len(given) not in (0, 2, 3):
        raise LinkError(
            "the columns of pairs must be two of ids and perhaps one of verdicts, got "
            f"{', '.join(map(repr, given))}. Write FILE:left,right,verdict."
        )
    for name in given:
        choose_column(names, name, what="pairs")
    if given:
        return given[0], given[1], given[2] if len(given) == 3 else None
    left, right = _id_columns(names, between)
    others = [name for name in names if name not in (left, right)]
    named = [name for name in VERDICTS if name in others]
    return left, right, next(iter([*named, *others]), None)


def _id_columns(names: list[str], between: ViewPair) -> ViewPair:
    """Return the columns of both ids: named after the views, or the first two."""
    if between[0] != between[1] and set(between) <= set(names):
        return between
    first = [name for name in names if name not in VERDICTS][:2]
    mixed = between[0] != between[1] and any(
        view in names and view != name
        for view, name in zip(between, first, strict=False)
    )
    if len(first) < 2 or mixed:
        raise LinkError(
            f"a table of pairs must have a column named {between[0]!r} and one named "
            f"{between[1]!r}, or these ids in its first two columns in this order, and "
            f"has {', '.join(map(repr, names))}. Name the columns behind a colon, such "
            "as FILE:left,right,verdict."
        )
    return first[0], first[1]


def _weights(values: Sequence[Any], column: str) -> list[float | None]:
    """Return the weight of each row, None for unsure ones."""
    numbers = [_number(value) for value in values]
    # 0 beside 1 is "no"; beside -1 or other weights nobody knows what it means.
    is_binary = {n for n in numbers if n is not None} <= {0.0, 1.0}
    weights = []
    for row, (value, number) in enumerate(zip(values, numbers, strict=True), start=1):
        if number is None:
            weights.append(_word(value, column, row))
        elif number == 0 and is_binary:
            weights.append(-1.0)
        elif number == 0 or not np.isfinite(number):
            raise LinkError(
                f"weights in column {column!r} must be finite and not 0, got {value!r} "
                f"in row {row:,}. Write 1 for must, -1 for cannot and unsure for "
                "neither."
            )
        else:
            weights.append(number)
    return weights


def _number(value: Any) -> float | None:
    """Return the number that a cell is, or None for a word and for nothing."""
    if value is None or str(value).strip().lower() in UNSURE:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _word(value: Any, column: str, row: int) -> float | None:
    """Return what a word says: 1 for must, -1 for cannot, None for unsure."""
    word = "" if value is None else str(value).strip().lower()
    if word in UNSURE:
        return None
    if word in MUST | CANNOT:
        return 1.0 if word in MUST else -1.0
    raise LinkError(
        f"column {column!r} must hold must, cannot or unsure, yes or no, or a weight, "
        f"got {value!r:.60} in row {row:,}. Correct it, or name the columns behind a "
        "colon, such as FILE:left,right,verdict."
    )

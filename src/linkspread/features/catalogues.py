"""Two tables of texts as views in one space, and their columns to compare.

>>> from linkspread.features.catalogues import describe_catalogues
>>> ours = {"name": ["red lamp", "blue chair"], "price": ["10", "20"]}
>>> theirs = {"name": ["lamp, red"], "price": ["9.50 EUR"]}
>>> found = describe_catalogues({"ours": ours, "theirs": theirs})
>>> found.texts, found.numbers, found.views["ours"].shape
(('name',), ('price',), (2, 2))
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from linkspread.features.texts import TextFeatures
from linkspread.ground.errors import LinkspreadError, ViewError

Array = np.ndarray
Columns = Mapping[str, Sequence[str]]

# Share of the values of a column of numbers that are numbers.
MOSTLY = 0.9
NUMBER = re.compile(r"[^\w.,-]*(-?\d[\d,]*(?:\.\d+)?)\s*[^\d]{0,4}")


@dataclass(frozen=True)
class Catalogues:
    """Views in one space, similarities by column, and which columns they are."""

    views: dict[str, Any]
    compare: dict[str, tuple[Any, Any]]
    texts: tuple[str, ...]
    numbers: tuple[str, ...]


def describe_together(texts: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Return weighted words that two views both use, as rows of unit norm."""
    words = TextFeatures().fit([text for own in texts.values() for text in own])
    tables = {view: words.transform(own) for view, own in texts.items()}
    used = [np.diff(X.tocsc().indptr) > 0 for X in tables.values()]
    kept = np.flatnonzero(np.all(used, axis=0))
    if not len(kept):
        raise ViewError(
            "two tables must have words in common, got none. Name other columns, or "
            "use features of another kind with `linkspread fit`."
        )
    return {view: normalize(X[:, kept]) for view, X in tables.items()}


def describe_catalogues(
    tables: Mapping[str, Columns], columns: Sequence[str] = ()
) -> Catalogues:
    """Return what two tables of texts have in common.

    The views are the words of `columns`, by default of all columns of texts that both
    tables have; every such column is compared by itself too.
    """
    first, second = tables.values()
    shared = [name for name in first if name in second]
    _check_columns(tables, shared, columns)
    numbers = {}
    for name in shared:
        both = [read_numbers(own[name]) for own in (first, second)]
        if name not in columns and all(own is not None for own in both):
            numbers[name] = both[0], both[1]
    texts = [name for name in shared if name not in numbers]
    used = [name for name in texts if name in columns or not columns]
    if not used:
        raise ViewError(
            "two tables must share a column of texts, got only numbers in "
            f"{', '.join(map(repr, shared))}. Name the column of texts the same in "
            "both."
        )
    joined = {
        view: [
            " ".join(filter(None, row)) for row in zip(*map(own.get, used), strict=True)
        ]
        for view, own in tables.items()
    }
    views = describe_together(joined)
    compare: dict[str, tuple[Any, Any]] = dict(numbers)
    for name in texts if len(texts) > 1 else ():
        try:
            found = describe_together({v: own[name] for v, own in tables.items()})
        except LinkspreadError:
            # A column without words, or without any in common, compares nothing.
            continue
        compare[name] = tuple(found.values())
    return Catalogues(views, compare, tuple(used), tuple(numbers))


def read_numbers(values: Sequence[str]) -> Array | None:
    """Return the numbers of a column, NaN if missing; None if it has mostly texts."""
    found, n_filled = np.full(len(values), np.nan), 0
    for place, value in enumerate(values):
        if not value.strip():
            continue
        n_filled += 1
        match = NUMBER.fullmatch(value.strip())
        if match:
            found[place] = float(match[1].replace(",", ""))
    is_number = np.isfinite(found).sum() >= max(MOSTLY * n_filled, 1)
    # A price of 0 is an unknown one.
    return np.where(found > 0, found, np.nan) if is_number else None


def _check_columns(
    tables: Mapping[str, Columns], shared: Sequence[str], columns: Sequence[str]
) -> None:
    """Refuse tables without a common column, and unknown columns."""
    has = " and ".join(
        f"{view!r} has {', '.join(map(repr, own))}" for view, own in tables.items()
    )
    if not shared:
        raise ViewError(
            f"two tables must share a column of texts, and {has}. Name such a column "
            "the same in both."
        )
    for name in columns:
        if name not in shared:
            raise ViewError(
                f"`columns` must be columns of both tables, got {name!r}; {has}. Name "
                "one of both."
            )

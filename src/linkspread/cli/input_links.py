"""Judged pairs of a table, of items of the views at hand."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from linkspread.cli.input_places import Place
from linkspread.cli.input_tables import naming_file
from linkspread.ground.errors import LinkError
from linkspread.links import Items
from linkspread.links.pairs import with_positions
from linkspread.links.reading import pairs_of_columns, read_file

ViewPair = tuple[str, str]
Pair = tuple[Any, Any, float]


class JudgedTable(NamedTuple):
    """Judged pairs of two views."""

    between: ViewPair
    pairs: list[Pair]
    n_unsure: int
    skipped: str = ""


def read_judged(
    place: Place,
    items: Mapping[str, Items],
    *,
    must_above: float | None = None,
    skip_unknown: bool | None = None,
) -> JudgedTable:
    """Read the judged pairs of a file as `Links.from_pairs` does."""
    columns = read_file(place.path)
    with naming_file(place.path):
        between = _choose_views(place.views, list(columns), list(items))
        given = pairs_of_columns(
            columns, between, chosen=place.columns, must_above=must_above
        )
        unknown = "skip" if skip_unknown else "raise"
        placed, skipped = with_positions([(between, given)], items, unknown=unknown)
    ((_, table),) = placed
    sides = zip(between, table.known_positions(between), strict=True)
    ids = [items[view].ids[own].tolist() for view, own in sides]
    pairs = list(zip(*ids, table.weights.tolist(), strict=True))
    return JudgedTable(
        between, pairs, table.n_unsure, skipped and f"{place.path}: {skipped}"
    )


def tell_unsure(n_unsure: int) -> list[str]:
    """Say how many rows were left out because they are unsure."""
    rows = "row is" if n_unsure == 1 else "rows are"
    return [f"{n_unsure:,} {rows} unsure and not counted."] if n_unsure else []


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

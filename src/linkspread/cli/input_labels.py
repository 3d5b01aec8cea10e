"""Labels of the items of views, from tables or from a features folder."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkspread.cli.input_columns import choose_column
from linkspread.cli.input_links import check_known
from linkspread.cli.input_places import Place
from linkspread.cli.input_tables import naming_file, read_features
from linkspread.exceptions import LinkError, LinkspreadError
from linkspread.links import Items
from linkspread.links.files import read_columns

__all__ = ["number_classes", "read_labels"]

Array = np.ndarray


def read_labels(place: Place, items: Mapping[str, Items]) -> dict[str, Array]:
    """Read labels of one view, or of all views of a features folder.

    Parameters
    ----------
    place : Place
        Of a table with a column of ids and one of labels, or a features folder.
    items : mapping from str to Items
        The items of all views.

    Returns
    -------
    labels : dict from str to ndarray of str of shape (n_items,)
        Empty where unknown.
    """
    for view in place.views:
        if view not in items:
            raise LinkError(
                f"`--labels` must be of views at hand, {', '.join(map(repr, items))}, "
                f"got {view!r}. Correct the name before the sign =."
            )
    if place.path.is_dir():
        return _from_features(place, items)
    columns = read_columns(place.path)
    with naming_file(place.path):
        own = items[place.views[0]]
        return {own.view: _from_table(columns, place.columns, own)}


def number_classes(labels: Mapping[str, Array]) -> dict[str, Array]:
    """Return labels as numbers that all views share, -1 for unknown.

    Parameters
    ----------
    labels : mapping from str to array of str of shape (n_items,)

    Returns
    -------
    numbers : dict from str to ndarray of int of shape (n_items,)
    """
    names = np.unique(np.concatenate([np.asarray(own) for own in labels.values()]))
    names = names[names != ""]
    return {
        view: np.where(own == "", -1, np.searchsorted(names, own))
        for view, own in labels.items()
    }


def _from_features(place: Place, items: Mapping[str, Items]) -> dict[str, Array]:
    """Return the labels that a features folder has of the items at hand."""
    features = read_features(place.path)
    wanted = [v for v in place.views or items if v in features.labels]
    if not wanted:
        raise LinkspreadError(
            f"{place.path} must have labels, and has none of "
            f"{', '.join(map(repr, place.views or items))}. Give a table with "
            "--labels text=labels.csv."
        )
    return {
        view: _placed(
            [str(i) for i in features.ids[view]],
            [str(label) for label in features.labels[view]],
            items[view],
            strict=False,
        )
        for view in wanted
    }


def _from_table(
    columns: Mapping[str, Any], given: tuple[str, ...], items: Items
) -> Array:
    """Return the labels of a table, at the places of their items."""
    names = list(columns)
    if len(given) not in (0, 2):
        raise LinkError(
            "the columns of labels must be one of ids and one of labels, got "
            f"{', '.join(map(repr, given))}. Write FILE:id,label."
        )
    id_column, label_column = given or _usual_columns(names, items.view)
    for name, what in ((id_column, "ids"), (label_column, "labels")):
        choose_column(names, name, what=what)
    values = ["" if v is None else str(v).strip() for v in columns[label_column]]
    ids = check_known(columns[id_column], items, id_column)
    return _placed(ids, values, items)


def _usual_columns(names: list[str], view: str) -> tuple[str, str]:
    """Return the columns of ids and labels where nobody said which."""
    id_column = next((name for name in ("id", view) if name in names), names[0])
    others = [name for name in names if name != id_column]
    if not others:
        raise LinkError(
            "a table of labels must have a column of ids and one of labels, and has "
            f"{', '.join(map(repr, names))}. Add a column named label."
        )
    return id_column, "label" if "label" in others else others[0]


def _placed(
    ids: list[Any], values: list[str], items: Items, *, strict: bool = True
) -> Array:
    """Return labels at the places of their items, empty for all others."""
    placed = np.full(items.n_items, "", dtype=object)
    known = np.ones(len(ids), dtype=bool) if strict else items.contains(np.array(ids))
    places = np.zeros(len(ids), dtype=np.int64)
    places[known] = items.positions(np.array(ids)[known]) if known.any() else 0
    for row, (place, value) in enumerate(zip(places, values, strict=True), start=1):
        if not known[row - 1] or not value:
            continue
        if placed[place] not in ("", value):
            raise LinkError(
                f"an item must have one label, but {ids[row - 1]!r} of view "
                f"{items.view!r} is {placed[place]!r} and {value!r} in "
                f"row {row:,}. Keep one of the rows."
            )
        placed[place] = value
    return placed.astype(str)

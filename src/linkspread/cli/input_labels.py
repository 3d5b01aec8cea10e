"""Labels of the items of views, from tables or from a features folder."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkspread.cli.input_columns import choose_column
from linkspread.cli.input_places import Place
from linkspread.cli.input_tables import naming_file, read_features
from linkspread.ground.errors import LinkError, LinkspreadError
from linkspread.links import Items
from linkspread.links.items import as_ids, list_first
from linkspread.links.labels import class_names
from linkspread.links.reading import read_file

Array = np.ndarray
REMEDY = (
    "correct the names, name the column of the view's ids with --id-column, or leave "
    "such rows out with --skip-unknown"
)


def read_labels(
    place: Place,
    items: Mapping[str, Items],
    *,
    skip_unknown: bool | None = None,
    notes: list[str],
) -> dict[str, Array]:
    """Read labels of one view, or of all views of a features folder; "" is unknown.

    What a person should know of items that were skipped is added to `notes`.
    """
    for view in place.views:
        if view not in items:
            raise LinkError(
                f"`--labels` must be of views at hand, {', '.join(map(repr, items))}, "
                f"got {view!r}. Correct the name before the sign =."
            )
    if place.path.is_dir():
        return _from_features(place, items)
    columns = read_file(place.path)
    with naming_file(place.path):
        own = items[place.views[0]]
        ids, labels = _from_table(columns, place.columns, own.view)
        known = own.contains(ids)
        unknown = [repr(i) for i in dict.fromkeys(ids[~known].tolist())]
        if not skip_unknown or not known.any():
            own.positions(ids, what="labels", remedy=REMEDY)
        elif unknown:
            notes.append(
                f"{place.path}: {np.sum(~known):,} of {len(ids):,} labels are of items "
                f"that view {own.view!r} has not and were skipped: "
                f"{list_first(unknown)}."
            )
        return {own.view: _placed(ids[known], labels[known], own)}


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
    labels = {}
    for view in wanted:
        ids = np.array([str(i) for i in features.ids[view]])
        known = items[view].contains(ids)
        own = class_names(features.labels[view], view=view)
        labels[view] = _placed(ids[known], own[known], items[view])
    return labels


def _from_table(
    columns: Mapping[str, Any], given: tuple[str, ...], view: str
) -> tuple[Array, Array]:
    """Return the ids of a table and the labels beside them."""
    names = list(columns)
    if len(given) not in (0, 2):
        raise LinkError(
            "the columns of labels must be one of ids and one of labels, got "
            f"{', '.join(map(repr, given))}. Write FILE:id,label."
        )
    id_column, label_column = given or _usual_columns(names, view)
    for name, what in ((id_column, "ids"), (label_column, "labels")):
        choose_column(names, name, what=what)
    ids = as_ids(columns[id_column], view)
    return ids, class_names(columns[label_column], view=view)


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


def _placed(ids: Array, labels: Array, items: Items) -> Array:
    """Return labels at the places of their items, empty for all others."""
    placed = np.full(items.n_items, "", dtype=object)
    places = items.positions(ids)
    for place, id, label in zip(places, ids.tolist(), labels.tolist(), strict=True):
        if label and placed[place] not in ("", label):
            raise LinkError(
                f"an item must have one label, but {id!r} of view {items.view!r} is "
                f"{placed[place]!r} and {label!r}. Keep one of the rows."
            )
        placed[place] = label or placed[place]
    return placed.astype(str)

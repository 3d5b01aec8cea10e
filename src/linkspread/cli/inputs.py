"""Reading the views, links and labels of a command."""

import shlex
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linkspread.cli.options import (
    Place,
    parse_columns,
    parse_labels,
    parse_links,
    parse_view,
)
from linkspread.ground.errors import (
    ConflictWarning,
    LinkError,
    LinkspreadError,
    ViewError,
)
from linkspread.links import Items, Links
from linkspread.links.items import as_ids, list_first
from linkspread.links.labels import class_names
from linkspread.links.pairs import with_positions
from linkspread.links.reading import pairs_of_columns, read_file
from linkspread.manifests import load_features
from linkspread.storage import PairColumns
from linkspread.tables import Table, read_table
from linkspread.tables.doubts import describe_doubts
from linkspread.tables.files import WITH_COLUMNS, naming_path
from linkspread.tables.validation import check_table

ViewPair = tuple[str, str]
Pair = tuple[Any, Any, float]
REMEDY = (
    "correct the ids, name the column of the view's ids with --id-column, or leave "
    "these rows out with --skip-unknown"
)


class JudgedTable(NamedTuple):
    """Judged pairs of two views, from one file."""

    between: ViewPair
    pairs: list[Pair]
    n_unsure: int
    skipped: str = ""


@dataclass(frozen=True)
class Inputs:
    """The input of a command."""

    tables: dict[str, Table]
    judged: list[JudgedTable] = field(default_factory=list)
    known: list[Links] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def views(self) -> dict[str, Any]:
        """The features of each view, ndarray or csr_array."""
        return {view: table.values for view, table in self.tables.items()}

    @property
    def metrics(self) -> dict[str, str]:
        """The metrics of views from features folders."""
        return {v: table.metric for v, table in self.tables.items() if table.metric}

    @property
    def items(self) -> dict[str, Items]:
        """The items of each view."""
        return {
            view: Items(t.shape[0] if t.ids is None else t.ids, view=view)
            for view, t in self.tables.items()
        }

    @property
    def links(self) -> Links:
        """All links together, perhaps none."""
        parts = [join_judged(self.judged)] if self.judged else []
        parts += self.known
        return sum(parts[1:], start=parts[0]) if parts else Links()

    @property
    def some_links(self) -> Links:
        """All links together; without any, an error."""
        if not self.judged and not self.known:
            raise LinkError(
                "a fit needs links, labels or matched items, got none. "
                "Add --links pairs.csv, --labels text=labels.csv or "
                "--matched."
            )
        return self.links


def read_inputs(options: Mapping[str, Any]) -> Inputs:
    """Read everything that the options name."""
    tables = _read_tables(options)
    doubts = [describe_doubts(t, v, leave_out=_leave_out) for v, t in tables.items()]
    inputs = Inputs(tables, notes=[note for note in doubts if note])
    items = inputs.items
    reading = {name: options.get(name) for name in ("must_above", "skip_unknown")}
    inputs.judged.extend(
        read_judged(parse_links(text), items, **reading)
        for text in options.get("links", ())
    )
    inputs.notes.extend(_notes_of(inputs.judged))
    labels = _gather_labels(options, tables, items, inputs.notes)
    if labels:
        inputs.known.append(Links.from_labels(labels))
    if options.get("matched"):
        inputs.known.append(_match(items))
    return inputs


def read_view(
    place: Place,
    *,
    columns: Sequence[str] = (),
    id_column: str | None = None,
    label_column: str | None = None,
) -> Table:
    """Read the table of a view, or its part of a features folder."""
    view, path = place.views[0], place.path
    kind = path.suffix.lower()
    if path.is_dir() and kind != ".zarr":
        return _from_features(place)
    if place.columns and kind != ".npz":
        chosen = ",".join(place.columns)
        remedy = f"Choose columns with --columns {view}={chosen}"
        raise ViewError(
            "a colon must separate an .npz file from its array, "
            f"got {chosen!r} after {path.name!r}. "
            f"{remedy if kind in WITH_COLUMNS else 'Leave it out'}."
        )
    table = read_table(
        path,
        columns=columns,
        id_column=id_column,
        label_column=label_column,
        array=",".join(place.columns) or None,
    )
    with naming_path(path):
        check_table(table.values, view=view)
    return table


def read_judged(
    place: Place,
    items: Mapping[str, Items],
    *,
    must_above: float | None = None,
    skip_unknown: bool | None = None,
) -> JudgedTable:
    """Read the judged pairs of a file as `Links.from_pairs` does."""
    columns = read_file(place.path)
    with naming_path(place.path):
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
    skipped = skipped and f"{place.path}: {skipped}"
    return JudgedTable(between, pairs, table.n_unsure, skipped)


def join_judged(judged: Sequence[JudgedTable]) -> Links:
    """Return the links of several tables, without a warning of conflicts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConflictWarning)
        parts = [
            Links.from_pairs(
                PairColumns(*map(np.array, zip(*table.pairs, strict=True))),
                between=table.between,
            )
            for table in judged
        ]
        return sum(parts[1:], start=parts[0])


def add_up(judged: Sequence[JudgedTable]) -> dict[ViewPair, list[Pair]]:
    """Return each pair once, with the sum of its weights, without sums of 0."""
    totals: dict[ViewPair, dict[tuple[Any, Any], float]] = {}
    for table in judged:
        turned = table.between[::-1] in totals and table.between not in totals
        between = table.between[::-1] if turned else table.between
        own = totals.setdefault(between, defaultdict(float))
        for left, right, weight in table.pairs:
            own[(right, left) if turned else (left, right)] += weight
    return {
        between: [(*pair, weight) for pair, weight in own.items() if weight]
        for between, own in totals.items()
    }


def count_unsure(judged: Sequence[JudgedTable]) -> list[str]:
    """Return a note with the number of unsure rows, none if there are none."""
    n_unsure = sum(table.n_unsure for table in judged)
    rows = "row is" if n_unsure == 1 else "rows are"
    return [f"{n_unsure:,} {rows} unsure and not counted."] if n_unsure else []


def read_labels(
    place: Place,
    items: Mapping[str, Items],
    *,
    skip_unknown: bool | None = None,
    notes: list[str],
) -> dict[str, np.ndarray]:
    """Read labels of one view, or of all views of a features folder; "" is unknown.

    A note on skipped items is added to `notes`.
    """
    for view in place.views:
        if view not in items:
            raise LinkError(
                f"`--labels` must name one of the views {', '.join(map(repr, items))}, "
                f"got {view!r}. Correct the name before the sign =."
            )
    if place.path.is_dir():
        return _labels_of_features(place, items)
    columns = read_file(place.path)
    with naming_path(place.path):
        own = items[place.views[0]]
        id_column, label_column = _label_columns(columns, place.columns, own.view)
        ids = as_ids(columns[id_column], own.view)
        labels = class_names(columns[label_column], view=own.view)
        known = own.contains(ids)
        if not skip_unknown or not known.any():
            own.positions(ids, what="labels", remedy=REMEDY)
        elif not known.all():
            unknown = [repr(i) for i in dict.fromkeys(ids[~known].tolist())]
            notes.append(
                f"{place.path}: {np.sum(~known):,} of {len(ids):,} labels are of items "
                f"that view {own.view!r} does not have and were skipped: "
                f"{list_first(unknown)}."
            )
        return {own.view: _in_rows(ids[known], labels[known], own)}


def _read_tables(options: Mapping[str, Any]) -> dict[str, Table]:
    """Read the table of each view."""
    places = [parse_view(text) for text in options.get("view", ())]
    if options.get("features"):
        folder = Path(options["features"])
        places = [Place((v,), folder) for v in load_features(folder).views] + places
    names = [place.views[0] for place in places]
    again = [name for name in names if names.count(name) > 1]
    if again or not names:
        got = f"{again[0]!r} more than once" if again else "none"
        raise ViewError(
            f"each view must be given once, got {got}. Write --view text=text.parquet "
            "--view image=image.npy, or --features FOLDER."
        )
    chosen: dict[str, list[str]] = {view: [] for view in names}
    for view, columns in map(parse_columns, options.get("columns", ())):
        if view not in chosen:
            raise LinkspreadError(
                f"`--columns` must name one of the views {', '.join(map(repr, names))}"
                f", got {view!r}. Correct the name."
            )
        chosen[view] += columns
    named = {name: options.get(name) for name in ("id_column", "label_column")}
    return {
        name: read_view(place, columns=chosen[name], **named)
        for name, place in zip(names, places, strict=True)
    }


def _from_features(place: Place) -> Table:
    """Return one view of a features folder."""
    view, features = place.views[0], load_features(place.path)
    if view not in features.views:
        raise ViewError(
            f"{place.path} must have the view {view!r}, and has "
            f"{', '.join(map(repr, features.views))}. Use one of these names."
        )
    return Table(
        features.views[view],
        ids=np.asarray(features.ids[view]),
        labels=features.labels.get(view),
        metric=features.metrics.get(view),
    )


def _leave_out(view: str, names: list[str]) -> str:
    """Return the option that leaves columns out."""
    return shlex.join(["--columns", f"{view}={','.join(names)}"])


def _choose_views(
    given: tuple[str, ...], names: list[str], views: list[str]
) -> ViewPair:
    """Return the two views of a table of pairs."""
    for view in given:
        if view not in views:
            raise LinkError(
                "`--links` must name two of the views "
                f"{', '.join(map(repr, views))}, got {view!r}. Correct the name "
                "before the sign =."
            )
    found = [view for view in views if view in names]
    between = given or (found if len(found) == 2 else views)
    if len(between) != 2:
        raise LinkError(
            f"the columns of a table of pairs must name two of the views "
            f"{', '.join(map(repr, views))}, got {', '.join(map(repr, names))}. Write "
            "--links text,image=FILE with the names of two views."
        )
    return between[0], between[1]


def _notes_of(judged: Sequence[JudgedTable]) -> list[str]:
    """Return notes on unsure rows, skipped rows and conflicts."""
    notes = count_unsure(judged)
    notes += [table.skipped for table in judged if table.skipped]
    conflicts = join_judged(judged).conflicts() if judged else []
    if conflicts:
        one, other = conflicts[0][1]
        pairs = "1 pair is" if len(conflicts) == 1 else f"{len(conflicts):,} pairs are"
        notes.append(
            f"{pairs} both must-link and cannot-link, such as {one!r} and {other!r}; "
            "the weights add up."
        )
    return notes


def _gather_labels(
    options: Mapping[str, Any],
    tables: Mapping[str, Table],
    items: Mapping[str, Items],
    notes: list[str],
) -> dict[str, np.ndarray]:
    """Return the labels of the views, from tables of labels or their own columns."""
    labels: dict[str, np.ndarray] = {}
    column = options.get("label_column")
    if column:
        labels = {v: t.labels for v, t in tables.items() if t.labels is not None}
        if not labels:
            raise LinkspreadError(
                f"`--label-column` must be a column of a view's table, and none of "
                f"{', '.join(map(repr, tables))} has {column!r}. Correct the name, or "
                "give --labels text=labels.csv."
            )
    for text in options.get("labels", ()):
        skip = options.get("skip_unknown")
        labels |= read_labels(parse_labels(text), items, skip_unknown=skip, notes=notes)
    return labels


def _labels_of_features(
    place: Place, items: Mapping[str, Items]
) -> dict[str, np.ndarray]:
    """Return the labels of items in a features folder."""
    features = load_features(place.path)
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
        labels[view] = _in_rows(ids[known], own[known], items[view])
    return labels


def _label_columns(
    columns: Mapping[str, Any], given: tuple[str, ...], view: str
) -> tuple[str, str]:
    """Return the columns of ids and labels, as given or by their usual names."""
    names = list(columns)
    if len(given) not in (0, 2):
        raise LinkError(
            "the columns of labels must be one of ids and one of labels, got "
            f"{', '.join(map(repr, given))}. Write FILE:id,label."
        )
    for name, what in zip(given, ("ids", "labels"), strict=False):
        if name not in names:
            raise LinkspreadError(
                f"the table must have the column {name!r} for the {what}, and has "
                f"{', '.join(map(repr, names))}. Name one of these."
            )
    if given:
        return given[0], given[1]
    id_column = next((name for name in ("id", view) if name in names), names[0])
    others = [name for name in names if name != id_column]
    if not others:
        raise LinkError(
            "a table of labels must have a column of ids and one of labels, and has "
            f"{', '.join(map(repr, names))}. Add a column named label."
        )
    return id_column, "label" if "label" in others else others[0]


def _in_rows(ids: np.ndarray, labels: np.ndarray, items: Items) -> np.ndarray:
    """Return labels in the rows of their items, empty for all others."""
    placed = np.full(items.n_items, "", dtype=object)
    rows = items.positions(ids)
    for row, id, label in zip(rows, ids.tolist(), labels.tolist(), strict=True):
        if label and placed[row] not in ("", label):
            raise LinkError(
                f"an item must have one label, but {id!r} of view {items.view!r} is "
                f"{placed[row]!r} and {label!r}. Keep one of the rows."
            )
        placed[row] = label or placed[row]
    return placed.astype(str)


def _match(items: Mapping[str, Items]) -> Links:
    """Link the items of all views that have the same id, or the same row."""
    with_ids = [view for view, own in items.items() if own.has_ids]
    if 0 < len(with_ids) < len(items) or len(items) < 2:
        raise LinkError(
            "`--matched` needs two views or more, all with ids or all without, got "
            f"ids for {', '.join(map(repr, with_ids)) or 'none'} of "
            f"{', '.join(map(repr, items))}. Add a column of ids to the others."
        )
    if not with_ids:
        sizes = {view: own.n_items for view, own in items.items()}
        if len(set(sizes.values())) > 1:
            counts = ", ".join(f"{view} {n:,}" for view, n in sizes.items())
            raise LinkError(
                "`--matched` without ids needs the same number of rows in each view, "
                f"got {counts}. Add a column of ids."
            )
        return Links.from_matched(list(items), next(iter(sizes.values())))
    ids = {view: own.ids.astype(str) for view, own in items.items()}
    parts = [
        Links.from_pairs([(i, i, 1.0) for i in shared], between=(a, b))
        for a, b in combinations(items, 2)
        if (shared := np.intersect1d(ids[a], ids[b]).tolist())
    ]
    if not parts:
        shown = ", ".join(f"{v} {own.ids[0].item()!r}" for v, own in items.items())
        raise LinkError(
            "`--matched` needs ids that two views share, and there are none; the "
            f"first are {shown}. Correct the ids, or give --links pairs.csv."
        )
    return sum(parts[1:], start=parts[0])

"""Reading the views, links and labels of a command."""

import shlex
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from linkspread.cli.options import Place, parse_columns, parse_place
from linkspread.ground.errors import ConflictWarning, LinkError, ViewError
from linkspread.links import Items, Links, reading
from linkspread.links.labels import class_names
from linkspread.links.pairs import PairTable
from linkspread.manifests import load_features
from linkspread.tables import Table, read_table
from linkspread.tables.files import naming_path
from linkspread.tables.validation import WITH_COLUMNS, check_table, describe_doubts

ViewPair = tuple[str, str]
Pair = tuple[Any, Any, float]


class Judged(NamedTuple):
    """Judged pairs of two views, from one file."""

    between: ViewPair
    table: PairTable

    @property
    def pairs(self) -> list[Pair]:
        """Both ids and the weight of each pair."""
        columns = (self.table.left, self.table.right, self.table.weights)
        return list(zip(*(own.tolist() for own in columns), strict=True))


@dataclass(frozen=True)
class Inputs:
    """The input of a command, and notes on it for the user."""

    tables: dict[str, Table]
    judged: list[Judged] = field(default_factory=list)
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
        return join([*([join_judged(self.judged)] if self.judged else []), *self.known])

    @property
    def some_links(self) -> Links:
        """All links together; without any, an error."""
        if not self.judged and not self.known:
            raise LinkError(
                "a fit needs links, labels or matched items, got none. Add --links "
                "pairs.csv, --labels text=labels.csv or --matched."
            )
        return self.links


def join(parts: Sequence[Links]) -> Links:
    """Return links together, without a warning of conflicts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConflictWarning)
        return sum(parts[1:], start=parts[0]) if parts else Links()


def join_judged(judged: Iterable[Judged]) -> Links:
    """Return the links of several tables."""
    return join([Links(pairs=[own]) for own in judged])


def read_inputs(options: Mapping[str, Any]) -> Inputs:
    """Read everything that the options name."""
    tables = _read_tables(options)
    inputs = Inputs(tables)
    for view, table in tables.items():
        doubts = describe_doubts(table, view, leave_out=_leave_out)
        inputs.notes.extend([doubts] if doubts else [])
    items = inputs.items
    rules: Any = {"skip_unknown": bool(options.get("skip_unknown"))}
    above = options.get("must_above")
    judged, notes = read_judged(
        options.get("links", ()), items, must_above=above, **rules
    )
    inputs.judged.extend(judged)
    inputs.notes.extend([*notes, *_describe_conflicts(judged)])
    labels = _read_label_column(options, tables)
    named, notes = read_labels(options.get("labels", ()), items, **rules)
    inputs.notes.extend(notes)
    if labels | named:
        inputs.known.append(Links.from_labels(labels | named))
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
        features = load_features(path)
        if view not in features.views:
            raise ViewError(
                f"{path} must have the view {view!r}, and has "
                f"{', '.join(map(repr, features.views))}. Use one of these names."
            )
        return Table(
            features.views[view],
            ids=np.asarray(features.ids[view]),
            labels=features.labels.get(view),
            metric=features.metrics.get(view),
        )
    chosen = ",".join(place.columns)
    if chosen and kind != ".npz":
        remedy = f"Choose columns with --columns {view}={chosen}"
        raise ViewError(
            "a colon must separate an .npz file from its array, got "
            f"{chosen!r} after {path.name!r}. "
            f"{remedy if kind in WITH_COLUMNS else 'Leave it out'}."
        )
    named: Any = {"id_column": id_column, "label_column": label_column}
    table = read_table(path, columns=columns, array=chosen or None, **named)
    with naming_path(path):
        check_table(table.values, view=view)
    return table


def read_judged(
    texts: Iterable[str],
    items: Mapping[str, Items],
    *,
    must_above: float | None = None,
    skip_unknown: bool = False,
) -> tuple[list[Judged], list[str]]:
    """Read tables of judged pairs; return also notes on unsure and skipped rows."""
    judged, skipped = [], []
    for place in (parse_place(text, "links") for text in texts):
        between, table, note = reading.read_judged(
            place.path,
            items,
            views=place.views,
            columns=place.columns,
            must_above=must_above,
            skip_unknown=skip_unknown,
        )
        judged.append(Judged(between, table))
        skipped += [note] if note else []
    n_unsure = sum(own.table.n_unsure for own in judged)
    rows = "row is" if n_unsure == 1 else "rows are"
    unsure = [f"{n_unsure:,} {rows} unsure and not counted."] if n_unsure else []
    return judged, unsure + skipped


def add_up(judged: Iterable[Judged]) -> dict[ViewPair, list[Pair]]:
    """Return each pair once, with the sum of its weights, without sums of 0."""
    totals: dict[ViewPair, dict[tuple[Any, Any], float]] = {}
    for own in judged:
        turned = own.between[::-1] in totals and own.between not in totals
        between = own.between[::-1] if turned else own.between
        sums = totals.setdefault(between, defaultdict(float))
        for left, right, weight in own.pairs:
            sums[(right, left) if turned else (left, right)] += weight
    return {
        between: [(*pair, weight) for pair, weight in sums.items() if weight]
        for between, sums in totals.items()
    }


def read_labels(
    texts: Iterable[str], items: Mapping[str, Items], *, skip_unknown: bool = False
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Read labels of views and of features folders, "" unknown; return also notes."""
    labels: dict[str, np.ndarray] = {}
    notes = []
    for place in (parse_place(text, "labels") for text in texts):
        if not set(place.views) <= items.keys():
            raise LinkError(
                f"`--labels` must name one of the views {', '.join(map(repr, items))}, "
                f"got {place.views[0]!r}. Correct the name before the sign =."
            )
        if place.path.is_dir():
            labels |= _labels_of_features(place, items)
            continue
        (view,) = place.views
        labels[view], note = reading.read_labels(
            place.path, items[view], columns=place.columns, skip_unknown=skip_unknown
        )
        notes += [note] if note else []
    return labels, notes


def _read_tables(options: Mapping[str, Any]) -> dict[str, Table]:
    """Read the table of each view."""
    places = [parse_place(text, "view") for text in options.get("view", ())]
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
            raise ViewError(
                f"`--columns` must name one of the views {', '.join(map(repr, names))}"
                f", got {view!r}. Correct the name."
            )
        chosen[view] += columns
    named = {name: options.get(name) for name in ("id_column", "label_column")}
    return {
        name: read_view(place, columns=chosen[name], **named)
        for name, place in zip(names, places, strict=True)
    }


def _leave_out(view: str, names: list[str]) -> str:
    """Return the option that leaves columns out."""
    return shlex.join(["--columns", f"{view}={','.join(names)}"])


def _describe_conflicts(judged: Sequence[Judged]) -> list[str]:
    """Return a note on pairs that are both must- and cannot-links."""
    conflicts = join_judged(judged).conflicts()
    if not conflicts:
        return []
    one, other = conflicts[0][1]
    pairs = "1 pair is" if len(conflicts) == 1 else f"{len(conflicts):,} pairs are"
    return [
        f"{pairs} both must-link and cannot-link, such as {one!r} and {other!r}; the "
        "weights add up."
    ]


def _read_label_column(
    options: Mapping[str, Any], tables: Mapping[str, Table]
) -> dict[str, Any]:
    """Return the labels in a column of the views' own tables."""
    column = options.get("label_column")
    labels = {v: t.labels for v, t in tables.items() if t.labels is not None}
    if column and not labels:
        raise LinkError(
            f"`--label-column` must be a column of a view's table, and none of "
            f"{', '.join(map(repr, tables))} has {column!r}. Correct the name, or give "
            "--labels text=labels.csv."
        )
    return labels if column else {}


def _labels_of_features(
    place: Place, items: Mapping[str, Items]
) -> dict[str, np.ndarray]:
    """Return the labels of items in a features folder."""
    features = load_features(place.path)
    labels = {}
    for view in [v for v in place.views or items if v in features.labels]:
        ids = np.array([str(i) for i in features.ids[view]])
        known = items[view].contains(ids)
        own = class_names(features.labels[view], view=view)
        labels[view] = reading.labels_in_rows(ids[known], own[known], items[view])
    if not labels:
        raise LinkError(
            f"{place.path} must have labels, and has none of "
            f"{', '.join(map(repr, place.views or items))}. Give a table with --labels "
            "text=labels.csv."
        )
    return labels


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
    return join(parts)

"""Views, links and labels that a command is given, read and checked."""

import shlex
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from linkspread.cli.input_labels import read_labels
from linkspread.cli.input_links import JudgedTable, read_judged, tell_unsure
from linkspread.cli.input_places import (
    Place,
    parse_columns,
    parse_labels,
    parse_links,
    parse_view,
)
from linkspread.cli.input_tables import read_features, read_view
from linkspread.ground.errors import (
    ConflictWarning,
    LinkError,
    LinkspreadError,
    ViewError,
)
from linkspread.links import Items, Links
from linkspread.storage import PairColumns
from linkspread.tables import Table, describe_doubts

ViewOption = Annotated[
    list[str] | None,
    typer.Option(
        "--view",
        metavar="NAME=PATH",
        help="A view: .npy, .npz:key, .parquet, .csv or a features folder. Once for "
        "each view.",
    ),
]
ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        metavar="NAME=COLUMNS",
        help="Columns of a view's table: text=f0,f1 takes these, text=-year,-shop "
        "leaves these out. Once for each view.",
    ),
]
FeaturesOption = Annotated[
    Path | None, typer.Option(help="Features folder, all of its views.")
]
LinksOption = Annotated[
    list[str] | None,
    typer.Option(
        "--links",
        metavar="PATH",
        help="Table of judged pairs; text,image=PATH names the views, "
        "PATH:left,right,verdict the columns. May be repeated.",
    ),
]
LabelsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--labels",
        metavar="NAME=PATH",
        help="Table of ids and labels of a view, or a features folder. May be "
        "repeated.",
    ),
]
MustAboveOption = Annotated[
    float | None,
    typer.Option(
        help="Verdicts of --links are ratings or probabilities: above this must, below "
        "it cannot, equal to it unsure."
    ),
]
SkipUnknownOption = Annotated[
    bool | None,
    typer.Option(
        "--skip-unknown",
        help="Leave out pairs and labels of items that no view has, and list them.",
    ),
]
LabelColumnOption = Annotated[
    str | None, typer.Option(help="Column of labels in the tables of the views.")
]
IdColumnOption = Annotated[
    str | None, typer.Option(help="Column of ids in the tables of the views.")
]
MatchedOption = Annotated[
    bool | None,
    typer.Option(
        "--matched/--not-matched",
        help="Items with the same id, or in the same row, belong together.",
    ),
]


@dataclass(frozen=True)
class Inputs:
    """What a command was given."""

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
        """The distance that suits a view, where that is known."""
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
        """All links together, of which there must be some."""
        if not self.judged and not self.known:
            raise LinkError(
                "there must be something to learn from, got no links, no labels and no "
                "matched items. Add --links pairs.csv, --labels text=labels.csv or "
                "--matched."
            )
        return self.links


def read_inputs(options: Mapping[str, Any]) -> Inputs:
    """Read all that the options name."""
    tables = _read_tables(options)
    told = [describe_doubts(t, v, leave_out=_leave_out) for v, t in tables.items()]
    inputs = Inputs(tables, notes=[note for note in told if note])
    items = inputs.items
    reading = {name: options.get(name) for name in ("must_above", "skip_unknown")}
    inputs.judged.extend(
        read_judged(parse_links(text), items, **reading)
        for text in options.get("links", ())
    )
    inputs.notes.extend(_told(inputs.judged))
    labels = _gather_labels(options, tables, items, inputs.notes)
    if labels:
        inputs.known.append(Links.from_labels(labels))
    if options.get("matched"):
        inputs.known.append(_match(items))
    return inputs


def join_judged(judged: Sequence[JudgedTable]) -> Links:
    """Return the links of several tables, without a warning of contradictions."""
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


def _read_tables(options: Mapping[str, Any]) -> dict[str, Table]:
    """Read the table of each view."""
    places = [parse_view(text) for text in options.get("view", ())]
    if options.get("features"):
        folder = Path(options["features"])
        places = [Place((v,), folder) for v in read_features(folder).views] + places
    names = [place.views[0] for place in places]
    again = [name for name in names if names.count(name) > 1]
    if again or not names:
        got = f"{again[0]!r} more than once" if again else "none"
        raise ViewError(
            f"each view must be given once, got {got}. Write --view text=text.parquet "
            "--view image=image.npy, or --features FOLDER."
        )
    chosen = _read_choices(options.get("columns", ()), names)
    named = {name: options.get(name) for name in ("id_column", "label_column")}
    return {
        name: read_view(place, columns=chosen[name], **named)
        for name, place in zip(names, places, strict=True)
    }


def _read_choices(given: Sequence[str], views: list[str]) -> dict[str, list[str]]:
    """Return the columns that are chosen for each view."""
    chosen: dict[str, list[str]] = {view: [] for view in views}
    for view, columns in map(parse_columns, given):
        if view not in chosen:
            raise LinkspreadError(
                f"`--columns` must be of a view at hand, {', '.join(map(repr, views))}"
                f", got {view!r}. Correct the name."
            )
        chosen[view] += columns
    return chosen


def _leave_out(view: str, names: list[str]) -> str:
    """Return what leaves columns out on the command line."""
    return shlex.join(["--columns", f"{view}={','.join(names)}"])


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


def _match(items: Mapping[str, Items]) -> Links:
    """Link the items of all views that have the same id, or the same row."""
    with_ids = [view for view, own in items.items() if own.has_ids]
    if 0 < len(with_ids) < len(items) or len(items) < 2:
        raise LinkError(
            "`--matched` must have two views or more, all with ids or all without, got "
            f"ids for {', '.join(map(repr, with_ids)) or 'none'} of "
            f"{', '.join(map(repr, items))}. Add a column of ids to the others."
        )
    if not with_ids:
        sizes = {view: own.n_items for view, own in items.items()}
        if len(set(sizes.values())) > 1:
            counts = ", ".join(f"{view} {n:,}" for view, n in sizes.items())
            raise LinkError(
                "`--matched` must have as many rows in each view where there are no "
                f"ids, got {counts}. Add a column of ids."
            )
        return Links.from_matched(list(items), next(iter(sizes.values())))
    parts = [
        Links.from_pairs([(i, i, 1.0) for i in shared], between=(a, b))
        for a, b in combinations(items, 2)
        if len(shared := _shared(items[a], items[b]))
    ]
    if not parts:
        shown = ", ".join(f"{v} {own.ids[0].item()!r}" for v, own in items.items())
        raise LinkError(
            "`--matched` must have ids that two views share, and there are none; the "
            f"first are {shown}. Correct the ids, or give --links pairs.csv."
        )
    return sum(parts[1:], start=parts[0])


def _shared(one: Items, other: Items) -> list[str]:
    """Return the ids that two views share, as texts."""
    return np.intersect1d(one.ids.astype(str), other.ids.astype(str)).tolist()


def _told(judged: Sequence[JudgedTable]) -> list[str]:
    """Say how many rows of the pairs say nothing, were skipped, or say both."""
    notes = tell_unsure(sum(table.n_unsure for table in judged))
    notes += [table.skipped for table in judged if table.skipped]
    conflicts = join_judged(judged).conflicts() if judged else []
    if conflicts:
        one, other = conflicts[0][1]
        pairs = "1 pair is" if len(conflicts) == 1 else f"{len(conflicts):,} pairs are"
        notes.append(
            f"{pairs} both must- and cannot-link, such as {one!r} and {other!r}; the "
            "weights add up."
        )
    return notes

"""Another table for a view, such as that of a new encoder: judgements stay."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from linkspread.ground.errors import ViewError
from linkspread.links import Items, Links
from linkspread.tables import Table
from linkspread.tables.validation import Views, check_views

Pair = tuple[str, str]


@dataclass(frozen=True)
class ViewReplacement:
    """What changed when a view got another table.

    Attributes
    ----------
    view : str
    n_items : tuple of int
        Items before and after.
    items_gone, items_new : list of ids
    columns_gone, columns_new : list of str
        Names of columns, where both tables have names.
    links_gone : int
        Judged pairs of items that are gone.
    quality : dict from pairs of str to tuple of (float or None)
        Mean reciprocal rank of held-out partners before and after, None where too
        little was known to hold any out.
    """

    view: str
    n_items: tuple[int, int]
    items_gone: list[Any]
    items_new: list[Any]
    columns_gone: list[str]
    columns_new: list[str]
    links_gone: int
    quality: dict[Pair, tuple[float | None, float | None]] = field(default_factory=dict)

    def __str__(self) -> str:
        before, after = self.n_items
        parts = [
            f"View {self.view!r} has {after:,} items, {before:,} before: "
            f"{len(self.items_new):,} new, {len(self.items_gone):,} gone.",
            f"{len(self.columns_new):,} columns are new, "
            f"{len(self.columns_gone):,} gone.",
            f"{self.links_gone:,} judged pairs are gone with their items.",
        ]
        for (a, b), qualities in self.quality.items():
            was, now = ("-" if q is None else f"{q:.2f}" for q in qualities)
            parts.append(
                f"Mean reciprocal rank of held-out partners of {a} and {b}: {now}, "
                f"{was} before."
            )
        return " ".join(parts)


def read_replacement(
    known: Mapping[str, Table],
    items: Mapping[str, Items],
    links: Links,
    view: str,
    table: Any,
    ids: Any,
    columns: Any,
) -> tuple[Views, Links, ViewReplacement]:
    """Return all views with another table for one, the links that stay, and a report.

    Items that stay come first, in the order of the new table.
    """
    own = check_views(
        {view: table},
        None if ids is None else {view: ids},
        None if columns is None else {view: columns},
    ).read[view]
    old = items[view]
    if own.ids is None and old.has_ids:
        if own.shape[0] != old.n_items:
            raise ViewError(
                f"`ids` must name the rows of view {view!r} if their number changes, "
                f"got {own.shape[0]:,} rows for {old.n_items:,} items and no ids. Give "
                "them."
            )
        own = replace(own, ids=old.ids)
    new = Items(own.shape[0] if own.ids is None else own.ids, view=view)
    if new.ids.dtype.kind != old.ids.dtype.kind:
        raise ViewError(
            f"`ids` of view {view!r} must be of the kind of those before, such as "
            f"{old.ids[0].item()!r}, got {new.ids[0].item()!r}. Convert them."
        )
    place = {id: k for k, id in enumerate(old.ids.tolist())}
    at = np.array([place.get(id, -1) for id in new.ids.tolist()], dtype=np.int64)
    stays = np.flatnonzero(at >= 0)
    if not len(stays):
        raise ViewError(
            f"the table of view {view!r} must keep some of its items, got none of "
            f"{old.n_items:,} ids. Give the ids of the fit, or fit anew."
        )
    kept = at[stays]
    order = np.concatenate([stays, np.flatnonzero(at < 0)])
    values, changed = own.values[order], np.any(order != np.arange(len(order)))
    if changed or own.ids is not None:
        own = replace(
            own, values=values, ids=None if own.ids is None else new.ids[order]
        )
    new = Items(own.shape[0] if own.ids is None else own.ids, view=view)
    left = links.select({view: kept}, with_ids=True)
    left = left.grow({**items, view: new})
    before, after = known[view].columns or (), own.columns or ()
    gone = np.setdiff1d(np.arange(old.n_items), kept)
    report = ViewReplacement(
        view=view,
        n_items=(old.n_items, new.n_items),
        items_gone=old.ids[gone].tolist(),
        items_new=new.ids[len(kept) :].tolist(),
        columns_gone=[c for c in before if after and c not in after],
        columns_new=[c for c in after if before and c not in before],
        links_gone=_n_pairs(links) - _n_pairs(left),
    )
    read = Views({name: own if name == view else t for name, t in known.items()})
    return read, left, report


def _n_pairs(links: Links) -> int:
    """Return the number of judged pairs."""
    return sum(len(table) for _, table in links.pair_tables)

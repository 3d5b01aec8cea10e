"""Parts of a score as arrays, before the largest of them get names."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.judging.explanation import Contribution, Split

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Shares:
    """Amounts of one kind."""

    kind: str
    amounts: Array
    weights: Array
    sources: Array | None = None
    targets: Array | None = None
    classes: Array | None = None


# By the name of a split of an Explanation, what it is made of.
Parts = dict[str, list[Shares]]


def single_share(kind: str, amount: float, weight: float = 1.0) -> Shares:
    """Return a share that is of no item."""
    return Shares(kind, np.array([amount]), np.array([weight]))


def item_shares(
    kind: str,
    amounts: Array,
    weights: Array,
    items: Array,
    *,
    side: int = 0,
    classes: Array | None = None,
) -> Shares:
    """Return shares of items of one view."""
    if side == 0:
        return Shares(kind, amounts, weights, sources=items, classes=classes)
    return Shares(kind, amounts, weights, targets=items, classes=classes)


def label_shares(
    kind: str,
    amounts: Array,
    weights: Array,
    items: Array,
    memberships: Array,
    *,
    side: int,
) -> Shares:
    """Return shares of labelled items, with the class that each is most in."""
    classes = np.full((len(items), 2), -1)
    if len(items):
        classes[:, side] = memberships.argmax(axis=1)
    return item_shares(kind, amounts, weights, items, side=side, classes=classes)


def class_shares(amounts: Array, weights: Array) -> Shares:
    """Return the shares of all pairs of classes."""
    classes = np.argwhere(np.ones(amounts.shape, dtype=bool))
    return Shares("class", amounts.ravel(), weights.ravel(), classes=classes)


def pair_shares(
    pairs: sparse.csr_array, amounts: Array, *, within: bool = False
) -> Shares:
    """Return the shares of judged pairs."""
    i, j = pairs.tocoo().coords
    if not within:
        return Shares("pair", amounts, pairs.data, i, j)
    both = sparse.csr_array((amounts, (i, j)), shape=pairs.shape)
    once = i < j
    # Explicit zeros keep the pattern, so that both halves are in the same order.
    added = (both.T.tocsr().sorted_indices().data + both.sorted_indices().data)[once]
    return Shares("pair", added, pairs.data[once], i[once], j[once])


def make_split(
    shares: Sequence[Shares],
    source_ids: Array,
    target_ids: Array,
    *,
    n_links: int | None,
) -> Split:
    """Name the largest shares, and add up the others."""
    amounts = np.concatenate([own.amounts for own in shares] or [np.zeros(0)])
    order = np.argsort(-np.abs(amounts), kind="stable")
    order = order[: np.count_nonzero(amounts)]
    n_named = len(order) if n_links is None else min(n_links, len(order))
    ends = np.cumsum([len(own.amounts) for own in shares])
    parts = []
    for place in order[:n_named]:
        k = int(np.searchsorted(ends, place, side="right"))
        row = int(place - (ends[k] - len(shares[k].amounts)))
        parts.append(_named(shares[k], row, source_ids, target_ids))
    rest = float(np.sum(amounts[order[n_named:]]))
    return Split(tuple(parts), rest, len(order) - n_named)


def _named(own: Shares, row: int, source_ids: Array, target_ids: Array) -> Contribution:
    """Return one share with the ids of its items."""
    weight = float(own.weights[row])
    kind = own.kind
    if kind == "pair":
        kind = "must-link" if weight > 0 else "cannot-link"
    return Contribution(
        kind=kind,
        amount=float(own.amounts[row]),
        weight=weight,
        source_item=_id(own.sources, row, source_ids),
        target_item=_id(own.targets, row, target_ids),
        classes=_classes(own.classes, row),
    )


def _id(positions: Array | None, row: int, ids: Array) -> Any:
    """Return the id of the item at a row, if it is of one."""
    return None if positions is None else ids[positions[row]].item()


def _classes(classes: Array | None, row: int) -> tuple[int | None, int | None]:
    """Return the classes of a row, if it has any."""
    if classes is None:
        return None, None
    c, d = (int(own) for own in classes[row])
    return None if c < 0 else c, None if d < 0 else d

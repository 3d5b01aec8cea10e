"""Parts of a score as arrays, before the largest of them get names."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.retrieval.explanation import Contribution, Split

__all__ = [
    "Parts",
    "Shares",
    "class_shares",
    "item_shares",
    "label_shares",
    "make_split",
    "pair_shares",
    "single_share",
]

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Shares:
    """Amounts of one kind.

    Attributes
    ----------
    kind : str
        As of a Contribution; "pair" becomes a must- or cannot-link by its weight.
    amounts, weights : ndarray of shape (k,)
    sources, targets : ndarray of int of shape (k,) or None, default=None
        Positions in the two views.
    classes : ndarray of int of shape (k, 2) or None, default=None
        -1 for none.
    """

    kind: str
    amounts: Array
    weights: Array
    sources: Array | None = None
    targets: Array | None = None
    classes: Array | None = None


# By the name of a split of an Explanation, what it is made of.
Parts = dict[str, list[Shares]]


def single_share(kind: str, amount: float, weight: float = 1.0) -> Shares:
    """Return a share that is of no item.

    Parameters
    ----------
    kind : str
    amount : float
    weight : float, default=1.0

    Returns
    -------
    shares : Shares
    """
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
    """Return shares of items of one view.

    Parameters
    ----------
    kind : str
    amounts, weights : ndarray of shape (k,)
    items : ndarray of int of shape (k,)
        Positions.
    side : int, default=0
        0 for items of the source, 1 for items of the target.
    classes : ndarray of int of shape (k, 2), default=None

    Returns
    -------
    shares : Shares
    """
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
    """Return shares of labelled items, with the class that each is most in.

    Parameters
    ----------
    kind : str
    amounts, weights : ndarray of shape (k,)
    items : ndarray of int of shape (k,)
    memberships : ndarray of shape (k, n_classes)
    side : int
        As for `item_shares`.

    Returns
    -------
    shares : Shares
    """
    classes = np.full((len(items), 2), -1)
    if len(items):
        classes[:, side] = memberships.argmax(axis=1)
    return item_shares(kind, amounts, weights, items, side=side, classes=classes)


def class_shares(amounts: Array, weights: Array) -> Shares:
    """Return the shares of all pairs of classes.

    Parameters
    ----------
    amounts, weights : ndarray of shape (c, d)

    Returns
    -------
    shares : Shares
    """
    classes = np.argwhere(np.ones(amounts.shape, dtype=bool))
    return Shares("class", amounts.ravel(), weights.ravel(), classes=classes)


def pair_shares(
    pairs: sparse.csr_array, amounts: Array, *, within: bool = False
) -> Shares:
    """Return the shares of judged pairs.

    Parameters
    ----------
    pairs : csr_array of shape (n, m)
        Weights of the pairs.
    amounts : ndarray of shape (n_pairs,)
        In the order of ``pairs.tocoo()``.
    within : bool, default=False
        Whether both views are the same, so that each pair stands there twice.

    Returns
    -------
    shares : Shares
    """
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
    """Name the largest shares, and add up the others.

    Parameters
    ----------
    shares : sequence of Shares
    source_ids, target_ids : ndarray of shape (n,) and (m,)
    n_links : int or None
        How many are named; None names all that are not 0.

    Returns
    -------
    split : Split
    """
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

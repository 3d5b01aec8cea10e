"""Whether links agree with the views that they are for, and with each other."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from linkspread.ground.errors import LinkError, UnknownItemError
from linkspread.links.items import Items


def check_between(between: Any) -> tuple[str, str]:
    """Return the names of two views."""
    names = tuple(between) if isinstance(between, tuple | list) else ()
    if len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise LinkError(
            f"`between` must name two views, got {between!r:.60}. "
            'Write ("text", "image"), or ("text", "text") for links within one.'
        )
    return names


def check_labels_fit(labels: Mapping[str, Any], items: Mapping[str, Items]) -> None:
    """Refuse labels of views that have more or fewer items."""
    for view, memberships in labels.items():
        if memberships.shape[0] != items[view].n_items:
            raise LinkError(
                f"labels of view {view!r} must fit its items, got "
                f"{memberships.shape[0]:,} labels for {items[view].n_items:,} items. "
                "Give one label per row, -1 for unknown."
            )


def check_positions(
    positions: Mapping[str, Any], items: Mapping[str, Items], *, once: bool = False
) -> dict[str, np.ndarray]:
    """Return positions of items by view, which must be among those at hand."""
    checked = {}
    for view, where in positions.items():
        if view not in items:
            raise LinkError(
                f"positions must be of views that the links know, {list(items)}, got "
                f"{view!r}. Correct the name, or resolve the links first."
            )
        chosen, n_items = np.asarray(where, dtype=np.int64), items[view].n_items
        outside = chosen[(chosen < 0) | (chosen >= n_items)]
        if len(outside):
            raise UnknownItemError(
                f"positions in view {view!r} must be from 0 to {n_items - 1:,}, got "
                f"{outside[0]}. Correct it."
            )
        if once and len(np.unique(chosen)) < len(chosen):
            raise LinkError(
                f"items of view {view!r} must be selected once each, got "
                f"{len(chosen):,} positions of {len(np.unique(chosen)):,} items. Drop "
                "the repeated ones."
            )
        checked[view] = chosen
    return checked


def check_same_items(one: Items, other: Items) -> None:
    """Refuse to join links whose positions mean different items."""
    if one.n_items != other.n_items:
        raise LinkError(
            f"links that are joined must be for the same items of view {one.view!r}, "
            f"got {one.n_items:,} and {other.n_items:,} items. Resolve both with the "
            "same ids."
        )
    if one.has_ids and other.has_ids and not np.array_equal(one.ids, other.ids):
        place = np.flatnonzero(one.ids != other.ids)[0]
        raise LinkError(
            f"links that are joined must be for the same items of view {one.view!r}, "
            f"but item {place} is {one.ids[place].item()!r} in one and "
            f"{other.ids[place].item()!r} in the other. Resolve both with the same ids."
        )

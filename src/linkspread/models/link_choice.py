"""The links of a fit, and the views that they join."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from typing import Any

import numpy as np

from linkspread.ground.errors import LinkError, LinkspreadError
from linkspread.links import Links

Array = np.ndarray
UNKNOWN = -1


def choose_links(links: Any, tables: Mapping[str, Any]) -> Links:
    """Return links, made from labels if labels were given."""
    if isinstance(links, Links):
        return links
    if isinstance(links, Mapping):
        return Links.from_labels(links)
    if links is not None and len(tables) == 1:
        return Links.from_labels({next(iter(tables)): links})
    got = f"{type(links).__name__} for {len(tables)} views"
    if links is None:
        # The estimator checks of scikit-learn look for these words.
        got = "None (the fit requires y to be passed, but the target y is None)"
    raise LinkError(
        f"`links` must be Links or labels by view, got {got}. Make them with "
        "`Links.from_pairs` or `Links.from_labels`."
    )


def labelled_items(
    links: Links, view: str, *, shared_with: str | None = None
) -> Array | None:
    """Return which items of a view have labels, or None if none has."""
    memberships = links.memberships(view, shared_with=shared_with)
    if memberships is None:
        return None
    return np.asarray(memberships.sum(axis=1)).ravel() > 0


def hard_labels(links: Links, view: str, *, shared_with: str | None = None) -> Array:
    """Return the class of each item of a view by its largest membership, or -1."""
    memberships = links.memberships(view, shared_with=shared_with)
    known = np.asarray(memberships.sum(axis=1)).ravel() > 0
    return np.where(known, np.asarray(memberships.argmax(axis=1)).ravel(), UNKNOWN)


def linked_pairs(links: Links, views: Iterable[str]) -> list[tuple[str, str]]:
    """Return the pairs of views between which a fit propagates links."""
    views = list(views)
    pairs = [pair for pair in combinations(views, 2) if links.connects(*pair)]
    return pairs or [(view, view) for view in views if links.connects(view, view)]


def find_chain(
    is_joined: Callable[[str, str], bool],
    views: Iterable[str],
    source: str,
    target: str,
) -> tuple[str, ...] | None:
    """Return the shortest chain of joined views from one to another, or None.

    Of several the first in the order of the views. A view that is not joined to itself
    reaches itself through another.
    """
    views = list(views)
    chains: deque[tuple[str, ...]] = deque([(source,)])
    seen: set[str] = set()
    while chains:
        chain = chains.popleft()
        for view in views:
            if view in seen or not is_joined(chain[-1], view):
                continue
            if view == target:
                return (*chain, view)
            seen.add(view)
            chains.append((*chain, view))
    return None


def check_reachable(
    links: Links, views: Iterable[str], source: str, target: str
) -> tuple[str, ...]:
    """Return the chain of views from one to another; refuse views without one."""
    check_views_known(views, source, target)
    chain = find_chain(links.connects, views, source, target)
    if chain is None:
        where = f"{source!r} and {target!r}"
        if source == target:
            where = f"items of {source!r}, nor that view and another"
        raise LinkError(
            f"views must be joined by links to be searched, directly or through other "
            f"views, and none join {where}. Add links between them, or between each "
            "and a third view."
        )
    return chain


def check_linked(links: Links, views: Iterable[str], *pair: str) -> None:
    """Refuse views that are unknown or not joined by links of their own."""
    check_views_known(views, *pair)
    if not links.connects(*pair):
        where = f"join {pair[0]!r} and {pair[1]!r}. Add links between them."
        if pair[0] == pair[1]:
            where = f"join items within {pair[0]!r}. Add links within it."
        raise LinkError(f"views must be joined by links of their own, and none {where}")


def check_views_known(views: Iterable[str], *wanted: str) -> None:
    """Refuse names that are no views."""
    for view in wanted:
        if view not in views:
            raise LinkspreadError(
                f"`source` and `target` must be views of the fit, {list(views)}, got "
                f"{view!r}. Correct the name."
            )

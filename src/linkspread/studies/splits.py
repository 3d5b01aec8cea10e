"""Which items are for training and which for testing, and what is known of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkspread.ground.errors import LinkspreadError
from linkspread.links import Links

Array = np.ndarray
UNKNOWN = -1


@dataclass(frozen=True)
class Split:
    """Parts of a collection."""

    name: str
    train: Array
    test: Array


def resplit(labels: Array, n_train: int, *, seed: int) -> Split:
    """Draw another split of the same size, with the classes in the same shares."""
    if not 0 < n_train < len(labels):
        raise LinkspreadError(
            f"`n_train` must leave items for the test, between 1 and "
            f"{len(labels) - 1}, got {n_train}. Choose a number in this range."
        )
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    # Items of each class evenly along the list, so that a prefix has all in shares.
    place = np.empty(len(labels))
    for label in np.unique(labels):
        own = order[labels[order] == label]
        place[own] = (np.arange(len(own)) + rng.random()) / len(own)
    order = np.argsort(place, kind="stable")
    return Split(f"re-split {seed}", np.sort(order[:n_train]), np.sort(order[n_train:]))


def label_links(
    labels: Array, known: Array, views: Sequence[str], *, matched: bool = False
) -> Links:
    """Return links from the labels of some rows, and perhaps which rows belong."""
    shown = np.full(len(labels), UNKNOWN)
    shown[known] = labels[known]
    links = Links.from_labels(dict.fromkeys(views, shown))
    return links + matched_links(known, views) if matched else links


def matched_links(known: Array, views: Sequence[str]) -> Links:
    """Return must-links between the views of the same rows."""
    first, second = views
    return Links.from_pairs(np.column_stack([known, known]), between=(first, second))


def random_links(
    labels: Array, known: Array, views: Sequence[str], n_links: int, *, seed: int
) -> Links:
    """Return links of random pairs, must where the classes are the same."""
    first, second = views
    n = len(known)
    drawn = np.random.default_rng(seed).choice(n * n, n_links, replace=False)
    i, j = known[drawn // n], known[drawn % n]
    weights = np.where(labels[i] == labels[j], 1.0, -1.0)
    table: Any = np.column_stack([i, j, weights])
    return Links.from_pairs(table, between=(first, second))

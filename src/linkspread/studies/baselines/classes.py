"""The labels of a view, as a classifier takes them."""

import numpy as np
from scipy import sparse

from linkspread.ground.errors import LinkError
from linkspread.links import Links

Array = np.ndarray


def class_memberships(links: Links, view: str) -> sparse.csr_array:
    """Return what the labels say of each item of a view."""
    memberships = links.memberships(view)
    if memberships is None or not memberships.sum():
        raise LinkError(
            f"view {view!r} must have labels, and none of its items has one, got "
            f"{links!r}. Label a few of them, or use a rival that learns from pairs."
        )
    return sparse.csr_array(memberships)


def labelled_rows(links: Links, view: str) -> tuple[Array, Array, int]:
    """Return the labelled items of a view and the class of each."""
    memberships = class_memberships(links, view)
    rows = np.flatnonzero(memberships.sum(axis=1))
    classes = np.asarray(memberships[rows].argmax(axis=1)).ravel()
    if len(np.unique(classes)) < 2:
        raise LinkError(
            f"labels of view {view!r} must be of at least 2 classes, got 1 class in "
            f"{len(rows):,} labels. Label items of another class."
        )
    return rows, classes, memberships.shape[1]

"""What a loader returns: the views of one collection and its classes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkspread.exceptions import ViewError

__all__ = ["Collection"]


@dataclass(frozen=True, eq=False, repr=False)
class Collection:
    """Hold matched views of the same items, and the class of each item.

    Row ``i`` of every view describes item ``i``.

    Parameters
    ----------
    views : dict of {array, csr_array} of shape (n_items, n_features)
        The tables by view name; their widths differ.
    labels : ndarray of int of shape (n_items,)
        Class of each item, a position in `label_names`.
    label_names : tuple of str
        Name of each class.

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.datasets import Collection
    >>> Collection({"text": np.eye(3)}, np.array([0, 1, 1]), ("cat", "dog"))
    Collection(3 items, 2 classes, text: 3 x 3)
    """

    views: Mapping[str, Any]
    labels: np.ndarray
    label_names: tuple[str, ...]

    def __post_init__(self) -> None:
        for name, X in self.views.items():
            if X.shape[0] != len(self.labels):
                raise ViewError(
                    f"Every view of a collection needs one row per label: view "
                    f"{name!r} has {X.shape[0]} rows, `labels` has "
                    f"{len(self.labels)}. Give them in the same order and number."
                )

    def __repr__(self) -> str:
        shapes = [f"{v}: {X.shape[0]} x {X.shape[1]}" for v, X in self.views.items()]
        counts = f"{len(self.labels)} items, {len(self.label_names)} classes"
        return f"{type(self).__name__}({', '.join([counts, *shapes])})"

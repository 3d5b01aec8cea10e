"""A collection of files and texts, as it was found: nothing of it is read yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.ground.errors import ViewError

KINDS = ("picture", "text")


@dataclass(frozen=True, eq=False, repr=False)
class ViewItems:
    """Hold the items of one view, which are read when they are needed.

    Parameters
    ----------
    kind : {"picture", "text"}
    ids : ndarray of str of shape (n_items,)
        Unique within the view.
    contents : sequence of Path or str of length n_items
        Files of pictures; files of texts, or the texts themselves.
    labels : ndarray of str of shape (n_items,), default=None
        Class of each item, "" where it is unknown; None where no item has one.

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.manifests import ViewItems
    >>> ViewItems("text", np.array(["a", "b"]), ["one fish", "two fish"])
    ViewItems(2 texts)
    """

    kind: str
    ids: np.ndarray
    contents: Sequence[Any]
    labels: np.ndarray | None = None

    def __post_init__(self) -> None:
        n_labels = len(self.ids) if self.labels is None else len(self.labels)
        sizes = {len(self.ids), len(self.contents), n_labels}
        if self.kind not in KINDS or len(sizes) > 1:
            raise ViewError(
                "a view must be of pictures or texts with an id and a label for each, "
                f"got kind {self.kind!r} and sizes {sorted(sizes)}. Give as many of "
                "each."
            )
        if len(np.unique(self.ids)) < len(self.ids):
            raise ViewError(
                "ids must be unique within a view, and some are repeated. Number them."
            )

    def __repr__(self) -> str:
        return f"ViewItems({len(self.ids):,} {self.kind}s)"


@dataclass(frozen=True, eq=False, repr=False)
class ItemCollection:
    """Hold the views of a collection; the same id in two views is the same item.

    Parameters
    ----------
    views : mapping from str to ViewItems
        An item that lacks a view is not among its ids.
    root : Path
        The folder that all files lie in.
    layout : str, default="views"
        How it was recognised, for people.
    skipped : tuple of str, default=()
        What was left out, a phrase each.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from linkspread.manifests import ItemCollection, ViewItems
    >>> texts = ViewItems("text", np.array(["a", "b"]), ["one fish", "two fish"])
    >>> ItemCollection({"text": texts}, Path())
    ItemCollection(text: 2 texts)
    """

    views: Mapping[str, ViewItems]
    root: Path
    layout: str = "views"
    skipped: tuple[str, ...] = ()

    def __repr__(self) -> str:
        sizes = [f"{v}: {len(own.ids):,} {own.kind}s" for v, own in self.views.items()]
        return f"ItemCollection({', '.join(sizes)})"

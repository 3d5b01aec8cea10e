"""What a fit of `CrossViewSearch` is expected to need, said before it starts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.ground.progress import format_bytes
from linkspread.learning.maps import N_COMPONENTS, landmark_count
from linkspread.links import Items, Links
from linkspread.tables.validation import check_views

# Measured on two views of 10,000 to 40,000 items and 128 to 1,024 columns: the largest
# memory of a fit is 0.9 to 1.05 times the sum of so many times its maps and so many
# times its tables; 0.6 times without links.
TIMES_MAPS, TIMES_TABLES = 3, 8


@dataclass(frozen=True)
class SearchPlan:
    """What a fit is expected to take.

    Attributes
    ----------
    links : Links
        Resolved.
    widths : dict from str to int
        Features of the map of each view.
    n_bytes : int
        Beyond the tables.
    shares : bool
        Whether two views have as many columns.
    """

    links: Links
    widths: dict[str, int]
    n_bytes: int
    shares: bool

    @property
    def cost(self) -> str:
        """What is done, and the memory for it, in words."""
        maps = ", ".join(f"{view} {width:,}" for view, width in self.widths.items())
        how = "what counts is chosen on judgements that are held out"
        if not self.links.views:
            how = "nothing is known, so the cosine counts"
        if not self.links.views and not self.shares:
            how = "nothing: no two views share a space, and nothing is known of them"
        return (
            f"about {format_bytes(self.n_bytes)} beyond the tables: features of "
            f"each item ({maps}), then {how}"
        )


def plan_search(
    views: Any, links: Links, *, ids: Mapping[str, Any] | None = None
) -> SearchPlan:
    """Return what a fit would take, without fitting.

    Parameters
    ----------
    views : mapping from str to table of shape (n_items, n_features)
    links : Links
        Perhaps none.
    ids : mapping from str to array-like of shape (n_items,), default=None

    Returns
    -------
    plan : SearchPlan

    Examples
    --------
    >>> import linkspread as ls
    >>> from linkspread.selection.search_plan import plan_search
    >>> data = ls.datasets.make_views(90, n_classes=3, random_state=0)
    >>> plan_search(data.views(), ls.Links.from_labels(data.labels)).widths["text"]
    212
    """
    read = check_views(views, ids)
    items = {view: Items(own, view=view) for view, own in read.ids.items()}
    resolved = links.resolve(items)
    widths = {view: _width(X, resolved, view) for view, X in read.tables.items()}
    maps = sum(4 * read.tables[view].shape[0] * d for view, d in widths.items())
    n_bytes = TIMES_MAPS * maps + TIMES_TABLES * _size(read.tables)
    shares = len({X.shape[1] for X in read.tables.values()}) < len(read.tables)
    return SearchPlan(resolved, widths, n_bytes, shares)


def _width(X: Any, links: Links, view: str) -> int:
    """Return the number of features of a map: columns, and landmarks of kernels."""
    n_items, width = X.shape
    n_linear = N_COMPONENTS if min(X.shape) > N_COMPONENTS else width
    memberships = links.memberships(view) if view in links.views else None
    n_labelled = 0
    if memberships is not None:
        n_labelled = int(np.count_nonzero(memberships.sum(axis=1)))
    n_landmarks = landmark_count(n_items, n_labelled)
    return n_linear + n_landmarks * (2 if view in links.views else 1)


def _size(tables: Mapping[str, Any]) -> int:
    """Return the bytes of all tables."""
    return sum(
        X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        if sparse.issparse(X)
        else X.nbytes
        for X in tables.values()
    )

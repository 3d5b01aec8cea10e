"""The expected memory of a fit of `CrossViewSearch`."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from scipy import sparse

from linkspread.ground.progress import format_bytes
from linkspread.learning.maps import N_COMPONENTS, landmark_count
from linkspread.links import Links
from linkspread.tables.validation import check_views

# Measured on two views of 10,000 to 40,000 items and 128 to 1,024 columns: the largest
# memory of a fit of `CrossViewSearch` is 0.9 to 1.05 times the sum of so many times its
# maps and so many times its tables; 0.6 times without links.
TIMES_MAPS, TIMES_TABLES = 3, 8


class SearchPlan(NamedTuple):
    """Resolved links, features of each view's map, and the cost in words."""

    links: Links
    widths: dict[str, int]
    cost: str


def plan_search(
    views: Any, links: Links, *, ids: Mapping[str, Any] | None = None
) -> SearchPlan:
    """Return the expected cost of a fit; views and links are checked as by a fit."""
    read = check_views(views, ids)
    tables, links = read.tables, links.resolve(read.ids)
    widths = {view: _map_width(X, links, view) for view, X in tables.items()}
    maps = sum(4 * tables[view].shape[0] * width for view, width in widths.items())
    n_bytes = TIMES_MAPS * maps + TIMES_TABLES * sum(map(_table_bytes, tables.values()))
    how = "terms are chosen on held-out judgements"
    if not links.views:
        how = "the cosine alone, as there are no links"
        if len({X.shape[1] for X in tables.values()}) == len(tables):
            how = "nothing, as there are no links and no two views share a space"
    shown = ", ".join(f"{view} {width:,}" for view, width in widths.items())
    cost = f"about {format_bytes(n_bytes)} beyond the tables"
    return SearchPlan(
        links, widths, f"{cost}: features of each item ({shown}), then {how}"
    )


def _map_width(X: Any, links: Links, view: str) -> int:
    """Return the number of features of a map: columns, and landmarks of kernels."""
    n_items, width = X.shape
    n_linear = N_COMPONENTS if min(X.shape) > N_COMPONENTS else width
    labelled = links.labelled(view)
    n_landmarks = landmark_count(n_items, 0 if labelled is None else labelled.sum())
    return n_linear + n_landmarks * (2 if view in links.views else 1)


def _table_bytes(X: Any) -> int:
    """Return the bytes of a table."""
    if sparse.issparse(X):
        return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return X.nbytes

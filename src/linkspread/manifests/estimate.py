"""What featurizing would take, measured on a few items."""

import time
import tracemalloc
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone

from linkspread.features import read_picture
from linkspread.ground.errors import LinkspreadError
from linkspread.manifests.collection import ItemCollection, ViewItems
from linkspread.manifests.contents import UnreadableContent, look_at, read_text
from linkspread.manifests.learning import N_LEARNT
from linkspread.manifests.states import is_fitted

# Items that are tried, spread over the view.
N_TRIED = {"picture": 8, "text": 200}


class ViewEstimate(NamedTuple):
    """Tell what the features of a view would take, about."""

    n_items: int
    kind: str
    transformer: str
    n_tried: int
    seconds: float
    memory: int
    disk: int


def estimate_views(
    collection: ItemCollection, transformers: Mapping[str, Any]
) -> dict[str, ViewEstimate]:
    """Return what featurizing each view would take, measured on a few items."""
    return {
        view: _estimate(items, transformers[view])
        for view, items in collection.views.items()
    }


def _estimate(items: ViewItems, transformer: Any) -> ViewEstimate:
    """Return what the items of a view would take."""
    n, kind, name = len(items.ids), items.kind, type(transformer).__name__
    places = np.unique(np.linspace(0, n - 1, min(n, N_TRIED[kind]), dtype=int))
    tried = _readable(items, places)
    if not tried:
        return ViewEstimate(n, kind, name, 0, 0.0, 0, 0)
    tracemalloc.start()
    try:
        learning, describing, X = _measure(transformer, tried)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    if kind == "text":
        # Watching memory slows texts down, and the first call makes its tables.
        learning, describing, X = _measure(transformer, tried)
    n_bytes = X.data.nbytes + X.indices.nbytes if sparse.issparse(X) else X.nbytes
    share = n / len(tried)
    if kind == "text":
        return ViewEstimate(
            *(n, kind, name, len(tried), (learning + describing) * share),
            *(int(peak * share), int(n_bytes * share)),
        )
    # A codebook takes as long for many pictures as for few, beside describing these.
    each = describing / len(tried)
    more = 0 if is_fitted(transformer) else min(n, N_LEARNT) - len(tried)
    seconds = learning + each * (n + max(more, 0))
    return ViewEstimate(n, kind, name, len(tried), seconds, peak, int(n_bytes * share))


def _measure(transformer: Any, tried: list[Any]) -> tuple[float, float, Any]:
    """Return the seconds of learning and of describing, and the rows."""
    start = time.perf_counter()
    fitted = transformer
    if not is_fitted(transformer):
        fitted = clone(transformer).fit(tried)
    middle = time.perf_counter()
    X = fitted.transform(tried)
    X = X.astype(np.float32)
    return middle - start, time.perf_counter() - middle, X


def _readable(items: ViewItems, places: Any) -> list[Any]:
    """Return what a transformer takes of those items that can be read."""
    found = []
    for place in places:
        content = items.contents[place]
        try:
            look_at(content, items.kind)
            if items.kind == "picture":
                read_picture(content)
            found.append(content if items.kind == "picture" else read_text(content))
        except (UnreadableContent, LinkspreadError):
            continue
    return found

"""Which items a search may find: some only, without some, not those judged before."""

from typing import Any

import numpy as np
from scipy import sparse

from linkspread.ground.errors import LinkspreadError
from linkspread.links import Items
from linkspread.models.queries import choose_positions

Array = np.ndarray


def choose_open(only: Any, exclude: Any, items: Items) -> Array | None:
    """Return the positions that queries may find, or None for all."""
    if only is None and exclude is None:
        return None
    is_open = np.full(items.n_items, only is None)
    if only is not None:
        is_open[choose_positions(only, items, name="only")] = True
    if exclude is not None:
        is_open[choose_positions(exclude, items, name="exclude")] = False
    return np.flatnonzero(is_open)


def bar_pairs(
    model: Any, own: Array | None, source: str, target: str, *, judged: bool
) -> sparse.csr_array | None:
    """Return what each query may not find: itself, and perhaps what is judged."""
    _check_judged(model, judged)
    barred = None
    if own is not None and source == target:
        barred = _own_items(own, model.items_[target].n_items)
    if own is not None and not judged:
        pairs = model.links_.judged(source, target)[own]
        # No item is linked to itself, so that nothing cancels.
        barred = pairs if barred is None else (barred + pairs).tocsr()
    return barred


def _own_items(own: Array, n_items: int) -> sparse.csr_array:
    """Return a matrix with one entry in each row, at the query's own position."""
    parts = np.ones(len(own)), own, np.arange(len(own) + 1)
    return sparse.csr_array(parts, shape=(len(own), n_items))


def _check_judged(model: Any, judged: Any) -> None:
    """Refuse what is no truth value, and models that keep no links."""
    if not isinstance(judged, bool | np.bool_):
        raise LinkspreadError(
            f"`judged` must be True or False, got {judged!r:.60}. Name items that are "
            "not to be found in `exclude`."
        )
    if not judged and not hasattr(model, "links_"):
        raise LinkspreadError(
            f"`judged` must be True for {type(model).__name__}, which keeps no links, "
            "got False. Name the items in `exclude` instead."
        )

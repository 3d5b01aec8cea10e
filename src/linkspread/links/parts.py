"""Parts of links: those of some items only, those without some items, some pairs."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.ground.errors import LinkError
from linkspread.links.tables import PairTable

Array = np.ndarray
Labels = Mapping[str, Any]
Pairs = Sequence[tuple[tuple[str, str], PairTable]]


def hide_labels(labels: Labels, hidden: Mapping[str, Array]) -> dict[str, Any]:
    """Return memberships in which the rows of some items are zero."""
    return {
        view: _without_rows(memberships, hidden[view])
        if view in hidden
        else memberships
        for view, memberships in labels.items()
    }


def hide_pairs(pairs: Pairs, hidden: Mapping[str, Array]) -> list[Any]:
    """Return the pairs in which none of some items takes part."""
    kept = []
    for between, table in pairs:
        sides = zip(between, table.known_positions(between), strict=True)
        touched = [np.isin(own, hidden.get(view, [])) for view, own in sides]
        kept.append((between, table.take(~(touched[0] | touched[1]))))
    return kept


def pick_pairs(pairs: Pairs, chosen: Array) -> list[Any]:
    """Return some of the pairs of all tables."""
    chosen = np.asarray(chosen)
    ends = np.cumsum([len(table) for _, table in pairs])
    n_pairs = int(ends[-1]) if len(ends) else 0
    if chosen.shape != (n_pairs,) or chosen.dtype != bool:
        raise LinkError(
            f"`chosen` must be a mask of all {n_pairs:,} pairs, got {chosen.dtype} of "
            f"shape {chosen.shape}. Give one True or False per pair."
        )
    masks = np.split(chosen, ends[:-1])
    return [(b, table.take(m)) for (b, table), m in zip(pairs, masks, strict=True)]


def select_labels(labels: Labels, selected: Mapping[str, Array]) -> dict[str, Any]:
    """Return the memberships of some items only."""
    return {
        view: memberships[selected[view]] if view in selected else memberships
        for view, memberships in labels.items()
    }


def select_pairs(pairs: Pairs, selected: Mapping[str, Array]) -> list[Any]:
    """Return the pairs among some items, by their positions among these."""
    kept = []
    for between, table in pairs:
        places = [
            _places(own, selected.get(view))
            for view, own in zip(between, table.known_positions(between), strict=True)
        ]
        both = (places[0] >= 0) & (places[1] >= 0)
        left, right = places[0][both], places[1][both]
        weights = table.weights[both]
        kept.append((between, _by_position(left, right, weights)))
    return kept


def _by_position(left: Array, right: Array, weights: Array) -> PairTable:
    """Return pairs of items whose ids went with the others' when they were chosen."""
    return PairTable(left, right, weights, (left, right), by_row=True)


def _without_rows(memberships: Any, hidden: Array) -> Any:
    """Return memberships whose given rows are zero, in the form they have."""
    shown = np.ones(memberships.shape[0])
    shown[hidden] = 0
    if sparse.issparse(memberships):
        return sparse.csr_array(sparse.diags_array(shown) @ memberships)
    return memberships * shown[:, None]


def _places(positions: Array, selected: Array | None) -> Array:
    """Return where positions stand among those selected, -1 for nowhere."""
    if selected is None:
        return positions
    places = np.full(max(positions.max(initial=-1), selected.max(initial=-1)) + 1, -1)
    places[selected] = np.arange(len(selected))
    return places[positions]

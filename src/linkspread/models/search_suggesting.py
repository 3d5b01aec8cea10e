"""What to judge next, for a search whose views have maps."""

from typing import Any

import numpy as np
from scipy.linalg import eigh

from linkspread.judging.suggestion import N_DIRECTIONS
from linkspread.learning import ViewMap
from linkspread.models.suggesting import Suggesting

Array = np.ndarray

# Rows of a map that are looked at at once.
TILE = 4096


class SearchSuggesting(Suggesting):
    """Suggest pairs to judge by the maps of the views; a part of CrossViewSearch.

    Representatives are chosen as for spread links, by heat on the graph. On synthetic
    classes answers to these pairs taught a search no more than those to random pairs.
    """

    _maps: dict[str, ViewMap]
    _direction: Any

    def _diffused(self, view: str, seed: int) -> Array:
        return leading_features(self._maps[view])

    def _check_suggested(self, source: str, target: str) -> None:
        self._direction(source, target)


def leading_features(map_: ViewMap) -> Array:
    """Return the leading directions of how alike the items of a view are."""
    name = "graph" if map_.has("graph") else "gaussian"
    block, columns = map_.blocks[name], map_.columns(name)
    width = columns.stop - columns.start

    def kernel_features(start: int) -> Array:
        """Return features as the kernel has them, which are not centred."""
        centred = map_.values[start : start + TILE, columns].astype(np.float64)
        return centred * block.size + block.mean

    starts = range(0, map_.n_items, TILE)
    gram = np.zeros((width, width))
    for start in starts:
        rows = kernel_features(start)
        gram += rows.T @ rows
    first = max(width - N_DIRECTIONS, 0)
    _, directions = eigh(gram, subset_by_index=(first, width - 1))
    return np.vstack([kernel_features(start) @ directions for start in starts])

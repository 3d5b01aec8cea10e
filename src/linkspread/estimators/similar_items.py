"""The fitted items that are near new rows, as plain data that is called with rows."""

from dataclasses import dataclass
from typing import Any

from scipy import sparse

from linkspread.estimators.graph_choice import similarities

__all__ = ["SimilarItems"]


@dataclass(frozen=True, eq=False)
class SimilarItems:
    """Normalised similarities of new rows to the items of a fitted graph.

    Attributes
    ----------
    graph : object with `affinity_` and `extend`
    view : str
        For messages.
    """

    graph: Any
    view: str

    def __call__(self, rows: Any) -> sparse.csr_array:
        """Return the similarities of shape (q, n_items)."""
        return similarities(self.graph, rows, view=self.view)

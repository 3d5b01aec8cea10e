"""``objective="spread"``: the paper's, links spread over the graphs of both views."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.estimators.graph_choice import similarities
from linkspread.estimators.link_choice import largest_rank
from linkspread.estimators.objective import Objective
from linkspread.estimators.score_blocks import check_block, exact_block
from linkspread.exceptions import LinkspreadError
from linkspread.propagation import Spread, spread_links

__all__ = ["SpreadObjective"]

Array = np.ndarray


@dataclass(kw_only=True)
class SpreadObjective(Objective):
    """Spread links by the two-sided filter.

    Attributes
    ----------
    graphs : mapping from str to object with `affinity_` and `extend`
    normalized : mapping from str to csr_array
        The graphs, normalised.
    alphas : mapping from str to float
    beta : float
    """

    graphs: Mapping[str, Any]
    normalized: Mapping[str, sparse.csr_array]
    alphas: Mapping[str, float]
    beta: float

    def scores(self, source: str, target: str) -> Spread:
        """Return the spread links of two views.

        Parameters
        ----------
        source, target : str

        Returns
        -------
        spread : Spread
        """
        S_x, Z, S_y = self._arrows(source, target)
        rank = largest_rank(Z, self.rank)
        return spread_links(S_x, Z, S_y, rank=rank, **self._filter(source, target))

    def embed(self, scores: Any, rows: Any, view: str) -> Array:
        """Return the vectors with which new items of the first view search.

        Parameters
        ----------
        scores : Spread
        rows : table of shape (q, n_features)
        view : str

        Returns
        -------
        vectors : ndarray of shape (q, r)
        """
        if self.alphas[view] == 0:
            raise LinkspreadError(
                f"new items of view {view!r} learn from their neighbours, and `alpha` "
                "is 0 there, so that nothing reaches them. Fit with a larger `alpha`."
            )
        return scores.unseen_queries(similarities(self.graphs[view], rows, view=view))

    def exact_scores(
        self, source: str, target: str, i: Array, j: Array, max_bytes: float
    ) -> Array:
        """Return a block of scores without truncation of rank.

        Parameters
        ----------
        source, target : str
        i, j : ndarray of int
            Positions in the two views.
        max_bytes : float
            Refuse a block that would be larger.

        Returns
        -------
        block : ndarray of shape (n_rows, n_cols)
        """
        S_x, Z, S_y = self._arrows(source, target)
        check_block(len(i), len(j), S_x.dtype, max_bytes)
        return exact_block(S_x, Z, S_y, i, j, **self._filter(source, target))

    def _arrows(self, source: str, target: str) -> tuple[Any, Any, Any]:
        """Return the graphs of two views and the links between them."""
        Z = self.links.between(source, target, balance=self.balance)
        return self.normalized[source], Z, self.normalized[target]

    def _filter(self, source: str, target: str) -> dict[str, Any]:
        """Return the parameters of the propagation between two views."""
        alpha = (self.alphas[source], self.alphas[target])
        return {"alpha": alpha, "beta": self.beta, "tol": self.tol}

"""``objective="spread"``: the paper's, links spread over the graphs of both views."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.estimators.graph_choice import similarities
from linkspread.estimators.objective import Objective, changed_views
from linkspread.exceptions import LinkspreadError
from linkspread.links import Links, as_link_matrix
from linkspread.propagation import Spread, spread_links
from linkspread.propagation.parameters import same_precision
from linkspread.propagation.rows import SpreadRows, has_short_vectors

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

    def scores(self, source: str, target: str) -> Spread | SpreadRows:
        """Return the spread links of two views.

        Parameters
        ----------
        source, target : str

        Returns
        -------
        spread : Spread or SpreadRows
            Vectors where short ones are exact, or where a rank was asked for; else
            exact rows.
        """
        if not self.keeps_vectors(source, target):
            return self.rows(source, target)
        arrows, settings = self._arrows(source, target), self._filter(source, target)
        return spread_links(*arrows, rank=self.rank, **settings)

    def keeps_vectors(self, source: str, target: str) -> bool:
        """Tell whether scores come from vectors, and not from rows on demand."""
        _, Z, _ = self._arrows(source, target)
        settings = self._filter(source, target)
        return self.rank is not None or has_short_vectors(Z, **settings)

    def rows(self, source: str, target: str) -> SpreadRows:
        """Return the scores of two views as rows that are computed on demand."""
        S_x, Z, S_y = self._arrows(source, target)
        # Normalised here, so that every judgement need not check them again.
        S_x, S_y = same_precision(S_x, S_y)
        settings = self._filter(source, target)
        return SpreadRows(S_x, as_link_matrix(Z), S_y, **settings)

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
        return scores.unseen_queries(self.similarities(rows, view))

    def similarities(self, rows: Any, view: str) -> sparse.csr_array:
        """Return the normalised similarities of new items to the fitted ones."""
        if self.alphas[view] == 0:
            raise LinkspreadError(
                f"new items of view {view!r} learn from their neighbours, and `alpha` "
                "is 0 there, so that nothing reaches them. Fit with a larger `alpha`."
            )
        return similarities(self.graphs[view], rows, view=view)

    def relink(
        self, links: Links, scores: Mapping[tuple[str, str], Any]
    ) -> dict[tuple[str, str], Any]:
        """Take up changed links; return the scores that change with them.

        Parameters
        ----------
        links : Links
        scores : mapping from (str, str) to Spread or SpreadRows

        Returns
        -------
        scores : dict from (str, str) to SpreadRows
            Rows on demand: they follow any change exactly, and at no cost.
        """
        changed = changed_views(self.links, links, scores)
        after = replace(self, links=links)
        rows = {pair: after.rows(*pair) for pair in changed}
        self.links = links
        return rows

    def _arrows(self, source: str, target: str) -> tuple[Any, Any, Any]:
        """Return the graphs of two views and the links between them."""
        Z = self.links.between(source, target, balance=self.balance)
        return self.normalized[source], Z, self.normalized[target]

    def _filter(self, source: str, target: str) -> dict[str, Any]:
        """Return the parameters of the propagation between two views."""
        alpha = (self.alphas[source], self.alphas[target])
        return {"alpha": alpha, "beta": self.beta, "tol": self.tol}

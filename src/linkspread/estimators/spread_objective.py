"""``objective="spread"``: the paper's, links spread over the graphs of both views."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.estimators.graph_choice import similarities
from linkspread.estimators.link_choice import largest_rank, largest_rank_of_pairs
from linkspread.estimators.objective import Objective, changed_views
from linkspread.estimators.score_blocks import check_block, exact_block
from linkspread.exceptions import LinkspreadError
from linkspread.links import Links, as_link_matrix
from linkspread.links.balance import cannot_weight
from linkspread.propagation import Spread, spread_links
from linkspread.propagation.live import LiveSpread

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
    live: dict[tuple[str, str], LiveSpread] = field(default_factory=dict, repr=False)

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

    def relink(
        self, links: Links, scores: Mapping[tuple[str, str], Any]
    ) -> dict[tuple[str, str], Spread]:
        """Take up changed links; return the scores that change with them.

        Parameters
        ----------
        links : Links
        scores : mapping from (str, str) to Spread

        Returns
        -------
        scores : dict from (str, str) to Spread
        """
        changed = changed_views(self.links, links, scores)
        for pair in changed:
            if pair not in self.live:
                self.live[pair] = self._go_live(pair, self.links, scores[pair])
            self._follow(pair, links)
        self.links = links
        return {pair: self.live[pair].spread() for pair in changed}

    def _go_live(
        self, pair: tuple[str, str], links: Links, spread: Spread | None = None
    ) -> LiveSpread:
        """Return spread links that can change; those of a fit if they will do."""
        pairs = links.judged(*pair)
        parts: list[Any] = [spread, None, None]
        if spread is None or (pairs.nnz and self.balance == "auto"):
            # What a cannot-link weighs will change with every other link.
            Z = as_link_matrix(links.between(*pair, balance=self.balance))
            labels = replace(Z, pairs=sparse.csr_array(Z.shape))
            parts = [labels if Z.core.size else None, *_must_and_cannot(pairs)]
        return LiveSpread(
            self.normalized[pair[0]],
            self.normalized[pair[1]],
            [None if part is None or _is_empty(part) else part for part in parts],
            self._part_weights(pairs),
            rank=largest_rank_of_pairs(pairs.shape, self.rank),
            **self._filter(*pair),
        )

    def _follow(self, pair: tuple[str, str], links: Links) -> None:
        """Spread what is new in the links of two views, and take away what is gone."""
        live, after = self.live[pair], links.judged(*pair)
        before = _must_and_cannot(self.links.judged(*pair))
        for k, now in enumerate(_must_and_cannot(after)):
            live.add(k + 1, (now - before[k]).tocsr())
        live.weigh(self._part_weights(after))
        if live.is_stale:
            self.live[pair] = self._go_live(pair, links)

    def _part_weights(self, pairs: sparse.csr_array) -> tuple[float, float, float]:
        """Return the weights of labels, of must-links and of cannot-links."""
        return 1.0, 1.0, -cannot_weight(pairs, self.balance)

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


def _must_and_cannot(
    pairs: sparse.csr_array,
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return the weights of must-links and those of cannot-links, all above 0."""
    return sparse.csr_array(pairs.maximum(0)), sparse.csr_array((-pairs).maximum(0))


def _is_empty(part: Any) -> bool:
    """Tell whether a matrix has no entry at all."""
    return sparse.issparse(part) and part.nnz == 0

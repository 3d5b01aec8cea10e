"""Links spread over the graphs of two views: what makes the scores of a model."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.graphs import normalize
from linkspread.ground.errors import LinkspreadError
from linkspread.links import Links, as_link_matrix
from linkspread.links.balance import Balance
from linkspread.models.graph_choice import similarities
from linkspread.propagation import Spread, spread_links
from linkspread.propagation.parameters import same_precision
from linkspread.propagation.rows import ChainedRows, SpreadRows, has_short_vectors

Array = np.ndarray
ViewPair = tuple[str, str]


@dataclass(kw_only=True)
class Spreading:
    """Spread the links between two views by the two-sided filter."""

    links: Links
    graphs: Mapping[str, Any]
    normalized: Mapping[str, sparse.csr_array]
    alphas: Mapping[str, float]
    beta: float
    balance: Balance
    rank: int | None
    tol: float

    @classmethod
    def of(
        cls,
        model: Any,
        links: Links,
        graphs: Mapping[str, Any],
        alphas: Mapping[str, float],
        *,
        normalized: Mapping[str, sparse.csr_array] | None = None,
    ) -> "Spreading":
        """Return what makes scores of links, with the parameters of a model."""
        if normalized is None:
            normalized = {
                view: normalize(own.affinity_) for view, own in graphs.items()
            }
        return cls(
            links=links,
            graphs=graphs,
            normalized=normalized,
            alphas=alphas,
            beta=model.beta,
            balance=model.balance,
            rank=model.rank,
            tol=model.tol,
        )

    def scores(self, source: str, target: str) -> Spread | SpreadRows:
        """Return the spread links of two views."""
        if not self.keeps_vectors(source, target):
            return self.rows(source, target)
        arrows, settings = self.arrows(source, target), self.settings(source, target)
        return spread_links(*arrows, rank=self.rank, **settings)

    def keeps_vectors(self, source: str, target: str) -> bool:
        """Tell whether scores come from vectors, and not from rows on demand."""
        _, Z, _ = self.arrows(source, target)
        settings = self.settings(source, target)
        return self.rank is not None or has_short_vectors(Z, **settings)

    def rows(self, source: str, target: str) -> SpreadRows:
        """Return the scores of two views as rows that are computed on demand."""
        S_x, Z, S_y = self.arrows(source, target)
        # Normalised here, so that every judgement need not check them again.
        S_x, S_y = same_precision(S_x, S_y)
        settings = self.settings(source, target)
        return SpreadRows(S_x, as_link_matrix(Z), S_y, **settings)

    def embed(self, scores: Any, rows: Any, view: str) -> Array:
        """Return the vectors with which new items of the first view search."""
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
        self, links: Links, scores: Mapping[ViewPair, Any]
    ) -> dict[ViewPair, SpreadRows]:
        """Take up changed links; return the scores that change with them."""
        after = replace(self, links=links)
        rows = {
            pair: after.rows(*pair)
            for pair in scores
            if (links.judged(*pair) - self.links.judged(*pair)).count_nonzero()
        }
        self.links = links
        return rows

    def arrows(self, source: str, target: str) -> tuple[Any, Any, Any]:
        """Return the graphs of two views, and between them their links."""
        Z = self.links.between(source, target, balance=self.balance)
        return self.normalized[source], Z, self.normalized[target]

    def settings(self, source: str, target: str) -> dict[str, Any]:
        """Return the parameters of the propagation between two views."""
        alpha = (self.alphas[source], self.alphas[target])
        return {"alpha": alpha, "beta": self.beta, "tol": self.tol}


def chain_scores(steps: list[Any]) -> Any:
    """Return the scores of views that no link joins, through views in between.

    An audio and an image that no one ever compared score what the texts between them
    say: ``F[audio, image] = F[audio, text] @ F[text, image]``.
    """
    return reduce(_multiply, steps)


def _multiply(first: Any, second: Any) -> Any:
    """Return the product of two scores, in the form of its factors."""
    if isinstance(first, Spread) and isinstance(second, Spread):
        return first.times(second)
    return ChainedRows(first, second)

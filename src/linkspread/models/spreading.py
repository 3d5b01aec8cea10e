"""The propagation of LinkSpreading: parameters, scores and a report."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.graphs import normalize
from linkspread.ground.checks import check_count, naming
from linkspread.ground.errors import LinkspreadError
from linkspread.ground.progress import format_seconds
from linkspread.links import Links, as_link_matrix
from linkspread.links.matrix import Balance, check_balance
from linkspread.models.view_graphs import similarities
from linkspread.propagation import Spread, spread_links
from linkspread.propagation.exact import (
    check_alpha_pair,
    check_beta,
    check_tol,
    same_precision,
)
from linkspread.propagation.rows import (
    ChainedRows,
    ScoreRows,
    SpreadRows,
    has_short_vectors,
)
from linkspread.tables.validation import per_view

Array = np.ndarray
ViewPair = tuple[str, str]
Scores = Spread | ScoreRows

# Relative error that single precision alone causes.
ROUNDING = 1e-5


def _check_rank(rank: Any) -> None:
    """Refuse a `rank` that is neither None nor a positive integer."""
    if rank is not None:
        check_count(rank, name="rank", remedy="None keeps what `tol` needs.")


# Checks of the parameters that all views share; `alpha` is given by view.
CONSTRAINTS: Mapping[str, Callable[[Any], Any]] = {
    "beta": check_beta,
    "tol": check_tol,
    "balance": check_balance,
    "rank": _check_rank,
}


def check_parameters(model: Any) -> None:
    """Refuse wrong values of the parameters that all views share."""
    for name, check in CONSTRAINTS.items():
        check(getattr(model, name))


def check_alphas(alpha: Any, views: Mapping[str, Any]) -> dict[str, float]:
    """Return how far links spread in each view."""
    alphas = {}
    for view, value in per_view(alpha, views, name="alpha").items():
        with naming(view):
            alphas[view] = check_alpha_pair((value, value))[0]
    return alphas


def check_adjustment(
    adjustment: Any, alphas: Mapping[str, float], beta: float
) -> dict[str, dict[str, float]]:
    """Return how links spread within each view when they adjust its graph."""
    given = {} if adjustment is None else adjustment
    if not isinstance(given, Mapping) or given.keys() - {"alpha", "beta"}:
        raise LinkspreadError(
            "`adjustment` must be a dict with 'alpha' and 'beta' at most, got "
            f'{adjustment!r:.60}. Write {{"alpha": 0.1}} or leave it at None.'
        )
    own = check_alphas(given["alpha"], alphas) if "alpha" in given else alphas
    own_beta = check_beta(given.get("beta", beta))
    return {view: {"alpha": own[view], "beta": own_beta} for view in alphas}


@dataclass(frozen=True)
class GraphReport:
    """The graph of one view."""

    n_items: int
    n_edges: int
    n_isolated: int
    mean_degree: float
    seconds: float

    @classmethod
    def of(cls, W: Any, seconds: float) -> "GraphReport":
        """Count the edges of a graph."""
        degrees = np.diff(W.indptr) - (W.diagonal() != 0)
        return cls(
            n_items=W.shape[0],
            n_edges=int(degrees.sum()) // 2,
            n_isolated=int(np.sum(degrees == 0)),
            mean_degree=float(degrees.mean()),
            seconds=seconds,
        )


@dataclass(frozen=True)
class SpreadReport:
    """The propagation between two views; `rank` is None for exact rows."""

    rank: int | None
    error: float
    seconds: float

    @classmethod
    def of(cls, scores: Any, seconds: float) -> "SpreadReport":
        """Report on the scores of two views, a Spread or SpreadRows."""
        by_row = isinstance(scores, SpreadRows)
        rank = None if by_row else max(scores.core.shape)
        return cls(rank, scores.error, seconds)

    def __str__(self) -> str:
        size = "exact rows" if self.rank is None else f"{self.rank:,} dimensions"
        return f"{size}, error {self.error:.1e}"


@dataclass
class FitReport:
    """Columns, graphs and propagations of a fit; print it."""

    graphs: dict[str, GraphReport] = field(default_factory=dict)
    spreads: dict[ViewPair, SpreadReport] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)

    def inexact(self, tol: float) -> list[str]:
        """Return sentences on the scores that are less exact than `tol`."""
        return [
            f"scores of {a} and {b} are cut to {s.rank:,} dimensions: their relative "
            f"error is {s.error:.2g}, more than tol={tol:g}."
            for (a, b), s in self.spreads.items()
            if s.rank is not None and s.error > max(2 * tol, ROUNDING)
        ]

    def __str__(self) -> str:
        lines = [f"{view}: {columns}" for view, columns in self.columns.items()]
        lines += [
            f"{view}: {g.n_items:,} items, {g.n_edges:,} edges, "
            f"{g.mean_degree:.1f} neighbours each, {g.n_isolated:,} isolated, "
            f"{format_seconds(g.seconds)}"
            for view, g in self.graphs.items()
        ]
        lines += [
            f"{a} and {b}: {s}, {format_seconds(s.seconds)}"
            for (a, b), s in self.spreads.items()
        ]
        return "\n".join(lines)


@dataclass(kw_only=True, frozen=True)
class Spreading:
    """Propagate the links between two views by the two-sided filter."""

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
        """Return the propagation with the parameters of a model."""
        if normalized is None:
            normalized = {
                view: normalize(own.affinity_) for view, own in graphs.items()
            }
        shared = {name: getattr(model, name) for name in CONSTRAINTS}
        return cls(
            links=links, graphs=graphs, normalized=normalized, alphas=alphas, **shared
        )

    def scores(self, source: str, target: str) -> Spread | SpreadRows:
        """Return the propagated links of two views."""
        if not self.keeps_vectors(source, target):
            return self.rows(source, target)
        S_x, Z, S_y = self.operands(source, target)
        settings = self.settings(source, target)
        return spread_links(S_x, Z, S_y, rank=self.rank, **settings)

    def timed_scores(
        self, source: str, target: str
    ) -> tuple[Spread | SpreadRows, SpreadReport]:
        """Return the propagated links of two views, and a report about them."""
        start = time.perf_counter()
        scores = self.scores(source, target)
        return scores, SpreadReport.of(scores, time.perf_counter() - start)

    def keeps_vectors(self, source: str, target: str) -> bool:
        """Return whether scores come from vectors, not from rows on demand."""
        _, Z, _ = self.operands(source, target)
        settings = self.settings(source, target)
        return self.rank is not None or has_short_vectors(Z, **settings)

    def rows(self, source: str, target: str) -> SpreadRows:
        """Return the scores of two views as rows that are computed on demand."""
        S_x, Z, S_y = self.operands(source, target)
        # Here, so that it is not done again for every judgement.
        S_x, S_y = same_precision(S_x, S_y)
        settings = self.settings(source, target)
        return SpreadRows(S_x, as_link_matrix(Z), S_y, **settings)

    def similarities(self, rows: Any, view: str) -> sparse.csr_array:
        """Return the normalised similarities of new items to the fitted ones."""
        if self.alphas[view] == 0:
            raise LinkspreadError(
                f"`alpha` of view {view!r} must be above 0 for new items, which learn "
                "from their neighbours alone, got 0. Fit with a larger `alpha`."
            )
        return similarities(self.graphs[view], rows, view=view)

    def relink(
        self, links: Links, scores: Mapping[ViewPair, Any]
    ) -> tuple["Spreading", dict[ViewPair, SpreadRows]]:
        """Return the propagation with other links, and the scores that change."""
        after = replace(self, links=links)
        return after, {
            pair: after.rows(*pair)
            for pair in scores
            if (links.judged(*pair) - self.links.judged(*pair)).count_nonzero()
        }

    def operands(self, source: str, target: str) -> tuple[Any, Any, Any]:
        """Return (S_x, Z, S_y): both normalised graphs and the links between them."""
        Z = self.links.between(source, target, balance=self.balance)
        return self.normalized[source], Z, self.normalized[target]

    def settings(self, source: str, target: str) -> dict[str, Any]:
        """Return the parameters of the propagation between two views."""
        alpha = (self.alphas[source], self.alphas[target])
        return {"alpha": alpha, "beta": self.beta, "tol": self.tol}


def chain_scores(steps: list[Scores]) -> Scores:
    """Return the scores of two views without links, through views in between.

    Such as ``F[audio, image] = F[audio, text] @ F[text, image]``.
    """

    def multiply(first: Scores, second: Scores) -> Scores:
        if isinstance(first, Spread) and isinstance(second, Spread):
            return first.times(second)
        return ChainedRows(first, second)

    return reduce(multiply, steps)

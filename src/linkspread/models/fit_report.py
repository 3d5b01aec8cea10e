"""What a fit did: sizes, degrees, ranks, errors and times."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linkspread.ground.progress import format_seconds
from linkspread.propagation.rows import SpreadRows

# Errors that single precision alone explains.
ROUNDING = 1e-5


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
    """The propagation between two views."""

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
    """All that a fit did; print it."""

    graphs: dict[str, GraphReport] = field(default_factory=dict)
    spreads: dict[tuple[str, str], SpreadReport] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)

    def inexact(self, tol: float) -> list[str]:
        """Say which scores are less exact than `tol`, and how much so."""
        return [
            f"scores of {a} and {b} are cut to {s.rank:,} dimensions: their relative "
            f"error is {s.error:.2g}, more than tol={tol:g}."
            for (a, b), s in self.spreads.items()
            if s.rank is not None and s.error > max(2 * tol, ROUNDING)
        ]

    def __str__(self) -> str:
        lines = [f"{view}: {told}" for view, told in self.columns.items()]
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

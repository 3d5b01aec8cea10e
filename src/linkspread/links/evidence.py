"""Evidence: the links of two views as plain arrays, for the learner."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from linkspread.links.collection import Links
from linkspread.links.pairs import judged_cells

Array = np.ndarray
Judged = tuple[Array, Array, Array]

# Share of items with several must-links above which these join classes.
SEVERAL = 0.1


class Change(NamedTuple):
    """A pair whose weight changed; weights are below 0 for cannot."""

    i: int
    j: int
    before: float
    after: float

    @property
    def n_musts(self) -> int:
        """Change in the number of must-links: 1, 0 or -1."""
        return int(self.after > 0) - int(self.before > 0)


@dataclass(frozen=True)
class Evidence:
    """Judged pairs of two views, and the labels that both have.

    Within one view every pair is stored in both orders.
    """

    must: Judged  # positions of the items of each pair, and positive weights
    cannot: Judged
    # (n_items, n_classes) for both views; rows of labelled items sum to 1.
    labels: tuple[Any, Any] | None = None

    @property
    def n_pairs(self) -> int:
        """Number of judged pairs."""
        return len(self.must[0]) + len(self.cannot[0])

    def judged_items(self) -> tuple[Array, Array]:
        """Return the items of each view that are in a judged pair."""
        i, j, _ = self.signed()
        return np.unique(i).astype(np.intp), np.unique(j).astype(np.intp)

    def are_partners(self) -> bool:
        """Return whether must-links join partners: few items have several."""
        counts = [np.unique(own, return_counts=True)[1] for own in self.must[:2]]
        return all(np.mean(own > 1) <= SEVERAL for own in counts)

    def targets(self) -> tuple[Array, Array, Array, Array]:
        """Return all pairs with their regression targets and weights.

        Targets are 1 for must and 0 for cannot, minus their mean, so that the 0 that a
        fit predicts for other pairs is the average. With pairs of one kind only they
        are 1, or -1.
        """
        i, j, signed = self.signed()
        weights = np.abs(signed)
        share = weights[signed > 0].sum() / weights.sum()
        if 0 < share < 1:
            return i, j, np.where(signed > 0, 1 - share, -share), weights
        return i, j, np.sign(signed), weights

    def signed(self) -> Judged:
        """Return all pairs with their weights, below 0 for cannot."""
        i, j = (np.concatenate([self.must[k], self.cannot[k]]) for k in (0, 1))
        return i, j, np.concatenate([self.must[2], -self.cannot[2]])

    def sample(self, n_most: int, rng: np.random.Generator) -> "Evidence":
        """Return at most `n_most` pairs, half of each kind if possible."""
        n_must = min(len(self.must[0]), max(n_most // 2, n_most - len(self.cannot[0])))

        def some(judged: Judged, most: int) -> Judged:
            return _taken(judged, np.sort(rng.permutation(len(judged[0]))[:most]))

        must, cannot = some(self.must, n_must), some(self.cannot, n_most - n_must)
        return replace(self, must=must, cannot=cannot)

    def split(self, left: Array, right: Array) -> tuple["Evidence", "Evidence"]:
        """Return the evidence within some items of both views, and that without them.

        Items are masks. Pairs with only one item among them are in neither.
        """
        within, apart = (
            Evidence(
                _taken(self.must, a[self.must[0]] & b[self.must[1]]),
                _taken(self.cannot, a[self.cannot[0]] & b[self.cannot[1]]),
            )
            for a, b in ((left, right), (~left, ~right))
        )
        if self.labels is not None:
            labels = _scaled(self.labels[0], ~left), _scaled(self.labels[1], ~right)
            apart = replace(apart, labels=labels)
        return within, apart


def _taken(judged: Judged, some: Array) -> Judged:
    """Return some of the judged pairs."""
    return judged[0][some], judged[1][some], judged[2][some]


def read_evidence(
    links: Links, source: str, target: str, *, labels: bool = True
) -> Evidence:
    """Return the evidence of resolved links of two views, or of one twice."""
    i, j, weights = judged_cells(links.pair_tables, (source, target))
    # Repeated pairs are added. The result is sorted by row, then by column.
    n_cols = int(j.max(initial=0)) + 1
    cells, place = np.unique(i * n_cols + j, return_inverse=True)
    total = np.bincount(place, weights, minlength=len(cells))
    must, cannot = (
        (cells[own] // n_cols, cells[own] % n_cols, np.abs(total[own]))
        for own in (total > 0, total < 0)
    )
    return Evidence(must, cannot, _read_labels(links, source, target, labels))


def read_changes(
    before: Links, after: Links, cells: tuple[Array, Array], source: str, target: str
) -> list[Change]:
    """Return which of some pairs of two views have other weights than before."""
    changes = []
    views = source, target
    parts = [judged_cells(links.pair_tables, views) for links in (before, after)]
    for i, j in dict.fromkeys(zip(*(own.tolist() for own in cells), strict=True)):
        # Added one by one, as in `read_evidence`.
        old, new = (
            sum(w[(rows == i) & (cols == j)].tolist()) for rows, cols, w in parts
        )
        if old != new:
            changes.append(Change(i, j, float(old), float(new)))
    return changes


def _read_labels(links: Links, source: str, target: str, wanted: bool) -> Any:
    """Return the memberships in the classes of both views, or None."""
    one = links.memberships(source, shared_with=target) if wanted else None
    other = links.memberships(target, shared_with=source) if wanted else None
    if one is None or other is None:
        return None
    shares = []
    for table in (sp.csr_array(one), sp.csr_array(other)):
        total = np.asarray(table.sum(axis=1)).ravel()
        shares.append(_scaled(table, 1 / np.where(total > 0, total, 1)))
    return tuple(shares) if all(own.nnz for own in shares) else None


def _scaled(table: sp.csr_array, factors: Array) -> sp.csr_array:
    """Return a table with its rows multiplied by factors, without zeros."""
    scaled = sp.csr_array(sp.diags_array(factors.astype(float)) @ table)
    scaled.eliminate_zeros()
    return scaled

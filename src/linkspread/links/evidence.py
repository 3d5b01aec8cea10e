"""Evidence: the links of two views as plain arrays, for the learner."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from linkspread.links.collection import Links

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
        left, right = (
            np.union1d(self.must[side], self.cannot[side]).astype(np.intp)
            for side in (0, 1)
        )
        return left, right

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
        within, apart = self._between(left, right), self._between(~left, ~right)
        if self.labels is not None:
            labels = _scaled(self.labels[0], ~left), _scaled(self.labels[1], ~right)
            apart = replace(apart, labels=labels)
        return within, apart

    def _between(self, left: Array, right: Array) -> "Evidence":
        """Return the pairs within some items of both views, without labels."""
        both = self.must, self.cannot
        must, cannot = (_taken(own, left[own[0]] & right[own[1]]) for own in both)
        return Evidence(must, cannot)


def _taken(judged: Judged, some: Array) -> Judged:
    """Return some of the judged pairs."""
    return judged[0][some], judged[1][some], judged[2][some]


def read_evidence(
    links: Links, source: str, target: str, *, labels: bool = True
) -> Evidence:
    """Return the evidence of resolved links of two views, or of one twice."""
    i, j, weights = _given(links, source, target)
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
    parts = [_given(links, source, target) for links in (before, after)]
    for i, j in dict.fromkeys(zip(*(own.tolist() for own in cells), strict=True)):
        # Added one by one, as in `read_evidence`.
        old, new = (
            sum(w[(rows == i) & (cols == j)].tolist()) for rows, cols, w in parts
        )
        if old != new:
            changes.append(Change(i, j, float(old), float(new)))
    return changes


def _given(links: Links, source: str, target: str) -> Judged:
    """Return the given pairs of two views; those within one in both orders."""
    given = []
    for between, table in links.pair_tables:
        if between in ((source, target), (target, source)):
            i, j = table.known_positions(between)
            own = (i, j) if between == (source, target) else (j, i)
            given.append((*own, table.weights))
    if source == target:
        given += [(j, i, weights) for i, j, weights in given]
    if not given:
        return np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0)
    rows, cols, weights = (np.concatenate(own) for own in zip(*given, strict=True))
    return rows, cols, weights


def _read_labels(links: Links, source: str, target: str, wanted: bool) -> Any:
    """Return the memberships in the classes of both views, or None."""
    one = links.memberships(source, shared_with=target) if wanted else None
    other = links.memberships(target, shared_with=source) if wanted else None
    if one is None or other is None:
        return None
    shares = _shares(one), _shares(other)
    return shares if all(own.nnz for own in shares) else None


def _shares(memberships: Any) -> sp.csr_array:
    """Return memberships scaled to sum 1 for every labelled item."""
    table = sp.csr_array(memberships)
    total = np.asarray(table.sum(axis=1)).ravel()
    return _scaled(table, 1 / np.where(total > 0, total, 1))


def _scaled(table: sp.csr_array, factors: Array) -> sp.csr_array:
    """Return a table with its rows multiplied by factors, without zeros."""
    scaled = sp.csr_array(sp.diags_array(factors.astype(float)) @ table)
    scaled.eliminate_zeros()
    return scaled

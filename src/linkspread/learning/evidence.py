"""Evidence: what links say of the items of two views, as plain arrays."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from linkspread.links import Links

__all__ = ["Change", "Evidence", "read_changes", "read_evidence"]

Array = np.ndarray
Judged = tuple[Array, Array, Array]

# Share of items with several must-links above which these are of classes.
SEVERAL = 0.1


class Change(NamedTuple):
    """A pair whose judgement changed: positions, and weights, below 0 for cannot."""

    i: int
    j: int
    before: float
    after: float

    @property
    def n_musts(self) -> int:
        """How many must-links more there are: 1, 0 or -1."""
        return int(self.after > 0) - int(self.before > 0)


@dataclass(frozen=True)
class Evidence:
    """Judged pairs of two views, and the labels that both have.

    Parameters
    ----------
    must, cannot : tuple of (rows, cols, weights)
        Positions of the items of each pair, and positive weights. Within one view
        every pair stands in both orders.
    labels : tuple of two csr_array of shape (n_items, n_classes), default=None
        Memberships of both views, which sum to 1 where an item has any.
    """

    must: Judged
    cannot: Judged
    labels: tuple[Any, Any] | None = None

    @property
    def n_pairs(self) -> int:
        """Judged pairs of both kinds."""
        return len(self.must[0]) + len(self.cannot[0])

    def judged_items(self) -> tuple[Array, Array]:
        """Return the items of either view that any pair judges.

        Returns
        -------
        left, right : ndarray of int
        """
        left, right = (
            np.union1d(self.must[side], self.cannot[side]).astype(np.intp)
            for side in (0, 1)
        )
        return left, right

    def are_partners(self) -> bool:
        """Tell whether must-links are of partners: hardly an item has several.

        Returns
        -------
        are_partners : bool
        """
        counts = [np.unique(own, return_counts=True)[1] for own in self.must[:2]]
        return all(np.mean(own > 1) <= SEVERAL for own in counts)

    def targets(self) -> tuple[Array, Array, Array, Array]:
        """Return all pairs with what they are fitted to, and their weights.

        Targets are 1 and 0 less their mean, so that pairs nobody judged, of which a
        fit says 0, lie between must and cannot as chance would have it. Of pairs of
        one kind only they are 1, or -1.

        Returns
        -------
        rows, cols, targets, weights : ndarray of shape (n_pairs,)
        """
        i, j, signed = self.signed()
        weights = np.abs(signed)
        share = weights[signed > 0].sum() / weights.sum()
        if 0 < share < 1:
            return i, j, np.where(signed > 0, 1 - share, -share), weights
        return i, j, np.sign(signed), weights

    def signed(self) -> Judged:
        """Return all pairs with their weights, below 0 for cannot.

        Returns
        -------
        rows, cols, weights : ndarray of shape (n_pairs,)
        """
        i, j = (np.concatenate([self.must[k], self.cannot[k]]) for k in (0, 1))
        return i, j, np.concatenate([self.must[2], -self.cannot[2]])

    def sample(self, n_most: int, rng: np.random.Generator) -> "Evidence":
        """Return at most so many pairs, as many of both kinds where there are.

        Parameters
        ----------
        n_most : int
        rng : numpy.random.Generator

        Returns
        -------
        evidence : Evidence
        """
        n_must = min(len(self.must[0]), max(n_most // 2, n_most - len(self.cannot[0])))

        def some(judged: Judged, most: int) -> Judged:
            kept = np.sort(rng.permutation(len(judged[0]))[:most])
            return judged[0][kept], judged[1][kept], judged[2][kept]

        return replace(
            self,
            must=some(self.must, n_must),
            cannot=some(self.cannot, n_most - n_must),
        )

    def split(self, left: Array, right: Array) -> tuple["Evidence", "Evidence"]:
        """Return what is within some items of both views, and what touches none.

        Parameters
        ----------
        left, right : ndarray of bool of shape (n_items,)
            Masks of the items.

        Returns
        -------
        within, apart : Evidence
            Pairs with one item in a mask are in neither; labels of items in a mask
            are in neither too.
        """
        within, apart = [], []
        for i, j, weights in (self.must, self.cannot):
            inside, outside = left[i] & right[j], ~left[i] & ~right[j]
            within.append((i[inside], j[inside], weights[inside]))
            apart.append((i[outside], j[outside], weights[outside]))
        labels = None
        if self.labels is not None:
            labels = (
                _without(self.labels[0], left),
                _without(self.labels[1], right),
            )
        return Evidence(within[0], within[1]), Evidence(apart[0], apart[1], labels)


def read_evidence(
    links: Links, source: str, target: str, *, labels: bool = True
) -> Evidence:
    """Return what links say of two views, or of one where both are the same.

    Parameters
    ----------
    links : Links
        By position.
    source, target : str
    labels : bool, default=True
        Whether to read labels too.

    Returns
    -------
    evidence : Evidence

    Examples
    --------
    >>> import linkspread as ls
    >>> from linkspread.learning import read_evidence
    >>> pairs = [(0, 1), (1, 0, "cannot")]
    >>> links = ls.Links.from_pairs(pairs, between=("a", "b")).resolve({"a": 2, "b": 2})
    >>> read_evidence(links, "a", "b").cannot[0].tolist()
    [1]
    """
    i, j, weights = _given(links, source, target)
    # Given more than once they add up. By row, then by column, whatever their order.
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
    """Return which of some pairs of two views are judged otherwise than before."""
    changes = []
    parts = [_given(links, source, target) for links in (before, after)]
    for i, j in dict.fromkeys(zip(*(own.tolist() for own in cells), strict=True)):
        # One after the other, as `read_evidence` adds them.
        old, new = (
            sum(w[(rows == i) & (cols == j)].tolist()) for rows, cols, w in parts
        )
        if old != new:
            changes.append(Change(i, j, float(old), float(new)))
    return changes


def _given(links: Links, source: str, target: str) -> Judged:
    """Return the pairs of two views as they were given; within one in both orders."""
    rows, cols, weights = [], [], []
    for between, table in links.pair_tables:
        for way in dict.fromkeys([(source, target), (target, source)]):
            if between == way:
                i, j = table.known_positions(between)
                rows.append(i if way == (source, target) else j)
                cols.append(j if way == (source, target) else i)
                weights.append(table.weights)
    if source == target:
        rows, cols, weights = rows + cols, cols + rows, weights * 2
    if not rows:
        return np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0)
    return np.concatenate(rows), np.concatenate(cols), np.concatenate(weights)


def _read_labels(links: Links, source: str, target: str, wanted: bool) -> Any:
    """Return the shares of classes that both views have, or None."""
    one = links.memberships(source, shared_with=target) if wanted else None
    other = links.memberships(target, shared_with=source) if wanted else None
    if one is None or other is None:
        return None
    shares = _shares(one), _shares(other)
    return shares if all(own.nnz for own in shares) else None


def _shares(memberships: Any) -> sp.csr_array:
    """Return memberships that sum to 1 where an item has any."""
    table = sp.csr_array(memberships)
    total = np.asarray(table.sum(axis=1)).ravel()
    scale = sp.diags_array(1 / np.where(total > 0, total, 1))
    shares = sp.csr_array(scale @ table)
    shares.eliminate_zeros()
    return shares


def _without(labels: sp.csr_array, hidden: Array) -> sp.csr_array:
    """Return labels without those of some items."""
    kept = sp.csr_array(sp.diags_array((~hidden).astype(float)) @ labels)
    kept.eliminate_zeros()
    return kept

"""Evidence: what links say of the items of two views, as plain arrays."""

from dataclasses import dataclass

import numpy as np

from linkspread.links import Links

__all__ = ["Evidence", "read_evidence"]

Array = np.ndarray
Judged = tuple[Array, Array, Array]


@dataclass(frozen=True)
class Evidence:
    """Judged pairs of two views.

    Parameters
    ----------
    must, cannot : tuple of (rows, cols, weights)
        Positions of the items of each pair, and positive weights.
    """

    must: Judged
    cannot: Judged

    def judged(self) -> tuple[Array, Array, Array, Array]:
        """Return all pairs with centred verdicts and balanced weights.

        Must- and cannot-links have the same total weight, whatever their numbers.

        Returns
        -------
        rows, cols, verdicts, weights : ndarray of shape (n_pairs,)
        """
        parts = (self.must, self.cannot)
        i, j, weights = (np.concatenate(own) for own in zip(*parts, strict=True))
        z = np.repeat([1.0, -1.0], [len(own[0]) for own in parts])
        for sign in (1.0, -1.0):
            own = z == sign
            if own.any():
                weights = np.where(
                    own, weights / weights[own].sum() * len(z) / 2, weights
                )
        # Pairs of one kind only would all be 0 if they were centred.
        is_mixed = len(self.must[0]) and len(self.cannot[0])
        return i, j, z - np.average(z, weights=weights) if is_mixed else z, weights

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

        return Evidence(some(self.must, n_must), some(self.cannot, n_most - n_must))

    def split(self, left: Array, right: Array) -> tuple["Evidence", "Evidence"]:
        """Return what is within some items of both views, and what touches none.

        Parameters
        ----------
        left, right : ndarray of bool of shape (n_items,)
            Masks of the items.

        Returns
        -------
        within, apart : Evidence
            Pairs with one item in a mask are in neither.
        """
        within, apart = [], []
        for i, j, weights in (self.must, self.cannot):
            inside, outside = left[i] & right[j], ~left[i] & ~right[j]
            within.append((i[inside], j[inside], weights[inside]))
            apart.append((i[outside], j[outside], weights[outside]))
        return Evidence(*within), Evidence(*apart)


def read_evidence(links: Links, source: str, target: str) -> Evidence:
    """Return the judged pairs of two views.

    Parameters
    ----------
    links : Links
        By position.
    source, target : str

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
    table = links.judged(source, target).tocoo()
    must, cannot = table.data > 0, table.data < 0
    return Evidence(
        (table.row[must], table.col[must], table.data[must]),
        (table.row[cannot], table.col[cannot], -table.data[cannot]),
    )

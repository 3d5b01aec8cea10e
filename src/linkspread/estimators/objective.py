"""What is made of the links between two views: the face of every objective."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from linkspread.exceptions import LinkError
from linkspread.fitting.fitted_pair import FittedPair, join_scores
from linkspread.links import Links
from linkspread.links.balance import Balance
from linkspread.validation import check_table

__all__ = ["FittingObjective", "HeldOut", "Objective", "changed_views"]

Array = np.ndarray
ViewPair = tuple[str, str]
Scores = dict[ViewPair, Any]


class HeldOut(NamedTuple):
    """Scores of pairs, each made without what is known of its items.

    Attributes
    ----------
    rows, cols : ndarray of int of shape (n_pairs,)
    is_must : ndarray of bool of shape (n_pairs,)
    scores : ndarray of shape (n_pairs,)
    n_judged : int
        Judged pairs, or labelled items, that they are of.
    """

    rows: Array
    cols: Array
    is_must: Array
    scores: Array
    n_judged: int

    @property
    def T(self) -> "HeldOut":
        """The same with the views exchanged."""
        return self._replace(rows=self.cols, cols=self.rows)


@dataclass(kw_only=True)
class Objective(ABC):
    """Turn the links between two views into scores.

    Attributes
    ----------
    links : Links
        Resolved.
    balance : {"auto", "literal"} or float
    rank : int or None
    tol : float
    """

    links: Links
    balance: Balance
    rank: int | None
    tol: float

    @abstractmethod
    def scores(self, source: str, target: str) -> Any:
        """Return the scores between two views, a Spread or a FittedPair."""

    @abstractmethod
    def embed(self, scores: Any, rows: Any, view: str) -> Array:
        """Return the vectors with which new items of the first view search."""

    @abstractmethod
    def relink(self, links: Links, scores: Mapping[ViewPair, Any]) -> Scores:
        """Take up changed links; return the scores that change with them.

        Parameters
        ----------
        links : Links
            Resolved; labels are those there were.
        scores : mapping from (str, str) to Spread or FittedPair
            Of the links before.

        Returns
        -------
        scores : dict from (str, str) to Spread or FittedPair
        """

    def told(self) -> dict[str, Any]:
        """Return what is known of the fits, by the name of a fitted attribute."""
        return {}

    def held_out(self, source: str, target: str, *, by_labels: bool) -> HeldOut | None:
        """Return what a fit said of judgements that it held out, None of others."""
        return None


def changed_views(
    before: Links, after: Links, pairs: Iterable[ViewPair]
) -> list[ViewPair]:
    """Return the pairs of views whose judged pairs are others now.

    Parameters
    ----------
    before, after : Links
        Resolved.
    pairs : iterable of (str, str)

    Returns
    -------
    changed : list of (str, str)
    """
    return [
        pair
        for pair in pairs
        if (after.judged(*pair) - before.judged(*pair)).count_nonzero()
    ]


@dataclass(kw_only=True)
class FittingObjective(Objective):
    """Fit labels and judged pairs, and add what both say.

    Attributes
    ----------
    n_features : mapping from str to int
        Columns of each view's table.
    """

    n_features: Mapping[str, int]

    @abstractmethod
    def label_scores(self, source: str, target: str) -> FittedPair:
        """Return the scores that the labels of both views give."""

    @abstractmethod
    def pair_scores(self, source: str, target: str, pairs: Any) -> FittedPair:
        """Return the scores that judged pairs give."""

    @abstractmethod
    def pair_mass(self, pairs: Any) -> str:
        """Return by what scores of pairs are divided, see `LENGTH_POWERS`."""

    def scores(self, source: str, target: str) -> FittedPair:
        """Return the sum of what labels and judged pairs say.

        Parameters
        ----------
        source, target : str

        Returns
        -------
        scores : FittedPair
        """
        parts = []
        known = [self.known(source, target)[1], self.known(target, source)[1]]
        if all(own is not None and own.sum() > 0 for own in known):
            parts.append(self.label_scores(source, target))
        pairs = self.links.judged(source, target)
        if pairs.nnz:
            parts.append(self.pair_scores(source, target, pairs))
        if not parts:
            raise LinkError(
                f"links between {source!r} and {target!r} must not all contradict each "
                "other, and nothing is left of them. Look at `links.conflicts()`."
            )
        return join_scores(parts)

    def known(self, view: str, other: str) -> tuple[str, Any]:
        """Return the memberships in classes of both views, and a name for them.

        Parameters
        ----------
        view, other : str

        Returns
        -------
        name : str
            The same where the memberships are, so that they are fitted once.
        memberships : sparse or ndarray of shape (n_items, n_classes), or None
        """
        shared = self.links.memberships(view, shared_with=other)
        if shared is None or shared.shape == self.links.memberships(view).shape:
            return view, shared
        return f"{view}, with {other}", shared

    def relink(self, links: Links, scores: Mapping[ViewPair, Any]) -> Scores:
        """Fit the pairs anew where they changed, by the kernels there are.

        Parameters
        ----------
        links : Links
        scores : mapping from (str, str) to FittedPair

        Returns
        -------
        scores : dict from (str, str) to FittedPair
        """
        changed = changed_views(self.links, links, scores)
        before, self.links = self.links, links
        try:
            return {pair: self.scores(*pair) for pair in changed}
        except Exception:
            # Links that cannot be fitted must not be taken up.
            self.links = before
            raise

    def embed(self, scores: Any, rows: Any, view: str) -> Array:
        """Return the vectors with which new items of the first view search.

        Parameters
        ----------
        scores : FittedPair
        rows : table of shape (q, n_features)
        view : str

        Returns
        -------
        vectors : ndarray of shape (q, r)
        """
        table = check_table(rows, view=view, n_features=self.n_features[view])
        return scores.embed_left(table)

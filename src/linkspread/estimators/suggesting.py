"""What to judge next: the pairs that teach a fitted model most."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linkspread.estimators.link_choice import check_linked
from linkspread.estimators.queries import choose_positions
from linkspread.kernels.threads import on_own_threads
from linkspread.links import Items, Links
from linkspread.parameter_checks import check_count
from linkspread.retrieval.suggestion import suggest
from linkspread.retrieval.suggestion_gains import explained_shares
from linkspread.retrieval.suggestion_pairs import OpenPairs
from linkspread.retrieval.suggestion_representatives import diffusion_features

__all__ = ["Suggesting"]

Array = np.ndarray


class Suggesting:
    """Suggest pairs to judge, for a model with graphs, links and vectors.

    Attributes
    ----------
    items_ : dict from str to Items
    links_ : Links
        Resolved.
    graphs_ : dict from str to fitted graph
    view_names_ : tuple of str
    """

    items_: dict[str, Items]
    links_: Links
    graphs_: dict[str, Any]
    view_names_: tuple[str, ...]
    _block: Any

    @on_own_threads
    def suggest_pairs(
        self,
        n: int,
        *,
        source: str,
        target: str,
        queries: Any = None,
        exclude: Any = None,
        random_state: int = 0,
    ) -> tuple[Array, Array]:
        """Return the pairs whose judgement would teach most.

        Well-connected items of both views, far from each other, are paired each with
        each. No pair is returned that was judged, nor one of two labelled items.

        Parameters
        ----------
        n : int
            Number of pairs. More than are left returns all that are left, perhaps
            none.
        source : str
            View of the first item of each pair.
        target : str
            View of the second; the same as `source` pairs items of one view.
        queries : array-like of ids, boolean mask or slice, default=None
            Items of `source` to ask about; None for all.
        exclude : array-like of ids, boolean mask or slice, default=None
            Items of `target` that are in no pair.
        random_state : int, default=0
            The same number gives the same pairs.

        Returns
        -------
        source_ids : ndarray of shape (n_found,)
        target_ids : ndarray of shape (n_found,)
            The most telling pairs first; answer them for
            ``Links.from_pairs(list(zip(source_ids, target_ids, answers)), ...)``.

        Examples
        --------
        >>> import linkspread as ls
        >>> data = ls.datasets.make_views(90, n_classes=3, random_state=0)
        >>> links = ls.Links.from_pairs([(0, 0), (1, 2)], between=("text", "image"))
        >>> model = ls.LinkSpreading(n_neighbors=9).fit(data.views(), links)
        >>> texts, images = model.suggest_pairs(4, source="text", target="image")
        >>> len(texts), len(images)
        (4, 4)
        """
        check_is_fitted(self)
        check_count(n, name="n", remedy="Ask for 20 or so, and fit again with them.")
        check_count(
            random_state, name="random_state", remedy="The default is 0.", at_least=0
        )
        self._check_suggested(source, target)
        i, j = suggest(
            self._open_pairs(source, target, queries, exclude),
            n,
            features=self._telling_features(source, target, random_state),
            score=lambda i, j: self._block(i, j, source, target),
            seed=random_state,
        )
        return self.items_[source].ids[i], self.items_[target].ids[j]

    @on_own_threads
    def expected_gains(
        self,
        source_ids: Any,
        target_ids: Any,
        *,
        source: str,
        target: str,
        random_state: int = 0,
    ) -> Array:
        """Return how much the judgement of each pair would tell, beside all others.

        Parameters
        ----------
        source_ids : array-like of ids of shape (n_pairs,)
        target_ids : array-like of ids of shape (n_pairs,)
            As of :meth:`suggest_pairs`.
        source : str
            View of the first item of each pair.
        target : str
            View of the second.
        random_state : int, default=0

        Returns
        -------
        gains : ndarray of shape (n_pairs,)
            Share of the variance of all pairs that one judgement would explain, if
            pairs were related as a short diffusion over both graphs relates them.
            What was judged before is counted as known, labels are not.
        """
        check_is_fitted(self)
        self._check_suggested(source, target)
        positions = (
            self.items_[source].positions(source_ids, what="`source_ids`"),
            self.items_[target].positions(target_ids, what="`target_ids`"),
        )
        return explained_shares(
            self._telling_features(source, target, random_state),
            positions,
            judged=_judged_positions(self.links_, source, target),
            seed=random_state,
        )

    def _open_pairs(
        self, source: str, target: str, queries: Any, exclude: Any
    ) -> OpenPairs:
        """Return which pairs may be suggested."""
        rows = choose_positions(queries, self.items_[source], name="queries")
        is_open = np.ones(self.items_[target].n_items, dtype=bool)
        if exclude is not None:
            items = self.items_[target]
            is_open[choose_positions(exclude, items, name="exclude")] = False
        return OpenPairs(
            rows=np.unique(rows),
            columns=np.flatnonzero(is_open),
            known=(self._labelled(source, target), self._labelled(target, source)),
            judged=_judged_positions(self.links_, source, target),
            within=source == target,
        )

    def _labelled(self, view: str, other: str) -> Array:
        """Tell which items of a view have labels that items of the other have too."""
        memberships = self.links_.memberships(view, shared_with=other)
        if memberships is None:
            return np.zeros(self.items_[view].n_items, dtype=bool)
        return np.asarray(memberships.sum(axis=1)).ravel() > 0

    def _telling_features(
        self, source: str, target: str, seed: int
    ) -> tuple[Array, Array]:
        """Return the diffusion features of two views, made once for one view."""
        first = self._diffused(source, 2 * seed)
        if source == target:
            return first, first
        # Seeds differ, as what is random must not be alike in both views.
        return first, self._diffused(target, 2 * seed + 1)

    def _diffused(self, view: str, seed: int) -> Array:
        """Return features whose inner products are a diffusion over a view."""
        return diffusion_features(self.graphs_[view].affinity_, seed=seed)

    def _check_suggested(self, source: str, target: str) -> None:
        """Refuse views whose pairs cannot be told from each other."""
        check_linked(self.links_, self.view_names_, source, target)


def _judged_positions(links: Links, source: str, target: str) -> tuple[Array, Array]:
    """Return the positions of all single pairs of two views, also of those at odds."""
    found = [np.empty((2, 0), dtype=np.int64)]
    for between, table in links.pair_tables:
        positions = np.array(table.known_positions(between))
        if between == (source, target):
            found.append(positions)
        elif between == (target, source):
            found.append(positions[::-1])
    i, j = np.concatenate(found, axis=1)
    return i, j

"""What to judge next: the pairs that teach a fitted model most."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linkspread.compiled.threads import on_own_threads
from linkspread.ground.checks import check_count
from linkspread.judging.suggestion import (
    OpenPairs,
    diffusion_features,
    explained_shares,
    suggest,
)
from linkspread.links import Items, Links
from linkspread.models.link_choice import check_linked
from linkspread.models.queries import choose_positions

Array = np.ndarray


class Suggesting:
    """Suggest pairs to judge, for a model with graphs, links and vectors."""

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
        """Return how much the judgement of each pair would tell, beside all others."""
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

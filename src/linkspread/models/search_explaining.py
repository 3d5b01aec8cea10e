"""Why an item was found: what each judged pair, each class and the prior add."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linkspread.compiled.threads import on_own_threads
from linkspread.ground.checks import check_count
from linkspread.ground.errors import LinkError
from linkspread.judging.explanation import (
    Explanation,
    Shares,
    make_split,
    single_share,
)
from linkspread.learning import Evidence, Rows, read_evidence
from linkspread.learning.terms import Fitting, LabelTerm, PairsTerm, PriorTerm
from linkspread.models.explaining import read_source, read_target
from linkspread.models.search_pairs import Direction

Array = np.ndarray


class SearchExplaining:
    """What a fitted search says of single scores; a part of CrossViewSearch."""

    @on_own_threads
    def explain(
        self: Any,
        source_item: Any,
        target_item: Any,
        *,
        source: str,
        target: str,
        n_links: int | None = None,
    ) -> Explanation:
        """Tell what makes up one score: judged pairs, classes, and what views share."""
        check_is_fitted(self)
        direction = self._direction(source, target)
        if not isinstance(direction, Direction):
            raise LinkError(
                f"views {source!r} and {target!r} must share a space or have links of "
                "their own to be explained, got a search through other views. Explain "
                "each of its steps."
            )
        if n_links is not None:
            remedy = "None names all."
            n_links = check_count(n_links, name="n_links", remedy=remedy)
        asked = read_source(source_item, self.items_[source])
        j = read_target(target_item, self.items_[target])
        if asked.position is None:
            query = direction.known(self._similarities(asked.rows, source))
        else:
            query = direction.factors.fitted(direction.side, [asked.position])
        pair = (source, target) if direction.side == 0 else (target, source)
        shares = _shares(direction, read_evidence(self.links_, *pair), query, j)
        ids = self.items_[source].ids, self.items_[target].ids
        split = make_split(shares, *ids, n_links=n_links)
        found = direction.factors.scores(direction.side, query, np.array([j]))
        own = None if asked.position is None else ids[0][asked.position].item()
        return Explanation(
            source=source,
            target=target,
            source_item=own,
            target_item=ids[1][j].item(),
            score=split.total,
            search_score=float(found[0, 0]),
            links=split,
        )


def _shares(
    direction: Direction, evidence: Evidence, query: Rows, j: int
) -> list[Shares]:
    """Return what each pair, each class, the prior, hubs and chance add to a score."""
    factors, side = direction.factors, direction.side
    target = factors.fitted(1 - side, [j])
    n_must, n_pairs = len(evidence.must[0]), evidence.n_pairs
    pairs, prior, chance = np.zeros(n_pairs), 0.0, 0.0
    shares, fitting = [], Fitting(factors.sides, evidence)
    for (term, weight), scales in zip(
        factors.terms, factors.scales[1 - side], strict=True
    ):
        scale = 1.0 if scales is None else float(scales[j])
        parts, rest = term.contributions(side, query, target, scale, fitting)
        if isinstance(term, LabelTerm):
            shares.append(_class_shares(weight * parts))
            chance += weight * rest
            continue
        prior += weight * rest
        if isinstance(term, PairsTerm):
            pairs += weight * parts
        elif not isinstance(term, PriorTerm):
            pairs[:n_must] += weight * parts
    if n_pairs:
        shares.append(_pair_shares(evidence, pairs, side, factors.is_within))
    own = (prior, float(factors.bias[1 - side][j]), chance)
    shares += map(single_share, ("prior", "hubs", "chance"), own)
    return shares


def _class_shares(amounts: Array) -> Shares:
    """Return what each class that both items may be of adds."""
    both = {side: np.arange(len(amounts)) for side in (0, 1)}
    return Shares("class", amounts, np.ones(len(amounts)), classes=both)


def _pair_shares(
    evidence: Evidence, amounts: Array, side: int, is_within: bool
) -> Shares:
    """Return what judged pairs add; within a view both orders of one are one."""
    parts = (evidence.must, evidence.cannot)
    both = [np.concatenate([own[k] for own in parts]) for k in (0, 1)]
    weights = np.concatenate([evidence.must[2], -evidence.cannot[2]])
    if not is_within:
        items = {0: both[side], 1: both[1 - side]}
        return Shares("pair", amounts, weights, items)
    ends = np.sort(np.stack(both, axis=1), axis=1)
    once, first, place = np.unique(ends, axis=0, return_index=True, return_inverse=True)
    added = np.bincount(place.ravel(), amounts, minlength=len(once))
    return Shares("pair", added, weights[first], dict(enumerate(once.T)))

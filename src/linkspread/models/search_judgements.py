"""Judgements of CrossViewSearch: the next ones, doubtful ones, and their effect."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from linkspread.ground.checks import check_count
from linkspread.ground.errors import ViewError
from linkspread.judging.asking import Judged, ask, make_pool
from linkspread.judging.doubts import Doubt, doubtful
from linkspread.judging.explanation import make_split
from linkspread.judging.held_out_quality import Progress, estimate_progress
from linkspread.judging.suggestion import OpenPairs
from linkspread.links.evidence import read_evidence
from linkspread.models.search_pairs import Direction, Pair, explain_pair

Array = np.ndarray

# Contradicting judgements that are named with a doubt.
N_CONTRADICTIONS = 3


def next_pairs(
    model: Any, way: Direction, pairs: OpenPairs, n: int, between: Pair, *, seed: int
) -> tuple[Array, Array]:
    """Return the open pairs of two views to judge next."""
    i, j, signed = read_evidence(model.links_, *between, labels=False).signed()
    choice = model.choices_.get(_fitted_pair(way, between))
    pools = [
        model._cached(
            ("pool", view),
            [model._maps[view]],
            partial(make_pool, model._maps[view], seed=model.random_state),
        )
        for view in between
    ]
    return ask(
        pairs,
        n,
        factors=way.factors,
        side=way.side,
        pools=(pools[0], pools[1]),
        judged=Judged(i, j, signed > 0),
        quality=choice.quality.get("model") if choice is not None else None,
        seed=seed,
    )


def find_doubts(model: Any, between: Pair, n: int) -> list[Doubt]:
    """Return the most doubtful judgements of two views."""
    check_count(n, name="n", remedy="20 is usual.")
    way = _direct(model, between)
    pair = _fitted_pair(way, between)
    evidence = read_evidence(model.links_, *pair)
    if pair not in model.choices_ or not evidence.n_pairs:
        return []
    held, order, doubts = doubtful(
        way.factors, evidence, model.choices_[pair], seed=model.random_state
    )
    ids = [model.items_[view].ids for view in pair]
    found = []
    for place in order[:n].tolist():
        i, j, k = held.i[place], held.j[place], held.fold[place]
        is_must = bool(held.is_must[place])
        own = Direction(held.factors[k], 0)
        rows = own.factors.fitted(0, [i])
        shares = explain_pair(own, held.evidence[k], rows, int(j))
        judged = [part for part in shares if part.kind == "pair"]
        parts = make_split(judged, ids[0], ids[1], n_links=None).parts
        against = [part for part in parts if (part.amount < 0) == is_must]
        items = ids[0][i].item(), ids[1][j].item()
        if way.side == 1:  # The views were asked in the reverse order of the fit.
            items = items[::-1]
            against = [
                replace(p, source_item=p.target_item, target_item=p.source_item)
                for p in against
            ]
        found.append(
            Doubt(
                *items,
                verdict="must" if is_must else "cannot",
                probability=float(doubts[place]),
                score=float(held.scores[place]),
                contradictions=tuple(against[:N_CONTRADICTIONS]),
            )
        )
    return found


def find_progress(model: Any, between: Pair) -> Progress:
    """Return how good searches are, and what more judgements would bring."""
    if between[0] == between[1]:
        raise ViewError(
            f"`source` and `target` must be two views to estimate progress, got "
            f"{between[0]!r} twice. Name another view."
        )
    way = _direct(model, between)
    pair = _fitted_pair(way, between)
    evidence = read_evidence(model.links_, *pair)
    options = {"side": way.side, "seed": model.random_state}
    return estimate_progress(way.factors, evidence, model.choices_[pair], **options)


def _direct(model: Any, between: Pair) -> Direction:
    """Return what searches one view from another, not through others."""
    model._check_pairs(*between, explained=True)
    way = model._exact_rows(*between)
    assert isinstance(way, Direction)
    return way


def _fitted_pair(way: Direction, between: Pair) -> Pair:
    """Return two views in the order of their fit."""
    return between if way.side == 0 else (between[1], between[0])

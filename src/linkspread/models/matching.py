"""Match the items of two views of a fitted model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from linkspread.ground.checks import check_count, check_name
from linkspread.ground.errors import ViewError
from linkspread.learning import fit_factors
from linkspread.learning.maps import unit_rows
from linkspread.links.evidence import Evidence, read_evidence
from linkspread.models.search_pairs import Chained, Direction
from linkspread.search.matches import (
    Matches,
    Rated,
    check_limits,
    choose_threshold,
)
from linkspread.search.matching import (
    SHAPES,
    Candidates,
    Judged,
    Matching,
    assign,
    find_candidates,
    fit_calibration,
)

Array = np.ndarray

# Folds of judged items, whose scores are of fits without them.
N_FOLDS = 3
# Terms that no judgement has changed: their scores need no other fit.
UNLEARNT = ("prior",)
# Products of sparse rows: beyond so many, the most frequent columns find no candidates.
MAX_PRODUCTS = 2e9
# Pairs that are compared at a time, and the largest difference of logarithms.
TILE, MAX_LOG_RATIO = 1 << 16, 2.0


def match_views(
    model: Any,
    source: str,
    target: str,
    *,
    partners: str,
    n_candidates: int,
    precision: float | None,
    threshold: float | None,
    compare: Mapping[str, Any] | None,
) -> Matches:
    """Match two views of a fitted `CrossViewSearch`; see its method `match`."""
    unique = SHAPES[check_name(partners, SHAPES, name="partners")]
    check_count(n_candidates, name="n_candidates", remedy="The default is 10.")
    way = model._exact_rows(source, target)
    if source == target:
        raise ViewError(
            f"`source` and `target` must be different views, got {source!r} twice. "
            "Fit a model with two views."
        )
    evidence = read_evidence(model.links_, source, target)
    candidates, scores = _candidates(way, n_candidates)
    candidates, scores = _with_musts(candidates, scores, evidence, way)
    others = _comparisons(candidates, compare, (source, target))
    similarities = np.column_stack([scores, *others])
    judged = _judged(candidates, similarities, evidence, way, model)
    calibration = fit_calibration(candidates, similarities, judged, unique)
    check_limits(precision, threshold, is_calibrated=calibration.is_calibrated)
    p, is_open, is_must = _settled(
        candidates, calibration.log_weights(similarities), evidence, unique
    )
    # Without judgements the scores decide, and every item gets a partner if it can.
    worth = np.where(is_must, 2.0, p)
    if not calibration.is_calibrated:
        worth = scores - scores.min(initial=0) + 1e-6
        worth = np.where(is_must, worth.sum() + 1, np.where(is_open, worth, 0))
    chosen = assign(candidates.left, candidates.right, worth, candidates.shape, unique)
    least = 0.0
    if calibration.is_calibrated:
        limits: Any = {"precision": precision, "threshold": threshold}
        least = choose_threshold(p[chosen], float(p.sum()), **limits)
        chosen &= (p >= least) | is_must
    places = np.flatnonzero(chosen)
    places = places[np.lexsort((-scores[places], -p[places]))]
    return Matches(
        source,
        target,
        *_ids(model, (source, target), candidates, places),
        scores[places],
        p[places] if calibration.is_calibrated else None,
        is_must[places],
        _unmatched(model, (source, target), candidates, places),
        least,
        calibration.n_judged,
        only_must=calibration.is_calibrated
        and all(own.is_must.all() for own in judged),
        rated=Rated(
            candidates,
            (model.items_[source].ids, model.items_[target].ids),
            scores,
            p,
            is_open,
            chosen,
        ),
    )


def _candidates(way: Direction | Chained, n: int) -> tuple[Candidates, Array]:
    """Return the candidates of two views, and their scores with all hub corrections."""
    sizes, step = way.shape, way.rows_at_a_time
    how: dict[str, Any] = {"n_candidates": n, "step": step}
    if isinstance(way, Chained):
        every = np.arange(sizes[0])
        return find_candidates(
            lambda rows: way.block(every[rows], slice(None)), sizes, **how
        )
    side, bias = way.side, way.factors.bias
    bias = bias[side], bias[1 - side]
    tables, parts, _ = way.prepare(np.arange(min(1, sizes[0]))).score_parts()
    if len(parts) > 1 or any(own[1] is not None or own[3] is not None for own in parts):
        # The scores of rows have the bias of columns.
        bias = bias[0], np.zeros(sizes[1])
        every = np.arange(sizes[0])
        return find_candidates(
            lambda rows: way.rows(every[rows]), sizes, bias=bias, **how
        )
    ((space, _, _, _),) = parts
    table = tables[space]

    def coefficients(rows: Any) -> Any:
        return way.prepare(np.arange(sizes[0])[rows]).score_parts()[1][0][2]

    if not sp.issparse(table):
        return find_candidates(
            lambda rows: coefficients(rows) @ table.T, sizes, bias=bias, **how
        )
    whole = sp.csr_array(coefficients(slice(None)))
    some = _rare_columns(whole, table)
    one, other = whole[:, some], sp.csr_array(table[:, some].T)
    found, scores = find_candidates(
        lambda rows: one[rows] @ other, sizes, bias=bias, **how
    )
    if len(some) < table.shape[1]:
        scores = np.nan_to_num(_products(whole, table, found))
        scores += bias[0][found.left] + bias[1][found.right]
    return found, scores


def _rare_columns(one: Any, other: Any) -> Array:
    """Return the columns that are in few rows, as many as products of rows allow."""
    counts = [
        np.bincount(own.indices, minlength=own.shape[1]).astype(float)
        for own in (one, sp.csr_array(other))
    ]
    cost = counts[0] * counts[1]
    order = np.argsort(cost, kind="stable")
    n_kept = max(1, int(np.sum(np.cumsum(cost[order]) <= MAX_PRODUCTS)))
    return np.sort(order[:n_kept])


def _symmetric(way: Direction | Chained, rows: Any) -> Array:
    """Return scores with the hub correction of both sides."""
    if isinstance(way, Chained):
        return way.block(np.arange(way.shape[0])[rows], slice(None))
    i = np.arange(way.shape[0])[rows]
    return way.rows(i) + way.factors.bias[way.side][i][:, None]


def _with_musts(
    candidates: Candidates, scores: Array, evidence: Evidence, way: Any
) -> tuple[Candidates, Array]:
    """Return the candidates with all must-links, which are right in any case."""
    i, j = (own.astype(np.int64) for own in evidence.must[:2])
    missing = candidates.places(i, j) < 0
    if not missing.any():
        return candidates, scores
    i, j = i[missing], j[missing]
    more = np.concatenate(
        [_symmetric(way, i[k : k + 1])[0, j[k : k + 1]] for k in range(len(i))]
    )
    left, right = np.append(candidates.left, i), np.append(candidates.right, j)
    order = np.lexsort((right, left))
    candidates = Candidates(left[order], right[order], candidates.shape)
    return candidates, np.append(scores, more)[order]


def _judged(
    candidates: Candidates,
    similarities: Array,
    evidence: Evidence,
    way: Direction | Chained,
    model: Any,
) -> list[Judged]:
    """Return the judged candidates, with the scores of fits without them."""
    i, j, signed = evidence.signed()
    places = candidates.places(i, j)
    kept = places >= 0
    i, j, places, is_must = i[kept], j[kept], places[kept], signed[kept] > 0
    if not isinstance(way, Direction) or not len(places):
        return [Judged(places, is_must, similarities)] if len(places) else []
    terms = [term for choice in _choices(model, way) for term in choice.terms]
    is_fixed = all(
        term.kind in UNLEARNT or (term.kind == "displacement" and np.isinf(term.ridge))
        for term in terms
    )
    if is_fixed:
        return [Judged(places, is_must, similarities)]
    fold = np.random.default_rng(0).integers(N_FOLDS, size=candidates.shape[0])[i]
    found = []
    for k in range(N_FOLDS):
        own = fold == k
        if not own.any():
            continue
        masks = [np.zeros(size, dtype=bool) for size in candidates.shape]
        masks[0][i[own]] = masks[1][j[own]] = True
        scores = _scores_without(candidates, masks, evidence, way, model, places[own])
        found.append(
            Judged(
                places[own],
                is_must[own],
                np.column_stack([scores, similarities[:, 1:]]),
            )
        )
    return found


def _choices(model: Any, way: Direction) -> list[Any]:
    """Return the choice of a direction's factors."""
    return [
        model.choices_[pair]
        for pair, factors in model._factors.items()
        if factors is way.factors
    ]


def _scores_without(
    candidates: Candidates,
    masks: Sequence[Array],
    evidence: Evidence,
    way: Direction,
    model: Any,
    places: Array,
) -> Array:
    """Return scores near some judged pairs of a fit without their items."""
    factors, (choice,) = way.factors, _choices(model, way)
    known = evidence.split(*masks)[1]
    if way.side == 1:
        known = _turned(known)
    if known.n_pairs or known.labels is not None:
        terms = choice.terms
        if known.labels is None:
            terms = tuple(term for term in terms if term.kind != "labels")
        fitted = fit_factors(factors.sides, known, replace(choice, terms=terms))
        way = Direction(fitted, way.side)
    matching = Matching(
        candidates.left, candidates.right, candidates.shape, (True,) * 2
    )
    near = matching.near(places)
    scores = np.zeros(len(candidates.left))
    rows = np.unique(candidates.left[near])
    step = way.rows_at_a_time
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        block = _symmetric(way, some)
        own = np.flatnonzero(np.isin(candidates.left, some))
        local = np.searchsorted(some, candidates.left[own])
        scores[own] = block[local, candidates.right[own]]
    return scores


def _turned(evidence: Evidence) -> Evidence:
    """Return evidence with its two views exchanged."""
    (i, j, w), (a, b, v) = evidence.must, evidence.cannot
    labels = None if evidence.labels is None else evidence.labels[::-1]
    return Evidence((j, i, w), (b, a, v), labels)


def _settled(
    candidates: Candidates, f: Array, evidence: Evidence, unique: tuple[bool, bool]
) -> tuple[Array, Array, Array]:
    """Return probabilities given all judgements, open pairs, and must-links."""
    left, right, shape = candidates
    is_must, is_out = np.zeros((2, len(left)), dtype=bool)
    is_must[candidates.places(*evidence.must[:2])] = True
    cannot = candidates.places(*evidence.cannot[:2])
    is_out[cannot[cannot >= 0]] = True
    for side, items, own in zip((0, 1), (left, right), unique, strict=True):
        taken = np.zeros(shape[side], dtype=bool)
        taken[items[is_must]] = own
        is_out |= taken[items] & ~is_must
    is_open = ~is_must & ~is_out
    rest = Matching(left[is_open], right[is_open], shape, unique)
    p = is_must.astype(float)
    p[is_open] = rest.marginals(f[is_open])[0]
    return p, is_open, is_must


def _ids(
    model: Any, views: tuple[str, str], candidates: Candidates, places: Array
) -> tuple[Array, Array]:
    """Return the ids of some pairs."""
    return (
        model.items_[views[0]].ids[candidates.left[places]],
        model.items_[views[1]].ids[candidates.right[places]],
    )


def _unmatched(
    model: Any, views: tuple[str, str], candidates: Candidates, places: Array
) -> dict[str, Array]:
    """Return the ids of items without a partner, by view."""
    found = {}
    for view, items in zip(views, candidates[:2], strict=True):
        is_matched = np.zeros(model.items_[view].n_items, dtype=bool)
        is_matched[items[places]] = True
        found[view] = model.items_[view].ids[~is_matched]
    return found


def _comparisons(
    candidates: Candidates, compare: Mapping[str, Any] | None, views: tuple[str, str]
) -> list[Array]:
    """Return the similarities of candidates by other tables; NaN if unknown."""
    found = []
    for name, both in (compare or {}).items():
        tables = [own if sp.issparse(own) else np.asarray(own) for own in both]
        sizes = tuple(own.shape[0] for own in tables)
        if sizes != candidates.shape or tables[0].shape[1:] != tables[1].shape[1:]:
            raise ViewError(
                f"`compare` must have a row for each item and the same columns for "
                f"both views, got shapes {tables[0].shape} and {tables[1].shape} for "
                f"{name!r} of {views[0]!r} and {views[1]!r}. Give one row per item."
            )
        one, other = tables
        if one.ndim == 1:
            found.append(_closeness(one[candidates.left], other[candidates.right]))
        else:
            found.append(_products(unit_rows(one), unit_rows(other), candidates))
    return found


def _closeness(one: Array, other: Array) -> Array:
    """Return minus the difference of the logarithms of two columns of numbers."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.abs(np.log(one / other))
    return -np.where(np.isfinite(ratio), np.minimum(ratio, MAX_LOG_RATIO), np.nan)


def _products(one: Any, other: Any, candidates: Candidates) -> Array:
    """Return the inner products of rows; NaN where one of them is empty."""
    found = np.empty(len(candidates.left))
    for start in range(0, len(found), TILE):
        some = slice(start, start + TILE)
        A, B = one[candidates.left[some]], other[candidates.right[some]]
        if sp.issparse(A):
            found[some] = np.asarray(A.multiply(B).sum(axis=1)).ravel()
            empty = (np.diff(A.tocsr().indptr) == 0) | (np.diff(B.tocsr().indptr) == 0)
            found[some][empty] = np.nan
        else:
            found[some] = np.einsum("ij,ij->i", A, B)
    return found

"""Held-out scores, their curve, and judgements that they contradict."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

import linkspread as ls
from linkspread.judging.calibration import (
    PRECISION,
    fit_curve,
    hold_out,
    pair_scores,
)
from linkspread.learning import Choice, Setting, fit_factors
from linkspread.links.evidence import read_evidence
from search_models import KINDS, PAIR, make_pair, model

BETWEEN = {"source": "text", "target": "image"}


def test_a_curve_is_a_regularised_logistic_regression():
    rng = np.random.default_rng(0)
    scores = rng.normal(3, 2, size=4000)
    is_must = rng.random(4000) < expit(1.5 * scores - 4)
    own = fit_curve(scores, is_must)
    X = ((scores - scores.mean()) / scores.std())[:, None]
    other = LogisticRegression(C=1 / PRECISION).fit(X, is_must)
    assert_allclose(own(scores), other.predict_proba(X)[:, 1], atol=1e-3)
    assert own.slope == pytest.approx(1.5, rel=0.1)


@pytest.mark.parametrize("verdict", [True, False])
def test_verdicts_of_one_kind_are_never_certain(verdict):
    scores = np.arange(5.0)
    chance = fit_curve(scores, np.full(5, verdict))(scores)
    assert np.all((chance > 0.02) & (chance < 0.98))


def test_scores_of_pairs_are_those_of_the_model():
    search = model("judged")
    rng = np.random.default_rng(0)
    i, j = rng.integers(120, size=(2, 700))
    found = pair_scores(search._factors[PAIR], i, j)
    whole = search.scores(*PAIR)
    assert_allclose(found, whole[i, j], atol=1e-5 * np.abs(whole).max())


def test_held_out_scores_are_those_of_ridge_regression_without_the_pair():
    search = model("judged")
    sides = search._factors[PAIR].sides
    evidence = read_evidence(search.links_, *PAIR)
    choice = Choice((Setting("pairs", ridge=3.0),), 0.0, 0, {})
    factors = fit_factors(sides, evidence, choice)
    n = evidence.n_pairs
    held = hold_out(factors, evidence, choice, n_folds=n)
    # Leave-one-out of a ridge regression whose targets are centred without the pair.
    term = factors.terms[0][0]
    K = term.rows.kernel((sides.maps[0].values, sides.maps[1].values), held.i, held.j)
    for k in (0, 17, n - 1):
        rest = np.arange(n) != k
        z = held.is_must[rest].astype(float)
        c = np.linalg.solve(K[np.ix_(rest, rest)] + 3.0 * np.eye(n - 1), z - z.mean())
        assert held.scores[k] == pytest.approx(K[k, rest] @ c, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_doubts_name_judged_pairs_of_every_model(kind):
    search = model(kind)
    for source, target in (PAIR, PAIR[::-1], ("text", "text")):
        found = search.doubts(5, source=source, target=target)
        cells = search.links_.judged(source, target) if found else None
        for own in found:
            i = search.items_[source].positions([own.source_item])[0]
            j = search.items_[target].positions([own.target_item])[0]
            assert (cells[i, j] > 0) == (own.verdict == "must")
            assert 0 <= own.probability <= 1
            signs = {part.amount > 0 for part in own.contradictions}
            assert signs <= {own.verdict == "cannot"}
        chances = [own.probability for own in found]
        assert chances == sorted(chances, reverse=True)


def test_flipped_judgements_are_doubted_first_and_contradicted():
    rng = np.random.default_rng(0)
    table = [(k, k, 1.0) for k in range(60)]
    table += [(k, (k + 50) % 120, -1.0) for k in range(60)]
    flipped = set(rng.permutation(len(table))[:12].tolist())
    given = [(i, j, -w if k in flipped else w) for k, (i, j, w) in enumerate(table)]
    pair = make_pair(noise=0.2)
    views = {"text": pair["text"], "image": pair["image"] @ rng.normal(size=(8, 6))}
    search = ls.CrossViewSearch().fit(views, ls.Links.from_pairs(given, between=PAIR))
    found = search.doubts(len(table), **BETWEEN)
    wrong = {given[k][:2] for k in flipped}
    is_wrong = [(own.source_item, own.target_item) in wrong for own in found]
    chance = [own.probability for own in found]
    assert average_precision_score(is_wrong, chance) > 0.8
    assert all(own.contradictions for own in found[:5])
    back = search.doubts(3, source="image", target="text")
    assert [(own.target_item, own.source_item) for own in back] == [
        (own.source_item, own.target_item) for own in found[:3]
    ]
    for own, other in zip(back, found, strict=False):
        assert other.contradictions
        assert [
            (part.target_item, part.source_item) for part in own.contradictions
        ] == [(part.source_item, part.target_item) for part in other.contradictions]


def test_nothing_judged_is_nothing_doubted():
    assert model("shared").doubts(**BETWEEN) == []


def test_doubts_leave_the_model_as_it_is():
    search = model("judged")
    before = search.scores(*PAIR)
    search.doubts(**BETWEEN)
    assert np.array_equal(search.scores(*PAIR), before)
    with pytest.raises(ls.errors.LinkspreadError, match="`n`"):
        search.doubts(0, **BETWEEN)

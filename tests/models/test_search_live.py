"""Live judgements of CrossViewSearch: as a fit with all links, at a flat cost."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import linkspread as ls
from linkspread.ground.errors import ConflictWarning
from linkspread.learning import Choice, Setting, fit_factors, read_evidence
from linkspread.learning import factors as learning_factors
from linkspread.learning import terms as learning_terms
from linkspread.learning.terms import PairsTerm
from linkspread.models import cross_view_search

PAIR = ("text", "image")
N = 200


def make_views(shared=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 8))
    Y = X + 0.5 * rng.normal(size=X.shape)
    return {"text": X, "image": Y if shared else Y @ rng.normal(size=(8, 6))}


def links_of(table):
    return ls.Links.from_pairs(table, between=PAIR)


def judged():
    rng = np.random.default_rng(1)
    table = [(k, k, 1.0) for k in range(70)]
    return table + [(k, int(rng.integers(120, N)), -1.0) for k in range(110)]


def matched():
    return [(k, k, 1.0) for k in range(130)]


def terms(*kinds):
    return Choice(tuple(kinds), 0.5, 0, {})


GRIDS = terms(
    Setting("grid", "linear + gaussian", 1.0),
    Setting("grid", "graph", 10.0, 0.5),
    Setting("into left", "linear", 0.01),
    Setting("into right", "linear + gaussian", 0.1),
)
CASES = {
    "judged": (judged, False, terms(Setting("pairs", ridge=3.0))),
    "landmarks": (judged, False, terms(Setting("pairs", ridge=3.0))),
    "matched": (matched, False, GRIDS),
    "with a prior": (
        matched,
        True,
        terms(Setting("displacement", "linear + gaussian", 3.0), Setting("prior")),
    ),
}


def fitted(case, monkeypatch):
    """Return a search with one choice of terms that stays."""
    if case == "landmarks":
        monkeypatch.setattr(learning_terms, "MOST", 120)
    table, shared, choice = CASES[case]
    model = ls.CrossViewSearch().fit(make_views(shared), links_of(table()))
    evidence = read_evidence(model.links_, *PAIR)
    model.choices_[PAIR] = choice
    model._factors[PAIR] = fit_factors(model._factors[PAIR].sides, evidence, choice)
    return model


def all_scores(factors):
    return np.stack(
        [
            factors.scores(0, factors.fitted(0, slice(None))),
            factors.scores(1, factors.fitted(1, slice(None))).T,
        ]
    ).astype(np.float64)


def refuse(*args, **kwargs):
    raise AssertionError("a live judgement must not fit anything anew")


def judge_at_random(model, given, rng, n):
    """Add pairs, take some back, and judge some again."""
    for k in range(n):
        if k % 3 == 1:
            gone = given.pop(int(rng.integers(len(given))))
            model.remove_links(links_of([gone]))
            continue
        i, j = (int(own) for own in rng.integers(N, size=2))
        if k % 3 == 2:
            i, j, _ = given[int(rng.integers(len(given)))]
        new = i, j, float(rng.choice([1.0, -1.0, 0.7, 2.0]))
        model.add_links(links_of([new]))
        given.append(new)


@pytest.mark.filterwarnings("ignore::linkspread.ground.errors.ConflictWarning")
@pytest.mark.parametrize("case", CASES)
def test_judgements_give_what_a_fit_gives(case, monkeypatch):
    model = fitted(case, monkeypatch)
    start = all_scores(model._factors[PAIR])
    monkeypatch.setattr(learning_factors, "fit_term", refuse)
    monkeypatch.setattr(cross_view_search, "fit_pair", refuse)
    given = list(CASES[case][0]())
    judge_at_random(model, given, np.random.default_rng(2), 300)
    live = model._factors[PAIR]
    evidence = read_evidence(model.links_, *PAIR)
    assert live.n_pairs == evidence.n_pairs
    monkeypatch.undo()
    # Landmarks, scales and hub corrections of the targets stay.
    fresh = fit_factors(live.sides, evidence, model.choices_[PAIR], before=live)
    scores, wanted = all_scores(live), all_scores(fresh)
    assert not np.allclose(scores, start)
    assert_allclose(scores, wanted, atol=1e-6 * np.ptp(wanted))
    few = live.scores(0, live.fitted(0, slice(0, 3)))
    assert_allclose(few, wanted[0, :3], atol=1e-6 * np.ptp(wanted))


@pytest.mark.parametrize("case", CASES)
def test_a_judgement_touches_nothing_of_the_size_of_a_view(case, monkeypatch):
    model = fitted(case, monkeypatch)
    before, maps, priors = model._factors[PAIR], dict(model._maps), dict(model._priors)
    tables, items = dict(model._tables), dict(model.items_)
    monkeypatch.setattr(learning_factors, "fit_term", refuse)
    model.add_links(links_of([(150, 150, 1.0)]))
    after = model._factors[PAIR]
    assert after is not before
    assert after.sides is before.sides
    assert after.scales is before.scales
    assert after.bias is before.bias
    assert after.classes is before.classes
    assert all(model._maps[view] is own for view, own in maps.items())
    assert all(model._priors[view] is own for view, own in priors.items())
    assert all(model._tables[view] is own for view, own in tables.items())
    assert all(model.items_[view] is own for view, own in items.items())


@pytest.mark.parametrize("case", CASES)
def test_a_snapshot_keeps_its_scores_and_can_go_its_own_way(case, monkeypatch):
    model = fitted(case, monkeypatch)
    kept = model.snapshot()
    before = kept.scores(*PAIR)
    model.add_links(links_of([(150, 150, 1.0)]))
    assert_array_equal(kept.scores(*PAIR), before)
    now = model.scores(*PAIR)
    kept.add_links(links_of([(151, 151, 1.0)])).add_links(links_of([(150, 150, 1.0)]))
    assert_array_equal(model.scores(*PAIR), now)
    model.add_links(links_of([(151, 151, 1.0)]))
    scores = model.scores(*PAIR)
    assert_allclose(kept.scores(*PAIR), scores, atol=1e-6 * np.ptp(scores))


def test_more_pairs_than_are_compared_get_landmarks(monkeypatch, tmp_path):
    monkeypatch.setattr("linkspread.learning.pairs.MOST", 182)
    monkeypatch.setattr(learning_terms, "MOST", 182)
    model = fitted("judged", monkeypatch)
    for k in range(150, 155):
        model.add_links(links_of([(k, k, 1.0)]))
    ((term, _),) = model._factors[PAIR].terms
    assert isinstance(term, PairsTerm)
    assert len(term.landmarks[0].left) == 182
    model.save(tmp_path / "model")
    again = ls.load(tmp_path / "model")
    scores = model.scores(*PAIR)
    assert_allclose(again.scores(*PAIR), scores, atol=1e-6 * np.ptp(scores))
    why = again.explain(150, 150, source="text", target="image")
    assert_allclose(why.score, scores[150, 150], atol=1e-5 * np.ptp(scores))
    assert len(why.contributions) >= 185


@pytest.mark.parametrize("case", CASES)
def test_links_are_taken_back_and_given_again(case, monkeypatch):
    """Other terms stand in where hardly a link is left, and go again."""
    model = fitted(case, monkeypatch)
    before = model.scores(*PAIR)
    links = links_of(CASES[case][0]()[2:])
    model.remove_links(links).add_links(links)
    assert_allclose(model.scores(*PAIR), before, atol=1e-6 * np.ptp(before))
    for link in CASES[case][0]()[2:5]:
        model.remove_links(links_of([link])).add_links(links_of([link]))
    assert_allclose(model.scores(*PAIR), before, atol=1e-6 * np.ptp(before))


def test_conflicts_are_told_when_they_arise(monkeypatch):
    model = fitted("judged", monkeypatch)
    with pytest.warns(ConflictWarning):
        model.add_links(links_of([(3, 3, -2.0)]))
    model.add_links(links_of([(150, 150, 1.0)]))

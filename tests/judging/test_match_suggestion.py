"""Candidates to judge next: uncertain, of different items, and one certain."""

import numpy as np

import linkspread as ls
from linkspread.judging.match_suggestion import suggest_matches


def made_matches(links=None):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    views = {"a": X, "b": X + 0.5 * rng.normal(size=X.shape)}
    return ls.CrossViewSearch().fit(views, links).match("a", "b")


def test_suggestions_are_uncertain_and_share_no_item():
    matches = made_matches()
    left, right = suggest_matches(matches, 20)
    assert len(left) == len(set(left)) == len(set(right)) == 20
    rated = matches.rated
    p = rated.probabilities[rated.pairs.places(left, right)]
    doubt = np.abs(rated.probabilities - 0.5)
    assert np.abs(p[:18] - 0.5).max() < np.median(doubt)
    # The last ones are matches, whatever their probability.
    assert rated.is_match[rated.pairs.places(left, right)[18:]].all()


def test_judged_pairs_and_what_they_exclude_are_not_suggested():
    links = ls.Links.from_pairs(
        [(i, i, 1.0) for i in range(60)] + [(70, 70, -1.0)], between=("a", "b")
    )
    left, right = suggest_matches(made_matches(links), 1000)
    assert left.min() >= 60
    assert (70, 70) not in set(zip(left.tolist(), right.tolist(), strict=True))
    assert len(left) <= 60

"""Evaluations of fitted models, and what their scores mean."""

from functools import cache

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import linkspread as ls
from example_files import made_data
from linkspread import Links, LinkSpreading
from linkspread.datasets import make_views
from linkspread.ground.errors import FewLinksError, LinkspreadError
from linkspread.selection import (
    ScoreCalibration,
    calibrate,
    evaluate_pairs,
    evaluate_search,
)
from linkspread.studies.baselines import SemanticMatching

N = 200
BETWEEN = {"source": "text", "target": "image"}


@cache
def make_problem(kind):
    """Return views, links, which pairs belong together and which were judged."""
    data = make_views(N, n_classes=4, random_state=0)
    same = data.labels["text"][:, None] == data.labels["image"][None, :]
    judged = np.zeros((N, N), dtype=bool)
    if kind == "labels":
        known = {v: np.where(np.arange(N) < 60, y, -1) for v, y in data.labels.items()}
        judged[:60] = judged[:, :60] = True
        return data.views(), Links.from_labels(known), same, judged
    chosen = np.random.default_rng(0).choice(N * N, 500, replace=False)
    i, j = np.divmod(chosen, N)
    judged[i, j] = True
    table = np.column_stack([i, j, np.where(same[i, j], 1.0, -1.0)])
    return (
        data.views(),
        Links.from_pairs(table, between=("text", "image")),
        same,
        judged,
    )


def calibration_error(probabilities, is_must, n_bins=10):
    """Return the mean gap between probability and frequency, in bins of equal size."""
    bins = np.array_split(np.argsort(probabilities, kind="stable"), n_bins)
    gaps = [abs(probabilities[b].mean() - is_must[b].mean()) for b in bins]
    return np.mean(gaps)


@pytest.mark.parametrize("kind", ["pairs", "labels"])
def test_probabilities_are_frequencies_of_pairs_nobody_judged(kind):
    views, links, same, judged = make_problem(kind)
    model = LinkSpreading(n_neighbors=8).fit(views, links)
    calibration = calibrate(model, views, **BETWEEN)
    scores = model.scores("text", "image")
    error = calibration_error(calibration.probability(scores[~judged]), same[~judged])
    # The naive way: a logistic curve of the scores that the model was fitted to.
    seen = judged if kind == "pairs" else np.outer(np.arange(N) < 60, np.arange(N) < 60)
    naive = LogisticRegression(C=np.inf).fit(
        scores[seen][:, None] / calibration.scale, same[seen]
    )
    flattered = naive.predict_proba(scores[~judged][:, None] / calibration.scale)[:, 1]
    assert error < 0.06
    assert error < calibration_error(flattered, same[~judged]) / 3


def test_the_scale_is_the_root_mean_square_of_all_scores():
    views, links, _, _ = make_problem("pairs")
    model = LinkSpreading(n_neighbors=8).fit(views, links)
    calibration = calibrate(model, views, **BETWEEN)
    wanted = np.sqrt(np.mean(model.scores("text", "image").astype(float) ** 2))
    assert calibration.scale == pytest.approx(wanted, rel=1e-5)
    assert calibration.n_pairs == 500
    weights = links.resolve({"text": N, "image": N}).judged("text", "image").data
    assert calibration.base_rate == pytest.approx(np.mean(weights > 0))


def test_probabilities_rise_and_keep_the_shape_of_the_scores(rng):
    curve = IsotonicRegression(out_of_bounds="clip").fit([0.0, 1.0, 2.0], [0.1, 0.4, 1])
    calibration = ScoreCalibration("text", "image", curve, 2.0, 3, 0.5)
    got = calibration.probability([[-9.0, 0.0], [3.0, 99.0]])
    np.testing.assert_allclose(got, [[0.1, 0.1], [0.7, 1.0]])
    assert calibration.probability(2.0) == pytest.approx(0.4)


@pytest.mark.slow
def test_both_directions_and_ids_of_ones_own_agree():
    views, links, _, _ = make_problem("pairs")
    ids = {"text": [f"t{i}" for i in range(N)]}
    pairs = links.pair_tables[0][1]
    named = [(f"t{i}", j, w) for i, j, w in
             zip(pairs.left, pairs.right, pairs.weights, strict=True)]  # fmt: skip
    named = Links.from_pairs(named, between=("text", "image"))
    plain = calibrate(LinkSpreading(n_neighbors=8).fit(views, links), views, **BETWEEN)
    model = LinkSpreading(n_neighbors=8).fit(views, named, ids=ids)
    back = calibrate(model, views, source="image", target="text")
    at = np.linspace(-3, 3, 50) * plain.scale
    np.testing.assert_allclose(back.probability(at), plain.probability(at), atol=1e-4)


def test_rivals_can_be_calibrated_too():
    views, links, same, judged = make_problem("labels")
    model = SemanticMatching().fit(views, links)
    calibration = calibrate(model, views, **BETWEEN)
    probabilities = calibration.probability(model.scores("text", "image")[~judged])
    assert calibration_error(probabilities, same[~judged]) < 0.1


def test_links_of_one_kind_are_one_sentence():
    views, _, _, _ = make_problem("pairs")
    links = Links.from_matched(("text", "image"), 50)
    model = LinkSpreading(n_neighbors=8).fit(views, links)
    message = "at least two must- and two cannot-links, got 50 and 0. Judge a few"
    with pytest.raises(FewLinksError, match=message):
        calibrate(model, views, **BETWEEN)


def test_labels_of_one_class_are_one_sentence():
    views, _, _, _ = make_problem("pairs")
    labels = {v: np.where(np.arange(N) < 20, 0, -1) for v in views}
    model = LinkSpreading(n_neighbors=8).fit(views, labels)
    with pytest.raises(FewLinksError, match="held-out links must be of both kinds"):
        calibrate(model, views, **BETWEEN)


def test_two_labelled_views_are_not_calibrated_within_one():
    views, links, _, _ = make_problem("labels")
    model = LinkSpreading(n_neighbors=8).fit(views, links)
    message = "`source` and `target` must be views whose links can be held out"
    with pytest.raises(LinkspreadError, match=message):
        calibrate(model, views, source="text", target="text")


def test_a_wrong_number_of_folds_is_one_sentence():
    views, links, _, _ = make_problem("labels")
    model = LinkSpreading(n_neighbors=8).fit(views, links)
    with pytest.raises(LinkspreadError, match="`n_splits` must be an integer from 2"):
        calibrate(model, views, n_splits=1, **BETWEEN)


def test_no_query_with_anything_to_find_is_said():
    data = made_data()
    model = ls.LinkSpreading(n_neighbors=5).fit(data.views(), data.labels)
    labels = {"text": np.zeros(60, dtype=int), "image": np.ones(40, dtype=int)}
    with pytest.raises(
        ls.ground.errors.LinkspreadError, match="some item of view 'image'"
    ):
        evaluate_search(model, labels, include_known=True)


def test_integer_ids_that_are_no_positions_are_evaluated_alike(rng):
    data = made_data()
    pairs = [(i, j, 1.0 if data.labels["text"][i] == data.labels["image"][j] else -1.0)
             for i in range(10) for j in range(10)]  # fmt: skip
    links = ls.Links.from_pairs(pairs, between=("text", "image"))
    plain = ls.LinkSpreading(n_neighbors=5).fit(data.views(), links)
    ids = {"text": 100 + np.arange(60)[::-1], "image": 7 * np.arange(40)}
    moved = [(ids["text"][i], ids["image"][j], w) for i, j, w in pairs]
    other = ls.Links.from_pairs(moved, between=("text", "image"))
    named = ls.LinkSpreading(n_neighbors=5).fit(data.views(), other, ids=ids)
    assert evaluate_search(named, data.labels) == evaluate_search(plain, data.labels)
    one = evaluate_pairs(plain, links, include_known=True)
    assert evaluate_pairs(named, other, include_known=True) == one

"""CrossViewSearch: from what views share, by judged pairs, live, for new items."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import linkspread as ls
from linkspread.ground.errors import LinkError, ViewError
from linkspread.learning import fit_factors
from linkspread.links.evidence import read_evidence


@pytest.fixture(scope="module")
def views():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 8))
    return {"text": X, "image": X + 0.6 * rng.normal(size=X.shape)}


@pytest.fixture(scope="module")
def strangers(views):
    """Views that share no space: all there is comes from links."""
    mixed = views["image"] @ np.random.default_rng(1).normal(size=(8, 6))
    return {"text": views["text"], "image": mixed}


@pytest.fixture(scope="module")
def pairs():
    return ls.Links.from_matched(("text", "image"), 40)


@pytest.fixture(scope="module")
def model(views, pairs):
    return ls.CrossViewSearch().fit(views, pairs)


def test_without_links_it_is_the_cosine_less_hubs(views):
    model = ls.CrossViewSearch().fit(views)
    units = [X / np.linalg.norm(X, axis=1, keepdims=True) for X in views.values()]
    cosines = units[0] @ units[1].T
    best = np.sort(cosines, axis=0)[-10:].mean(axis=0)
    expected = cosines - 0.5 * best
    assert_allclose(model.scores("text", "image"), expected, atol=1e-5)
    assert "share a space" in model.summary_


def test_both_directions_have_the_same_scores_but_for_hubs(model):
    bias = model._factors["text", "image"].bias
    there = model.scores("text", "image") - bias[1]
    back = model.scores("image", "text") - bias[0]
    assert_allclose(there, back.T, atol=1e-5)


def test_exported_vectors_rank_as_the_search_does(model):
    searching, found = model.embeddings("text", "image")
    ids, scores = model.search(np.arange(5), source="text", target="image")
    products = searching[:5] @ found.T
    best = np.sort(products, axis=1)[:, ::-1][:, :10]
    assert_allclose(best, scores, atol=1e-4 * np.abs(scores).max())
    assert ids.shape == (5, 10)


def test_new_items_search_as_fitted_ones(views, model):
    new = model.scores("text", "image", rows=views["text"][:6].copy())
    assert_allclose(new, model.scores("text", "image")[:6], atol=1e-4)


@pytest.mark.slow
def test_pairs_make_the_search_better_where_nothing_is_shared(strangers):
    recalls = []
    for n_known in (6, 60):
        links = ls.Links.from_matched(("text", "image"), n_known)
        scores = ls.CrossViewSearch().fit(strangers, links).scores("text", "image")
        recalls.append(np.mean(scores.argmax(axis=1)[60:] == np.arange(60, 150)))
    assert recalls[1] > recalls[0]
    with pytest.raises(LinkError, match="joined by links"):
        ls.CrossViewSearch().fit(strangers)


def test_links_that_are_added_and_removed_leave_no_trace(strangers, pairs):
    model = ls.CrossViewSearch().fit(strangers, pairs)
    before = model.scores("text", "image")
    more = ls.Links.from_pairs([(50, 50), (51, 51)], between=("text", "image"))
    after = model.add_links(more).scores("text", "image")
    assert not np.allclose(before, after)
    again = model.remove_links(more).scores("text", "image")
    assert_allclose(again, before, atol=1e-6 * np.abs(before).max())


def test_added_links_give_what_a_fit_with_all_links_gives(strangers, pairs):
    """All 150 items are landmarks, so that both fits have the same kernels."""
    pair = ("text", "image")
    more = ls.Links.from_pairs([(60, 60), (61, 61)], between=pair)
    live = ls.CrossViewSearch().fit(strangers, pairs).add_links(more)
    anew = ls.CrossViewSearch().fit(strangers, pairs + more)
    evidence = read_evidence(anew.links_, *pair)
    before = live._factors[pair]
    fitted = fit_factors(before.sides, evidence, live.choices_[pair])
    # Scales and hub strengths of the targets stay those of the fit.
    fitted = replace(fitted, scales=before.scales, bias=before.bias)
    scores = [
        own.scores(0, own.fitted(0, slice(None))).astype(float)
        for own in (before, fitted)
    ]
    assert_allclose(*scores, atol=1e-6 * np.abs(scores[0]).max())


def test_first_links_of_two_views_make_them_searchable(views):
    third = views["text"] @ np.random.default_rng(2).normal(size=(8, 3))
    model = ls.CrossViewSearch().fit({**views, "sound": third})
    links = ls.Links.from_matched(("text", "sound"), 30)
    found = model.add_links(links).scores("text", "sound").argmax(axis=1)
    assert np.mean(found[30:] == np.arange(30, 150)) > 0.05  # chance is .007


def test_links_are_taken_back_down_to_the_prior_and_no_further(views, strangers):
    few = ls.Links.from_matched(("text", "image"), 6)
    model = ls.CrossViewSearch().fit(strangers, few)
    before = model.scores("text", "image")
    with pytest.raises(LinkError, match="none left"):
        model.remove_links(few)
    assert_allclose(model.scores("text", "image"), before)
    assert ls.CrossViewSearch().fit(views, few).remove_links(few).links_.connects(
        "text", "image"
    ) is False  # fmt: skip


def test_more_like_this_needs_no_link(views):
    model = ls.CrossViewSearch().fit(views)
    ids, _ = model.search(0, source="text", target="text", n_results=3)
    assert 0 not in ids


def test_judged_apart_pairs_are_learnt_from(views):
    table = [(k, k, 1) for k in range(30)] + [(k, k + 40, -1) for k in range(30)]
    links = ls.Links.from_pairs(table, between=("text", "image"))
    model = ls.CrossViewSearch().fit(views, links)
    assert "30 not to" in model.summary_
    assert model.choices_["text", "image"].n_held_out == 30


def test_frames_with_ids_are_read(views):
    frames = {
        view: pd.DataFrame(X, columns=[f"c{k}" for k in range(8)]).assign(
            id=[f"{view}{k}" for k in range(150)]
        )
        for view, X in views.items()
    }
    model = ls.CrossViewSearch().fit(frames)
    ids, _ = model.search("text0", source="text", target="image")
    assert all(str(item).startswith("image") for item in ids)


def test_a_prior_of_ones_own_is_compared_in_place_of_the_views(views):
    other = {"text": views["text"][:, :3], "image": views["image"][:, ::-1]}
    model = ls.CrossViewSearch(prior=views).fit(other)
    plain = ls.CrossViewSearch().fit(views)
    scores = model.scores("text", "image")
    assert_allclose(scores, plain.scores("text", "image"), atol=1e-5)
    with pytest.raises(ViewError, match="prior"):
        model.search(other["text"][:1].copy(), source="text", target="image")


@pytest.mark.parametrize(
    ("fit", "error", "message"),
    [
        (lambda v: ls.CrossViewSearch(prior=3).fit(v), ViewError, "`prior` must be"),
        (
            lambda v: ls.CrossViewSearch(prior={"text": v["text"][:9]}).fit(v),
            ViewError,
            "`prior` of view 'text'",
        ),
        (lambda v: ls.CrossViewSearch().fit(v, [(0, 1)]), LinkError, "`links` must be"),
        (
            lambda v: (
                ls.CrossViewSearch()
                .fit(v)
                .add_links(ls.Links.from_labels({"text": [0] * 75 + [1] * 75}))
            ),
            LinkError,
            "`links` must be single pairs",
        ),
        (
            lambda v: ls.CrossViewSearch(metric="cosin").fit(v),
            ls.ground.errors.LinkspreadError,
            "`metric` must be one of",
        ),
        (
            lambda v: ls.CrossViewSearch(metric="hellinger").fit(v),
            ViewError,
            "'text' must have no negative values",
        ),
        (lambda v: ls.CrossViewSearch().fit({"text": v["text"]}), ViewError, "two"),
        (
            lambda v: ls.CrossViewSearch().fit({**v, "text": np.ones((9, 8))}),
            ViewError,
            "'text' must have rows that differ",
        ),
        (
            lambda v: ls.CrossViewSearch().fit(v).search(0, source="a", target="text"),
            ls.ground.errors.LinkspreadError,
            "'a'",
        ),
    ],
)
def test_mistakes_have_a_sentence(views, fit, error, message):
    with pytest.raises(error, match=message):
        fit(views)


def test_three_views_are_searched_where_they_can_be(views):
    third = np.random.default_rng(2).normal(size=(20, 5))
    model = ls.CrossViewSearch().fit({**views, "sound": third})
    assert model.scores("text", "image").shape == (150, 150)
    with pytest.raises(LinkError, match="must share a space or have links"):
        model.scores("text", "sound")


def test_as_many_columns_are_no_shared_space_if_the_links_say_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    views = {"text": X, "image": X @ rng.normal(size=(6, 6))}
    links = ls.Links.from_matched(("text", "image"), 40)
    model = ls.CrossViewSearch().fit(views, links)
    found = model.scores("text", "image").argmax(axis=1)
    assert np.mean(found[40:] == np.arange(40, 200)) > 0.6
    choice = model.choices_["text", "image"]
    assert {"prior", "displacement"}.isdisjoint(term.kind for term in choice.terms)
    assert choice.quality["model"] > 0.2


@pytest.fixture(scope="module")
def classes():
    """Two views of five classes that share no space."""
    data = ls.datasets.make_views(
        {"text": 300, "image": 250}, n_classes=5, random_state=0
    )
    return data.views(), data.labels


def precision(scores, labels):
    return ls.metrics.mean_average_precision(scores, labels["text"], labels["image"])


def test_labels_are_learnt_from_also_where_one_view_has_them_all(classes):
    views, labels = classes
    known = {
        view: np.where(np.arange(len(y)) < 50, y, -1) for view, y in labels.items()
    }
    model = ls.CrossViewSearch().fit(views, ls.Links.from_labels(known))
    assert precision(model.scores("text", "image"), labels) > 0.6  # chance is .2
    assert "5 classes" in model.summary_
    within = model.scores("text", "text")
    same = labels["text"][:, None] == labels["text"]
    assert within[same].mean() > within[~same].mean() + 0.2


@pytest.mark.slow
def test_judged_pairs_of_classes_beat_chance_and_grow_with_their_number(classes):
    views, labels = classes
    rng = np.random.default_rng(0)
    found = []
    for n in (40, 400):
        i, j = rng.integers(300, size=n), rng.integers(250, size=n)
        verdicts = np.where(labels["text"][i] == labels["image"][j], 1.0, -1.0)
        table = np.column_stack([i, j, verdicts])
        links = ls.Links.from_pairs(table, between=("text", "image"))
        model = ls.CrossViewSearch(prior=None).fit(views, links)
        found.append(precision(model.scores("text", "image"), labels))
    assert 0.4 < found[0] < found[1]


@pytest.mark.slow
def test_pairs_within_a_view_are_learnt_from(classes):
    views, labels = classes
    y = labels["text"]
    i, j = np.random.default_rng(0).integers(300, size=(2, 400))
    i, j = i[i != j], j[i != j]
    table = np.column_stack([i, j, np.where(y[i] == y[j], 1.0, -1.0)])
    links = ls.Links.from_pairs(table, between=("text", "text"))
    both = links + ls.Links.from_matched(("text", "image"), 20)
    without = ls.Links.from_matched(("text", "image"), 20)
    quality = [
        ls.metrics.mean_average_precision(
            ls.CrossViewSearch().fit(views, known).scores("text", "text"), y, y
        )
        for known in (without, both)
    ]
    assert quality[1] > quality[0]


@pytest.mark.slow
def test_views_without_links_are_searched_through_a_third(classes):
    views, labels = classes
    third = views["image"] @ np.random.default_rng(3).normal(
        size=(views["image"].shape[1], 7)
    )
    rng = np.random.default_rng(0)
    i, j = rng.integers(300, size=600), rng.integers(250, size=600)
    verdicts = np.where(labels["text"][i] == labels["image"][j], 1.0, -1.0)
    links = ls.Links.from_pairs(
        np.column_stack([i, j, verdicts]), between=("text", "image")
    ) + ls.Links.from_pairs([(k, k) for k in range(120)], between=("image", "sound"))
    model = ls.CrossViewSearch(prior=None).fit({**views, "sound": third}, links)
    assert precision(model.scores("text", "sound"), labels) > 0.4


def test_what_counts_is_chosen_again_when_links_have_doubled(strangers):
    model = ls.CrossViewSearch().fit(
        strangers, ls.Links.from_matched(("text", "image"), 6)
    )
    few = model.choices_["text", "image"]
    table = [(k, k) for k in range(6, 60)]
    more = ls.Links.from_pairs(table, between=("text", "image"))
    assert model.add_links(more).choices_["text", "image"].n_held_out > few.n_held_out

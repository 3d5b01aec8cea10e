"""Links added to a fitted model and taken back, against a model fitted to them."""

import warnings

import numpy as np
import pytest

import linkspread as ls
from linkspread import Links, LinkSpreading
from linkspread.ground.errors import ConflictWarning, LinkError, LinkspreadError
from reference import exact_scores, relative_error

SIZES = {"text": 50, "image": 40, "sound": 35}


@pytest.fixture(autouse=True)
def no_word_of_conflicts():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConflictWarning)
        yield


def make_views(rng):
    return {view: rng.standard_normal((n, 5)) for view, n in SIZES.items()}


def draw(rng, n_pairs, between=("text", "image")):
    left, right = (rng.integers(0, SIZES[view], n_pairs) for view in between)
    weights = rng.choice([1.0, -1.0, 0.5], n_pairs)
    return [(int(i), int(j), float(w)) for i, j, w in
            zip(left, right, weights, strict=True)]  # fmt: skip


def as_links(pairs, between=("text", "image")):
    """Return pairs with signed weights, which may all be of one sign."""
    said = [(i, j, "must" if w > 0 else "cannot", abs(w)) for i, j, w in pairs]
    return Links.from_pairs(said, between=between)


def label_links(rng):
    labels = {view: rng.integers(-1, 3, n) for view, n in SIZES.items()}
    return Links.from_labels(labels)


def make_model(**parameters):
    return LinkSpreading(**{"n_neighbors": 5, "tol": 1e-9, "alpha": 0.3} | parameters)


@pytest.mark.parametrize("balance", ["auto", "literal", 0.3])
@pytest.mark.parametrize("base", ["labels", "pairs", "both"])
@pytest.mark.slow
def test_changed_links_score_as_in_a_fit_to_them(rng, balance, base):
    views = make_views(rng)
    parts = [label_links(rng)] * (base != "pairs") + [as_links(draw(rng, 6))] * (
        base != "labels"
    )
    links = parts[0] if len(parts) == 1 else parts[0] + parts[1]
    model = make_model(balance=balance).fit(views, links)
    start, active = model.scores("text", "image"), []
    for step in range(24):
        if active and rng.random() < 0.4:
            gone = active.pop(int(rng.integers(len(active))))
            model.remove_links(as_links([gone]))
        else:
            active.append(draw(rng, 1)[0])
            model.add_links(as_links(active[-1:]))
        if step % 8 == 7:
            now = links + as_links(active) if active else links
            fitted = make_model(balance=balance).fit(views, now)
            for way in (("text", "image"), ("image", "text")):
                rows = views[way[0]][:3] + 0.1
                for asked in ({}, {"rows": rows}):
                    one, other = (m.scores(*way, **asked) for m in (model, fitted))
                    assert relative_error(one, other) < 1e-6
    for pair in active:
        model.remove_links(as_links([pair]))
    assert relative_error(model.scores("text", "image"), start) < 1e-6


def test_only_the_views_that_are_linked_anew_change(rng):
    views = make_views(rng)
    model = make_model().fit(views, label_links(rng))
    before = {pair: model.spreads_[pair] for pair in model.spreads_}
    between = ("image", "sound")
    model.add_links(as_links(draw(rng, 3, between), between))
    changed = {pair for pair in before if model.spreads_[pair] is not before[pair]}
    assert changed == {between}
    # Rows on demand follow at once; nothing is spread before they are asked for.
    assert model.report_.spreads[between].rank is None


def test_views_that_had_no_links_are_joined_by_new_ones(rng):
    views = make_views(rng)
    model = make_model().fit(views, as_links(draw(rng, 8)))
    with pytest.raises(LinkError, match="must be joined by links"):
        model.scores("text", "sound")
    more = as_links(draw(rng, 5, ("text", "sound")), ("text", "sound"))
    assert model.add_links(more).scores("text", "sound").shape == (50, 35)


def test_links_within_a_view_stay_symmetric(rng):
    views = {"text": rng.standard_normal((40, 4))}
    within = ("text", "text")
    first = [(i, i + 1, 1.0) for i in range(0, 10, 2)]
    more = [(3, 9, -1.0), (20, 21, 1.0)]
    model = make_model().fit(views, as_links(first, within))
    model.add_links(as_links(more, within))
    fitted = make_model().fit(views, as_links(first + more, within))
    scores = model.scores("text", "text")
    assert relative_error(scores, fitted.scores("text", "text")) < 1e-6
    assert np.allclose(scores, scores.T, atol=1e-8)


def test_links_are_given_by_id_and_found_in_the_links_of_the_model(rng):
    views = make_views(rng)
    ids = {view: [f"{view}{i}" for i in range(n)] for view, n in SIZES.items()}
    named = as_links([("text3", "image7", 1.0), ("text4", "image2", -1.0)])
    model = make_model().fit(views, named, ids=ids)
    model.add_links(as_links([("text9", "image1", 1.0)]))
    assert model.links_.judged("text", "image")[9, 1] == 1.0
    found, _ = model.search("text9", source="text", target="image", n_results=1)
    assert found[0] == "image1"


@pytest.mark.parametrize("change", ["add_links", "remove_links"])
def test_mistakes_change_nothing(rng, change):
    views = make_views(rng)
    model = make_model().fit(views, as_links(draw(rng, 8)))
    links, scores = model.links_, model.scores("text", "image")
    wrong = [
        (label_links(rng), "`links` must be single pairs"),
        ([(1, 2)], "`links` must be single pairs"),
        (as_links([(49, 39, 7.0), (99, 0, 1.0)]), "99"),
        (as_links([(0, 1, 1.0)], ("text", "smell")), "'smell'"),
    ]
    for given, message in wrong:
        with pytest.raises(LinkspreadError, match=message):
            getattr(model, change)(given)
    with pytest.raises(LinkError, match="must exist"):
        model.remove_links(as_links([(49, 39, 7.0)]))
    assert model.links_ is links
    assert np.array_equal(model.scores("text", "image"), scores)


def test_a_rank_holds_until_links_change(rng):
    views, links = make_views(rng), as_links(draw(rng, 40))
    model = make_model(rank=6).fit(views, links)
    assert model.report_.spreads["text", "image"].rank == 6
    more = as_links(draw(rng, 3))
    model.add_links(more).remove_links(more)
    exact = make_model().fit(views, links)
    assert relative_error(model.scores("text", "image"), exact_scores(exact)) < 1e-8


def test_a_model_can_be_saved_after_links_were_added(rng, tmp_path):
    views = make_views(rng)
    model = make_model().fit(views, label_links(rng))
    model.add_links(as_links(draw(rng, 5))).save(tmp_path / "model")
    loaded = ls.load(tmp_path / "model")
    more = as_links(draw(rng, 2))
    assert np.array_equal(loaded.scores("text", "image"), model.scores("text", "image"))
    one, other = (m.add_links(more).scores("text", "image") for m in (loaded, model))
    assert relative_error(one, other) < 1e-6


def test_a_model_of_must_links_alone_can_be_saved(rng, tmp_path):
    views = make_views(rng)
    model = make_model().fit(views, Links.from_matched(("text", "image"), 30))
    rows = views["text"][:4] + 0.1
    model.save(tmp_path / "model")
    loaded = ls.load(tmp_path / "model")
    for asked in ({}, {"rows": rows}):
        one, other = (m.scores("text", "image", **asked) for m in (loaded, model))
        assert np.array_equal(one, other)

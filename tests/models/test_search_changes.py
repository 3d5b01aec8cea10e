"""CrossViewSearch that changes: links and items that come and go, snapshots."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import linkspread as ls
from linkspread.ground.errors import (
    ConflictWarning,
    LinkError,
    LinkspreadError,
    ViewError,
)
from linkspread.learning import Choice, Setting, fit_factors
from linkspread.learning import factors as learning_factors
from linkspread.learning import terms as learning_terms
from linkspread.learning.terms import PairsTerm
from linkspread.links.evidence import read_evidence
from linkspread.models import cross_view_search
from search_models import KINDS, PAIR, class_views, make_pair, model

CLOSE = {"rtol": 1e-5, "atol": 1e-6}


@pytest.mark.parametrize("kind", ["shared", "judged", "labels"])
@pytest.mark.slow
def test_a_snapshot_stays_as_it_was(kind):
    search = model(kind)
    before = search.scores(*PAIR)
    kept = search.snapshot()
    ids = [search.items_[view].ids for view in PAIR]
    table = [(ids[0][k], ids[1][k + 1], 1.0) for k in range(50, 80)]
    search.add_links(ls.Links.from_pairs(table, between=PAIR))
    assert_array_equal(kept.scores(*PAIR), before)
    assert str(kept.links_) != str(search.links_)
    if kind == "judged":
        assert not np.array_equal(search.scores(*PAIR), before)
    assert kept._maps is search._maps


def test_snapshots_are_searched_while_links_come():
    search = model("judged")
    shown, wrong = [search.snapshot()], []
    stop = threading.Event()

    def read():
        while not stop.is_set():
            own = shown[0]
            one, two = own.scores(*PAIR), own.scores(*PAIR)
            if not np.array_equal(one, two):
                wrong.append(1)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    for k in range(50, 60):
        link = ls.Links.from_pairs([(f"text{k}", f"image{k}")], between=PAIR)
        search.add_links(link)
        shown[0] = search.snapshot()
    stop.set()
    for reader in readers:
        reader.join()
    assert not wrong


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "every"])
@pytest.mark.slow
def test_a_rebuilt_search_is_the_fit_of_all_links(kind):
    search = model(kind)
    before = search.scores(*PAIR)
    assert_allclose(search.rebuild().scores(*PAIR), before, **CLOSE)
    ids = [search.items_[view].ids for view in PAIR]
    more = ls.Links.from_pairs([(ids[0][70], ids[1][70])], between=PAIR)
    links = search.links_ + more.resolve(search.items_)
    views = search._tables
    named = {view: own.ids for view, own in search.items_.items() if own.has_ids}
    anew = ls.CrossViewSearch(**search.get_params()).fit(views, links, ids=named)
    search.add_links(more).rebuild()
    assert_allclose(search.scores(*PAIR), anew.scores(*PAIR), **CLOSE)


@pytest.mark.parametrize("kind", ["shared", "labels"])
def test_what_doors_tell_of_a_search(kind):
    search = model(kind)
    assert PAIR in search.pairs_
    assert search.facts_["text"]["items"] == search.items_["text"].n_items
    assert search.notes_ == []


CHANGING = [kind for kind in KINDS if kind != "given"]


def new_rows(search, view, n=3):
    """Return rows that no item has."""
    X = search._tables[view]
    return X[:n] * 0.5 + X[n : 2 * n] * 0.6


def new_ids(search, view, n=3):
    return [f"new{k}" for k in range(n)] if search.items_[view].has_ids else None


@pytest.mark.parametrize("kind", CHANGING)
@pytest.mark.parametrize("view", PAIR)
@pytest.mark.slow
def test_added_items_score_as_new_queries_and_leave_others_alone(kind, view):
    search = model(kind)
    other = PAIR[view == "text"]
    n = search.items_[view].n_items
    before = {pair: search.scores(*pair) for pair in (PAIR, PAIR[::-1], (view, view))}
    rows = new_rows(search, view)
    asked = search.scores(view, other, rows=rows)
    search.add_items(view, rows, ids=new_ids(search, view))
    found = search.scores(view, other)
    assert_allclose(found[n:], asked, **CLOSE)
    assert_allclose(found[:n], before[view, other], **CLOSE)
    assert_allclose(
        search.scores(other, view)[:, :n], before[other, view], rtol=1e-5, atol=1e-6
    )
    assert_allclose(
        search.scores(view, view)[:n, :n], before[view, view], rtol=1e-5, atol=1e-6
    )
    # Without hub correction both directions agree.
    (pair,) = [own for own in search.pairs_ if own in (PAIR, PAIR[::-1])]
    bias = search._factors[pair].bias
    back = search.scores(other, view) - bias[pair.index(view)]
    there = found - bias[1 - pair.index(view)]
    assert_allclose(back.T, there, atol=1e-5)


@pytest.mark.parametrize("view", PAIR)
def test_the_hub_correction_of_added_items_is_that_of_a_fit(view):
    """A copy of an item is corrected as the item is."""
    search = model("shared")
    X = search._tables[view][:4]
    search.add_items(view, X.copy(), ids=list("abcd"))
    other = PAIR[view == "text"]
    found = search.scores(other, view)
    assert_allclose(found[:, 120:], found[:, :4], atol=1e-5)


@pytest.mark.parametrize("kind", ["shared", "judged", "every"])
@pytest.mark.parametrize("view", PAIR)
def test_items_that_are_added_and_removed_leave_no_trace(kind, view):
    search = model(kind)
    before = [search.scores(*pair) for pair in (PAIR, PAIR[::-1], (view, view))]
    names = new_ids(search, view)
    search.add_items(view, new_rows(search, view), ids=names)
    other = PAIR[view == "text"]
    own = search.items_[other].ids
    link = ls.Links.from_pairs([("new1", own[3], 1.0)], between=(view, other))
    search.add_links(link)
    assert search.links_.judged(view, other).shape[0] == 123
    search.remove_items(view, names)
    after = [search.scores(*pair) for pair in (PAIR, PAIR[::-1], (view, view))]
    for one, two in zip(before, after, strict=True):
        assert_allclose(two, one, **CLOSE)


def test_links_of_removed_items_go():
    search = model("judged")
    n_before = search.links_.judged(*PAIR).nnz
    search.remove_items("text", ["text3", "text100"])
    assert search.links_.judged(*PAIR).nnz == n_before - 2
    kept = [k for k in range(120) if k not in (3, 100)]
    fresh = model("judged")
    gone = [("text3", "image3", 1.0), ("text3", "image43", -1.0)]
    fresh.remove_links(ls.Links.from_pairs(gone, between=PAIR))
    assert_allclose(
        search.scores(*PAIR), fresh.scores(*PAIR)[kept], rtol=1e-5, atol=1e-6
    )
    ids, _ = search.search("image3", source="image", target="text", n_results=118)
    assert "text3" not in ids and "text4" in ids


def with_ids(kind):
    """Return a search of labels whose items have ids."""
    views, known = class_views()
    ids = {view: [f"{view}{k}" for k in range(len(X))] for view, X in views.items()}
    links = ls.Links.from_labels(known)
    if kind == "both":
        more = [(f"text{k}", f"image{k}") for k in range(60, 80)]
        links = links + ls.Links.from_pairs(more, between=PAIR)
    return ls.CrossViewSearch(prior=None).fit(views, links, ids=ids), known


def test_labels_of_removed_items_go():
    search, known = with_ids("labels")
    search.remove_items("text", [f"text{k}" for k in range(10, 20)])
    assert search.links_.memberships("text").sum() == 30
    probabilities = search.scores(*PAIR)
    same = known["text"][:10, None] == known["image"][:40]
    block = probabilities[:10, :40]
    assert block[same].mean() > block[~same].mean() + 0.2
    assert_allclose(search._factors[PAIR].classes[0].sum(axis=1), 1, atol=1e-5)


def test_removing_all_labels_needs_something_else_to_search_by():
    search, _ = with_ids("labels")
    labelled = [f"text{k}" for k in range(40)]
    before = search.scores(*PAIR)
    with pytest.raises(LinkError, match="links must leave"):
        search.remove_items("text", labelled)
    assert_array_equal(search.scores(*PAIR), before)
    search, _ = with_ids("both")
    search.remove_items("text", labelled)
    kinds = {term.kind for term in search.choices_[PAIR].terms}
    assert "labels" not in kinds
    assert search.scores(*PAIR).shape == (80, 90)


@pytest.mark.parametrize("kind", CHANGING)
def test_updated_items_score_as_new_ones(kind):
    search = model(kind)
    before = search.scores(*PAIR)
    rows = new_rows(search, "text", 2)
    ids = search.items_["text"].ids[[100, 101]]
    asked = search.scores(*PAIR, rows=rows)
    search.update_items("text", rows, ids=ids)
    found = search.scores(*PAIR)
    assert_allclose(found[100:102], asked, **CLOSE)
    others = np.delete(np.arange(len(before)), [100, 101])
    assert_allclose(found[others], before[others], **CLOSE)


def test_judged_items_that_are_updated_teach_by_their_new_rows():
    search = model("judged")
    rows = new_rows(search, "text", 2)
    search.update_items("text", rows, ids=["text1", "text0"])
    pair = search._factors[PAIR]
    from linkspread.learning import fit_factors
    from linkspread.links.evidence import read_evidence

    fresh = fit_factors(
        pair.sides, read_evidence(search.links_, *PAIR), search.choices_[PAIR],
        before=pair,
    )  # fmt: skip
    everyone = fresh.fitted(0, slice(None))
    assert_allclose(
        search.scores(*PAIR), fresh.scores(0, everyone), rtol=1e-5, atol=1e-6
    )
    assert_array_equal(search._tables["text"][[1, 0]], rows)


def test_a_changed_search_is_saved_and_rebuilt(tmp_path):
    search = model("judged")
    search.add_items("text", new_rows(search, "text"), ids=["a", "b", "c"])
    search.update_items("image", new_rows(search, "image", 1), ids=["image9"])
    search.remove_items("image", ["image7"])
    search.save(tmp_path / "model")
    again = ls.load(tmp_path / "model")
    assert_allclose(again.scores(*PAIR), search.scores(*PAIR), **CLOSE)
    rows = new_rows(search, "text")
    assert_allclose(again.scores(*PAIR, rows=rows), search.scores(*PAIR, rows=rows),
                    **CLOSE)  # fmt: skip
    rebuilt = again.rebuild()
    assert rebuilt.scores(*PAIR).shape == (123, 119)
    assert rebuilt.items_["text"].ids[-1] == "c"


def test_a_loaded_search_takes_up_items(tmp_path):
    search = model("every")
    search.save(tmp_path / "model")
    again = ls.load(tmp_path / "model")
    rows = new_rows(search, "text")
    for own in (search, again):
        own.add_items("text", rows, ids=["a", "b", "c"])
        own.update_items("image", new_rows(search, "image", 1), ids=["image9"])
        own.remove_items("text", ["text4"])
    for way in (PAIR, PAIR[::-1], ("text", "text")):
        assert_allclose(again.scores(*way), search.scores(*way), atol=1e-6)


def test_a_snapshot_keeps_items_that_are_removed():
    search = model("shared")
    kept = search.snapshot()
    before = kept.scores(*PAIR)
    search.remove_items("text", ["text0"])
    assert_array_equal(kept.scores(*PAIR), before)


@pytest.mark.parametrize(
    ("kind", "change", "error", "message"),
    [
        ("shared", lambda m, X: m.add_items("sound", X), LinkspreadError, "`view`"),
        ("shared", lambda m, X: m.add_items("text", X), ViewError, "`ids` of new"),
        (
            "shared",
            lambda m, X: m.add_items("text", X[:, :3], ids=["a", "b"]),
            ViewError,
            "'text' must have 8 columns",
        ),
        (
            "shared",
            lambda m, X: m.update_items("text", X, ids=["text1", "text1"]),
            ViewError,
            "each row of view 'text' once",
        ),
        ("matched", lambda m, X: m.remove_items("text", [0]), ViewError, "with ids"),
        (
            "shared",
            lambda m, X: m.remove_items("text", m.items_["text"].ids),
            ViewError,
            "two items of view 'text' must stay",
        ),
        ("given", lambda m, X: m.add_items("text", X), ViewError, "`prior` is no"),
    ],
)
def test_mistakes_have_a_sentence_and_change_nothing(kind, change, error, message):
    search = model(kind)
    before = search.scores(*PAIR)
    with pytest.raises(error, match=message):
        change(search, make_pair()["text"][:2] + 1)
    assert_array_equal(search.scores(*PAIR), before)


VIEWS = ("text", "image")
N = 200


def make_views(shared=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 8))
    Y = X + 0.5 * rng.normal(size=X.shape)
    return {"text": X, "image": Y if shared else Y @ rng.normal(size=(8, 6))}


def links_of(table):
    return ls.Links.from_pairs(table, between=VIEWS)


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
        monkeypatch.setattr(learning_terms, "MAX_EXACT", 120)
    table, shared, choice = CASES[case]
    model = ls.CrossViewSearch().fit(make_views(shared), links_of(table()))
    evidence = read_evidence(model.links_, *VIEWS)
    model.choices_[VIEWS] = choice
    model._factors[VIEWS] = fit_factors(model._factors[VIEWS].sides, evidence, choice)
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
@pytest.mark.slow
def test_judgements_give_what_a_fit_gives(case, monkeypatch):
    model = fitted(case, monkeypatch)
    start = all_scores(model._factors[VIEWS])
    monkeypatch.setattr(learning_factors, "fit_term", refuse)
    monkeypatch.setattr(cross_view_search, "fit_pair", refuse)
    given = list(CASES[case][0]())
    judge_at_random(model, given, np.random.default_rng(2), 300)
    live = model._factors[VIEWS]
    evidence = read_evidence(model.links_, *VIEWS)
    assert live.n_pairs == evidence.n_pairs
    monkeypatch.undo()
    # Landmarks, scales and hub corrections of the targets stay.
    fresh = fit_factors(live.sides, evidence, model.choices_[VIEWS], before=live)
    scores, wanted = all_scores(live), all_scores(fresh)
    assert not np.allclose(scores, start)
    assert_allclose(scores, wanted, atol=1e-6 * np.ptp(wanted))
    few = live.scores(0, live.fitted(0, slice(0, 3)))
    assert_allclose(few, wanted[0, :3], atol=1e-6 * np.ptp(wanted))


@pytest.mark.parametrize("case", CASES)
def test_a_judgement_touches_nothing_of_the_size_of_a_view(case, monkeypatch):
    model = fitted(case, monkeypatch)
    before, maps, priors = model._factors[VIEWS], dict(model._maps), dict(model._priors)
    tables, items = dict(model._tables), dict(model.items_)
    monkeypatch.setattr(learning_factors, "fit_term", refuse)
    model.add_links(links_of([(150, 150, 1.0)]))
    after = model._factors[VIEWS]
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
    before = kept.scores(*VIEWS)
    model.add_links(links_of([(150, 150, 1.0)]))
    assert_array_equal(kept.scores(*VIEWS), before)
    now = model.scores(*VIEWS)
    kept.add_links(links_of([(151, 151, 1.0)])).add_links(links_of([(150, 150, 1.0)]))
    assert_array_equal(model.scores(*VIEWS), now)
    model.add_links(links_of([(151, 151, 1.0)]))
    scores = model.scores(*VIEWS)
    assert_allclose(kept.scores(*VIEWS), scores, atol=1e-6 * np.ptp(scores))


def test_more_pairs_than_are_compared_get_landmarks(monkeypatch, tmp_path):
    monkeypatch.setattr("linkspread.learning.pairs.MAX_EXACT", 182)
    monkeypatch.setattr(learning_terms, "MAX_EXACT", 182)
    model = fitted("judged", monkeypatch)
    for k in range(150, 155):
        model.add_links(links_of([(k, k, 1.0)]))
    ((term, _),) = model._factors[VIEWS].terms
    assert isinstance(term, PairsTerm)
    assert len(term.landmarks[0].left) == 182
    model.save(tmp_path / "model")
    again = ls.load(tmp_path / "model")
    scores = model.scores(*VIEWS)
    assert_allclose(again.scores(*VIEWS), scores, atol=1e-6 * np.ptp(scores))
    why = again.explain(150, 150, source="text", target="image")
    assert_allclose(why.score, scores[150, 150], atol=1e-5 * np.ptp(scores))
    assert len(why.contributions) >= 185


@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
def test_links_are_taken_back_and_given_again(case, monkeypatch):
    """Other terms stand in where hardly a link is left, and go again."""
    model = fitted(case, monkeypatch)
    before = model.scores(*VIEWS)
    links = links_of(CASES[case][0]()[2:])
    model.remove_links(links).add_links(links)
    assert_allclose(model.scores(*VIEWS), before, atol=1e-6 * np.ptp(before))
    for link in CASES[case][0]()[2:5]:
        model.remove_links(links_of([link])).add_links(links_of([link]))
    assert_allclose(model.scores(*VIEWS), before, atol=1e-6 * np.ptp(before))


def test_conflicts_are_told_when_they_arise(monkeypatch):
    model = fitted("judged", monkeypatch)
    with pytest.warns(ConflictWarning):
        model.add_links(links_of([(3, 3, -2.0)]))
    model.add_links(links_of([(150, 150, 1.0)]))

"""CrossViewSearch that changes: snapshots, rebuilds, items added and removed."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import linkspread as ls
from linkspread.ground.errors import LinkError, LinkspreadError, ViewError
from search_models import KINDS, PAIR, class_views, make_pair, model

CLOSE = {"rtol": 1e-5, "atol": 1e-6}


@pytest.mark.parametrize("kind", ["shared", "judged", "labels"])
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
    from linkspread.learning import fit_factors, read_evidence

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

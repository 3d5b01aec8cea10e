"""Another table for a view: judgements stay, maps of other views too."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import linkspread as ls
from linkspread.ground.errors import ViewError
from search_models import PAIR, judged_links, make_strangers, model


def make_search():
    views = make_strangers()
    named = {view: [f"{view}{k}" for k in range(120)] for view in PAIR}
    links = ls.Links.from_pairs(
        [(f"text{k}", f"image{k}", 1.0) for k in range(60)], between=PAIR
    )
    return views, named, links, ls.CrossViewSearch().fit(views, links, ids=named)


def test_a_replaced_view_is_searched_like_a_new_fit():
    views, named, links, search = make_search()
    other = views["image"] @ np.random.default_rng(5).normal(size=(6, 9))
    kept = search._maps["text"]
    report = search.replace_view("image", other)
    assert search._maps["text"] is kept
    fresh = ls.CrossViewSearch().fit({**views, "image": other}, links, ids=named)
    whole = fresh.scores(*PAIR)
    assert_allclose(search.scores(*PAIR), whole, atol=1e-5 * np.abs(whole).max())
    assert search.choices_[PAIR] == fresh.choices_[PAIR]
    before, after = report.quality[PAIR]
    assert after == fresh.choices_[PAIR].quality["model"] and before > 0
    assert report.n_items == (120, 120) and report.links_gone == 0
    assert "held-out partners of text and image" in str(report)


def test_items_come_and_go_by_their_ids():
    views, named, links, search = make_search()
    # Items 10 to 119 in another order, and five new ones among them.
    rng = np.random.default_rng(0)
    order = rng.permutation(np.arange(10, 125))
    rows = np.vstack([views["image"], rng.normal(size=(5, 6))])[order]
    ids = [f"image{k}" for k in order]
    report = search.replace_view("image", rows, ids=ids)
    assert sorted(report.items_gone) == sorted(f"image{k}" for k in range(10))
    assert sorted(report.items_new) == [f"image{k}" for k in range(120, 125)]
    assert report.links_gone == 10
    items = search.items_["image"]
    assert sorted(items.ids.tolist()) == sorted(ids)
    table = search._tables["image"]
    for k in (10, 59, 121):
        at = items.positions([f"image{k}"])[0]
        assert_allclose(table[at], rows[ids.index(f"image{k}")])
    judged = search.links_.judged(*PAIR).tocoo()
    own = search.items_["text"].ids
    pairs = zip(judged.row, judged.col, strict=True)
    names = [(own[i][4:], items.ids[j][5:]) for i, j in pairs]
    assert len(names) == 50 and all(i == j for i, j in names)
    links = [(f"text{k}", f"image{k}", 1.0) for k in (70, 71)]
    search.add_links(ls.Links.from_pairs(links, between=PAIR))
    assert search.links_.judged(*PAIR).nnz == 52


def test_columns_are_reported_and_labels_stay():
    pandas = pytest.importorskip("pandas")
    views = make_strangers()
    frame = pandas.DataFrame(views["image"], columns=list("abcdef"))
    labels = {view: np.arange(120) % 3 for view in PAIR}
    search = ls.CrossViewSearch().fit(
        {**views, "image": frame}, ls.Links.from_labels(labels)
    )
    report = search.replace_view("image", frame.rename(columns={"f": "g"}))
    assert (report.columns_gone, report.columns_new) == (["f"], ["g"])
    assert search.links_.has_labels


def test_a_replaced_view_may_join_or_leave_a_shared_space():
    search = model("shared")
    table = search._tables["image"]
    with pytest.raises(ls.errors.LinkError, match="without a shared space"):
        search.replace_view("image", table[:, :5])
    assert search.scores(*PAIR).shape == (120, 120)
    search.add_links(
        ls.Links.from_pairs(
            [(f"text{k}", f"image{k}", 1.0) for k in range(30)], between=PAIR
        )
    )
    search.replace_view("image", table[:, :5])
    assert search._factors[PAIR].sides.prior is None


def test_wrong_tables_are_refused():
    views, _, _, search = make_search()
    before = search.scores(*PAIR)
    for table, words in (
        (views["image"][:50], {}),
        (views["image"], {"ids": [f"other{k}" for k in range(120)]}),
        (views["image"], {"ids": np.arange(120)}),
    ):
        with pytest.raises(ViewError, match="view 'image'"):
            search.replace_view("image", table, **words)
    with pytest.raises(ls.errors.LinkspreadError, match="`view`"):
        search.replace_view("sound", views["image"])
    with pytest.raises(ViewError, match="`prior`"):
        model("given").replace_view("image", views["image"])
    assert np.array_equal(search.scores(*PAIR), before)


def test_without_ids_rows_are_known_by_position():
    search = ls.CrossViewSearch().fit(make_strangers(), judged_links())
    table = search._tables["image"]
    report = search.replace_view("image", np.vstack([table, table[:3] + 0.5]))
    assert report.items_new == [120, 121, 122]
    assert search.scores(*PAIR).shape == (120, 123)
    assert search.replace_view("image", table).items_gone == [120, 121, 122]

"""What to judge next: what a fitted model suggests, and what it never does."""

import tracemalloc

import numpy as np
import pytest

from linkspread import Links, LinkSpreading
from linkspread.datasets import make_neighbor_graph
from linkspread.ground.errors import ConflictWarning, LinkError, LinkspreadError
from small_views import KINDS, PARAMETERS, M, N, fitted, make_links, make_views

BETWEEN = {"source": "text", "target": "image"}


def judged_pairs(links, views):
    """Return all pairs that single links or two labels judge, by a plain loop."""
    found = set()
    for between, table in links.pair_tables:
        pairs = zip(table.left.tolist(), table.right.tolist(), strict=True)
        found |= {pair if between == views else pair[::-1] for pair in pairs}
    labels = [links.memberships(view) for view in views]
    if labels[0] is not None:
        left, right = (
            np.flatnonzero(np.asarray(y.sum(axis=1)).ravel()) for y in labels
        )
        found |= {(i, j) for i in left.tolist() for j in right.tolist()}
    return found


def suggested(model, n, **words):
    """Return suggestions as a list of pairs."""
    i, j = model.suggest_pairs(n, **(BETWEEN | words))
    return list(zip(i.tolist(), j.tolist(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_suggestions_are_distinct_and_never_judged(kind):
    model = fitted(kind)
    judged = judged_pairs(model.links_, ("text", "image"))
    pairs = suggested(model, 60)
    n_open = N * M - len(judged)
    assert len(pairs) == len(set(pairs)) == min(60, n_open)
    assert not set(pairs) & judged
    # All that are left, and not one more.
    everything = suggested(model, 10 * N * M)
    assert len(everything) == len(set(everything)) == n_open
    assert not set(everything) & judged


def test_a_pair_judged_in_contradiction_is_judged():
    pairs = [(0, 0, 1.0), (0, 0, -1.0), (1, 1, 1.0), (2, 3, -1.0)]
    with pytest.warns(ConflictWarning):
        links = Links.from_pairs(pairs, between=("text", "image"))
    model = LinkSpreading(**PARAMETERS).fit(make_views(), links)
    everything = suggested(model, N * M)
    assert len(everything) == N * M - 3
    assert (0, 0) not in everything


def test_links_given_the_other_way_round_are_judged_too():
    links = Links.from_pairs([(5, 7, 1.0), (2, 9, -1.0)], between=("image", "text"))
    model = LinkSpreading(**PARAMETERS).fit(make_views(), links)
    everything = suggested(model, N * M)
    assert len(everything) == N * M - 2
    assert not {(7, 5), (9, 2)} & set(everything)


def test_the_two_directions_are_asked_for_alike():
    there = suggested(fitted("few pairs"), N * M)
    back = suggested(fitted("few pairs"), N * M, source="image", target="text")
    assert {(j, i) for i, j in back} == set(there)


def test_only_items_asked_for_are_in_a_pair():
    mask = np.zeros(M, dtype=bool)
    mask[10:] = True
    pairs = suggested(fitted("many pairs"), 40, queries=[3, 9, 3, 12], exclude=mask)
    assert {i for i, _ in pairs} <= {3, 9, 12}
    assert {j for _, j in pairs} <= set(range(10))
    judged = judged_pairs(fitted("many pairs").links_, ("text", "image"))
    is_open = [(i, j) not in judged for i in (3, 9, 12) for j in range(10)]
    assert len(pairs) == len(set(pairs)) == sum(is_open)


def test_nothing_left_is_an_empty_answer():
    model = fitted("few pairs")
    for words in ({"queries": []}, {"exclude": slice(None)}):
        i, j = model.suggest_pairs(5, **BETWEEN, **words)
        assert i.shape == j.shape == (0,)
    labels = {"text": np.arange(N) % 3, "image": np.arange(M) % 3}
    known = LinkSpreading(**PARAMETERS).fit(make_views(), labels)
    assert suggested(known, 5) == []


@pytest.mark.parametrize("kind", ["labels", "pairs"])
def test_within_a_view_no_pair_comes_twice_nor_an_item_with_itself(kind, rng):
    labels = np.where(np.arange(N) < 10, np.arange(N) % 3, -1)
    links = Links.from_labels({"text": labels})
    n_judged = 10 * 9 // 2
    if kind == "pairs":
        links = Links.from_pairs([(0, 1), (2, 0, -1.0)], between=("text", "text"))
        n_judged = 2
    model = LinkSpreading(**PARAMETERS).fit({"text": make_views()["text"]}, links)
    pairs = suggested(model, N * N, source="text", target="text")
    assert all(i != j for i, j in pairs)
    assert len({frozenset(pair) for pair in pairs}) == len(pairs)
    assert len(pairs) == N * (N - 1) // 2 - n_judged


def test_a_seed_gives_the_same_pairs_and_leaves_the_model_alone():
    model = LinkSpreading(**PARAMETERS).fit(make_views(), make_links("few pairs"))
    before = set(vars(model))
    first, again = (suggested(model, 20, random_state=3) for _ in range(2))
    assert first == again
    assert set(vars(model)) == before


def test_ids_are_those_of_the_items():
    views = make_views()
    ids = {"text": [f"t{i}" for i in range(N)], "image": np.arange(M) + 100}
    links = Links.from_pairs([("t3", 104, 1.0)], between=("text", "image"))
    model = LinkSpreading(**PARAMETERS).fit(views, links, ids=ids)
    texts, images = model.suggest_pairs(N * M, **BETWEEN, queries=["t3", "t7"])
    assert set(texts) == {"t3", "t7"} and set(images) == set(range(100, 130))
    pairs = set(zip(texts.tolist(), images.tolist(), strict=True))
    assert len(pairs) == 2 * M - 1 and ("t3", 104) not in pairs


def test_suggestions_can_be_answered_and_added():
    model = LinkSpreading(**PARAMETERS).fit(make_views(), make_links("few pairs"))
    texts, images = model.suggest_pairs(10, **BETWEEN)
    answers = list(zip(texts, images, np.ones(10), strict=True))
    links = Links.from_pairs(answers, between=("text", "image"))
    again = LinkSpreading(**PARAMETERS).fit(
        make_views(), make_links("few pairs") + links
    )
    assert not set(suggested(again, 30)) & set(
        zip(texts.tolist(), images.tolist(), strict=True)
    )


def test_a_fit_and_its_suggestions_never_make_all_pairs():
    n = 20_000
    graphs = {
        view: make_neighbor_graph(np.arange(n) % 10, random_state=seed)
        for seed, view in enumerate(("text", "image"))
    }
    pairs = [(i, i + 1, 1.0 if i % 2 else -1.0) for i in range(20)]
    model = LinkSpreading(graph="precomputed", rank=8, tol=1e-2).fit(
        graphs, Links.from_pairs(pairs, between=("text", "image"))
    )
    tracemalloc.start()
    texts, _ = model.suggest_pairs(100, **BETWEEN)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(texts) == 100
    # A byte for each pair would be 400 MB.
    assert peak < 150e6


@pytest.mark.parametrize(
    ("words", "error", "sentence"),
    [
        ({"n": 0}, LinkspreadError, "`n` must be a positive integer, got 0. Ask for"),
        ({"n": 2.5}, LinkspreadError, "`n` must be a positive integer, got 2.5. Ask"),
        ({"random_state": -1}, LinkspreadError,
         "`random_state` must be an integer from 0, got -1. The default is 0"),
        ({"source": "sound"}, LinkspreadError,
         "must be views of the fit, .'text', 'image'., got 'sound'. Correct the"),
        ({"target": "text"}, LinkError, "none join items within 'text'. Add links"),
        ({"queries": [99]}, LinkError,
         "`queries` must name items of view 'text', which has none called 99"),
        ({"queries": 3}, LinkspreadError,
         "`queries` must be a flat list of items of view 'text'.* Write .item."),
        ({"exclude": [[1, 2]]}, LinkspreadError,
         "`exclude` must be a flat list of items of view 'image'.* got int64 of shape"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_in_one_sentence(words, error, sentence):
    words = BETWEEN | {"n": 5} | words
    with pytest.raises(error, match=sentence):
        fitted("few pairs").suggest_pairs(words.pop("n"), **words)

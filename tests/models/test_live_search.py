"""Explanations and suggestions of LinkSpreading."""

import tracemalloc
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

import linkspread as ls
from linkspread import Links, LinkSpreading
from linkspread.graphs import knn_graph, normalize
from linkspread.ground.errors import (
    ConflictWarning,
    LinkError,
    LinkspreadError,
    UnknownItemError,
)
from linkspread.links import as_dense
from neighbor_graphs import make_neighbor_graph
from reference import exact_scores, fixed_point
from small_views import KINDS, PARAMETERS, SIZES, M, N, fitted, make_links, make_views

ASK = {"source": "text", "target": "image"}


def pairs_within():
    """Return judged pairs of texts."""
    rng = np.random.default_rng(2)
    i, j = np.triu_indices(SIZES["text"], k=1)
    chosen = rng.choice(len(i), 60, replace=False)
    weights = rng.choice([-1.0, 1.0, 0.5], 60)
    pairs = list(zip(i[chosen], j[chosen], weights, strict=True))
    return Links.from_pairs(pairs, between=("text", "text"))


@cache
def fitted_once(kind):
    """Return a model that tests may ask but not change."""
    links = pairs_within() if kind == "within" else make_links(kind)
    return LinkSpreading(**PARAMETERS).fit(make_views(), links)


def some_pairs(source, target, n_pairs=100):
    """Return random pairs of positions."""
    rng = np.random.default_rng(0)
    return [
        (int(rng.integers(SIZES[source])), int(rng.integers(SIZES[target])))
        for _ in range(n_pairs)
    ]


@pytest.mark.parametrize("kind", [*KINDS, "within"])
@pytest.mark.slow
def test_every_split_adds_up_to_the_score(kind):
    model, ends = fitted_once(kind), ("image", "text")
    directions = [("text", "image"), ("image", "text"), ("text", "text")]
    for source, target in directions:
        if not model.links_.connects(source, target):
            continue
        scores = exact_scores(model, source, target)
        is_main = (source, target) == ("text", ends[kind == "within"])
        for i, j in some_pairs(source, target, 100 if is_main else 10):
            why = model.explain(i, j, source=source, target=target)
            score = scores[i, j]
            sums = [why.score, why.source_neighbors.total, why.target_neighbors.total]
            assert_allclose(sums, score, atol=1e-9)
            assert_allclose(why.search_score, score, atol=1e-6)


@pytest.mark.parametrize("kind", ["labels", "soft labels", "mixture"])
def test_labels_are_split_three_times_into_the_same_sum(kind):
    for i, j in some_pairs("text", "image", 20):
        why = fitted_once(kind).explain(i, j, **ASK)
        labels = [part.amount for part in why.contributions if part.kind == "label"]
        assert_allclose(why.target_labels.total, sum(labels), atol=1e-12)
        assert_allclose(why.classes.total, sum(labels), atol=1e-12)


@pytest.mark.parametrize("kind", ["many pairs", "matched", "mixture"])
def test_every_judged_pair_is_named_once_with_its_weight(kind):
    model = fitted_once(kind)
    why = model.explain(3, 4, **ASK)
    named = {
        (part.source_item, part.target_item): part.weight
        for part in why.contributions
        if part.kind.endswith("-link")
    }
    Z = make_links(kind).resolve(SIZES).between("text", "image")
    pairs = getattr(Z, "pairs", Z)
    i, j = pairs.tocoo().coords
    places = zip(i.tolist(), j.tolist(), strict=True)
    assert named == dict(zip(places, pairs.data.tolist(), strict=True))
    assert all(
        (part.kind == "must-link") == (part.weight > 0)
        for part in why.contributions
        if part.kind.endswith("-link")
    )


def test_a_pair_contributes_what_is_lost_without_it():
    """Spread scores are linear in the links: drop one, spread the others anew."""
    views, links = make_views(), make_links("many pairs")
    model = LinkSpreading(**PARAMETERS, balance="literal").fit(views, links)
    S = {v: normalize(knn_graph(X, n_neighbors=4)) for v, X in views.items()}
    Z = as_dense(links.resolve(SIZES).between("text", "image", balance="literal"))
    for part in model.explain(7, 9, **ASK, n_links=10).contributions:
        only = np.zeros_like(Z)
        place = part.source_item, part.target_item
        only[place] = Z[place]
        F = fixed_point(S["text"], only, S["image"], (0.3, 0.3), 0.9)
        assert part.amount == pytest.approx(F[7, 9], abs=1e-10)


def test_a_labelled_item_contributes_what_its_row_of_links_gives():
    views, links = make_views(), make_links("soft labels")
    model = LinkSpreading(**PARAMETERS).fit(views, links)
    S = {v: normalize(knn_graph(X, n_neighbors=4)) for v, X in views.items()}
    Z = as_dense(links.resolve(SIZES).between("text", "image"))
    why = model.explain(7, 9, **ASK)
    for part in why.contributions[:5]:
        only = np.zeros_like(Z)
        only[part.source_item] = Z[part.source_item]
        F = fixed_point(S["text"], only, S["image"], (0.3, 0.3), 0.9)
        assert part.amount == pytest.approx(F[7, 9], abs=1e-10)
    for part in why.target_labels.parts[:5]:
        only = np.zeros_like(Z)
        only[:, part.target_item] = Z[:, part.target_item]
        F = fixed_point(S["text"], only, S["image"], (0.3, 0.3), 0.9)
        assert part.amount == pytest.approx(F[7, 9], abs=1e-10)


def test_pairs_of_classes_contribute_what_links_between_them_give():
    views, links = make_views(), make_links("labels")
    model = LinkSpreading(**PARAMETERS).fit(views, links)
    S = {v: normalize(knn_graph(X, n_neighbors=4)) for v, X in views.items()}
    Z = links.resolve(SIZES).between("text", "image")
    for part in model.explain(7, 9, **ASK).classes.parts:
        core = np.zeros_like(Z.core)
        core[part.classes] = Z.core[part.classes]
        only = Z.left.toarray() @ core @ Z.right.toarray().T
        F = fixed_point(S["text"], only, S["image"], (0.3, 0.3), 0.9)
        assert part.amount == pytest.approx(F[7, 9], abs=1e-10)
        assert part.weight == Z.core[part.classes]


def test_a_neighbor_brings_what_a_new_item_with_that_neighbor_alone_would_have():
    """A new item is the sum of its neighbours, so its score with one is a share."""
    model = fitted_once("many pairs")
    S = normalize(model.graphs_["text"].affinity_).tocsr()
    why = model.explain(7, 9, **ASK)
    spread = model._spread("text", "image")
    near = {p.source_item: p for p in why.source_neighbors.parts if p.kind != "own"}
    assert set(near) == set(S[[7]].indices.tolist())
    for item, part in near.items():
        alone = np.zeros((1, SIZES["text"]))
        alone[0, item] = S[7, item]
        expected = spread.unseen_rows(alone)[..., 9]
        assert part.amount == pytest.approx(expected[0], abs=1e-7)
        assert part.weight == pytest.approx(S[7, item])


@pytest.mark.parametrize("kind", ["labels", "few pairs", "matched", "mixture"])
def test_new_items_are_explained(kind):
    model = fitted_once(kind)
    row = make_views(seed=5)["text"][0]
    for rows in (row, row[None]):
        why = model.explain(rows, 3, **ASK)
        score = model.scores("text", "image", rows=row[None], cols=[3])[0, 0]
        sums = [why.score, why.source_neighbors.total, why.target_neighbors.total]
        assert_allclose(sums, score, atol=1e-6)
        assert why.source_item is None
        assert str(why).startswith("the new text item and image 3 score")


def test_new_items_are_explained_the_other_way_round():
    model = fitted_once("mixture")
    row = make_views(seed=5)["image"][:1]
    why = model.explain(row, 3, source="image", target="text")
    score = model.scores("image", "text", rows=row, cols=[3])[0, 0]
    sums = [why.score, why.source_neighbors.total, why.target_neighbors.total]
    assert_allclose(sums, score, atol=1e-6)


def test_rest_is_what_n_links_left_out():
    model = fitted_once("many pairs")
    whole, short = (model.explain(7, 9, **ASK, n_links=n) for n in (None, 4))
    assert whole.rest == 0 and whole.links.n_rest == 0
    assert short.contributions == whole.contributions[:4]
    assert short.links.n_rest == len(whole.contributions) - 4
    assert short.rest == pytest.approx(sum(p.amount for p in whole.contributions[4:]))
    assert short.score == pytest.approx(whole.score)


def test_pairs_within_a_view_are_named_once():
    model = fitted_once("within")
    why = model.explain(3, 8, source="text", target="text")
    ends = [(part.source_item, part.target_item) for part in why.contributions]
    assert all(a < b for a, b in ends)
    assert len(ends) == len(set(ends)) > 20


def test_ids_are_those_of_the_views():
    views, ids = make_views(), {"text": [f"t{k}" for k in range(40)]}
    model = LinkSpreading(**PARAMETERS).fit(views, make_links("matched"), ids=ids)
    why = model.explain("t7", 9, **ASK)
    assert (why.source_item, why.target_item) == ("t7", 9)
    assert all(part.source_item.startswith("t") for part in why.contributions)


def test_a_loaded_model_explains_alike(tmp_path):
    model = fitted_once("mixture")
    model.save(tmp_path / "model")
    again = ls.load(tmp_path / "model")
    for source, target in (("text", "image"), ("image", "text")):
        why, same = (m.explain(7, 9, source=source, target=target)
                     for m in (model, again))  # fmt: skip
        assert_allclose(same.score, why.score, atol=1e-9)
        amounts = [[p.amount for p in own.contributions[:20]] for own in (why, same)]
        assert_allclose(*amounts, atol=1e-9)


def test_truncated_scores_are_told_apart_from_whole_ones():
    views, links = make_views(), make_links("many pairs")
    model = LinkSpreading(**PARAMETERS, rank=2).fit(views, links)
    why = model.explain(7, 9, **ASK)
    assert why.search_score == pytest.approx(model.scores(*ASK.values())[7, 9])
    exact = exact_scores(model, *ASK.values())[7, 9]
    assert why.score == pytest.approx(exact)
    assert abs(why.search_score - exact) > 1e-4


def test_what_cannot_be_explained_is_told():
    model = fitted_once("many pairs")
    with pytest.raises(UnknownItemError, match="`source_item` must name items of view"):
        model.explain(99, 0, **ASK)
    with pytest.raises(UnknownItemError, match="`target_item` must name items of view"):
        model.explain(0, 99, **ASK)
    with pytest.raises(LinkError, match="must be joined by links .* within 'text'"):
        model.explain(0, 1, source="text", target="text")
    with pytest.raises(LinkspreadError, match="views of the fit, .* got 'sound'"):
        model.explain(0, 1, source="sound", target="text")
    with pytest.raises(LinkspreadError, match="`n_links` must be a positive integer"):
        model.explain(0, 1, **ASK, n_links=0)
    for several in ([1, 2], np.zeros((2, 3)), True):
        with pytest.raises(
            LinkspreadError, match="`source_item` must be the id of one"
        ):
            model.explain(several, 1, **ASK)
    for wrong in ([1], 0.5, np.zeros(4)):
        with pytest.raises(
            LinkspreadError, match="`target_item` must be the id of one"
        ):
            model.explain(0, wrong, **ASK)


def test_new_items_without_smoothing_are_told():
    model = LinkSpreading(n_neighbors=4, alpha=0.0).fit(
        make_views(), make_links("labels")
    )
    with pytest.raises(LinkspreadError, match="learn from their neighbours"):
        model.explain(make_views()["text"][0], 3, **ASK)
    why = model.explain(3, 4, **ASK)
    assert {part.kind for part in why.source_neighbors.parts} <= {"own"}


def test_links_that_were_taken_up_later_are_explained():
    model = LinkSpreading(**PARAMETERS).fit(make_views(), make_links("few pairs"))
    more = [(7, 9, 1.0), (8, 9, -1.0)]
    model.add_links(Links.from_pairs(more, between=("text", "image")))
    why = model.explain(7, 9, **ASK)
    assert (7, 9) in {(p.source_item, p.target_item) for p in why.contributions}
    assert why.score == pytest.approx(model.scores(*ASK.values())[7, 9], abs=1e-8)


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
    assert set(vars(model)) - {"_made"} == before


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


@pytest.mark.slow
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
        ({"n": 0}, LinkspreadError, "`n` must be a positive integer, got 0"),
        ({"n": 2.5}, LinkspreadError, "`n` must be a positive integer, got 2.5"),
        ({"random_state": -1}, LinkspreadError,
         "`random_state` must be an integer from 0, got -1. The default is 0"),
        ({"source": "sound"}, LinkspreadError,
         "must be views of the fit, .'text', 'image'., got 'sound'. Correct the"),
        ({"target": "text"}, LinkError, "none join items within 'text'. Add links"),
        ({"queries": [99]}, LinkError,
         "`queries` must name items of view 'text', which does not have 99"),
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

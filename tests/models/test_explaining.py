"""Explanations of fitted models: parts that sum to the score."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

import linkspread as ls
from linkspread import Links, LinkSpreading
from linkspread.graphs import knn_graph, normalize
from linkspread.ground.errors import LinkError, LinkspreadError, UnknownItemError
from linkspread.links import as_dense
from reference import exact_scores, fixed_point
from small_views import KINDS, PARAMETERS, SIZES, make_links, make_views

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
def fitted(kind):
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
def test_every_split_adds_up_to_the_score(kind):
    model, ends = fitted(kind), ("image", "text")
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
        why = fitted(kind).explain(i, j, **ASK)
        labels = [part.amount for part in why.contributions if part.kind == "label"]
        assert_allclose(why.target_labels.total, sum(labels), atol=1e-12)
        assert_allclose(why.classes.total, sum(labels), atol=1e-12)


@pytest.mark.parametrize("kind", ["many pairs", "matched", "mixture"])
def test_every_judged_pair_is_named_once_with_its_weight(kind):
    model = fitted(kind)
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
    model = fitted("many pairs")
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
    model = fitted(kind)
    row = make_views(seed=5)["text"][0]
    for rows in (row, row[None]):
        why = model.explain(rows, 3, **ASK)
        score = model.scores("text", "image", rows=row[None], cols=[3])[0, 0]
        sums = [why.score, why.source_neighbors.total, why.target_neighbors.total]
        assert_allclose(sums, score, atol=1e-6)
        assert why.source_item is None
        assert str(why).startswith("the new text item and image 3 score")


def test_new_items_are_explained_the_other_way_round():
    model = fitted("mixture")
    row = make_views(seed=5)["image"][:1]
    why = model.explain(row, 3, source="image", target="text")
    score = model.scores("image", "text", rows=row, cols=[3])[0, 0]
    sums = [why.score, why.source_neighbors.total, why.target_neighbors.total]
    assert_allclose(sums, score, atol=1e-6)


def test_rest_is_what_n_links_left_out():
    model = fitted("many pairs")
    whole, short = (model.explain(7, 9, **ASK, n_links=n) for n in (None, 4))
    assert whole.rest == 0 and whole.links.n_rest == 0
    assert short.contributions == whole.contributions[:4]
    assert short.links.n_rest == len(whole.contributions) - 4
    assert short.rest == pytest.approx(sum(p.amount for p in whole.contributions[4:]))
    assert short.score == pytest.approx(whole.score)


def test_pairs_within_a_view_are_named_once():
    model = fitted("within")
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
    model = fitted("mixture")
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
    model = fitted("many pairs")
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

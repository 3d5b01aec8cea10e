"""Explanations and suggestions of CrossViewSearch."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

import linkspread as ls
from linkspread.ground.errors import LinkError, LinkspreadError
from linkspread.judging import explanation_picture
from linkspread.learning import Choice, Setting, fit_factors, make_map
from linkspread.links.evidence import read_evidence
from linkspread.models.search_pairs import leading_features
from search_models import KINDS, PAIR, class_views, make_strangers, model

WAYS = [PAIR, PAIR[::-1], ("text", "text")]


def explained(search, source, target, i, j, **options):
    ids = search.items_[source].ids[i], search.items_[target].ids[j]
    return search.explain(*ids, source=source, target=target, **options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.slow
def test_parts_add_up_to_the_score(kind, way):
    search = model(kind)
    scores = search.scores(*way)
    unit = np.abs(scores).max()
    for i, j in ((0, 0), (3, 70), (80, 80), (44, 5)):
        why = explained(search, *way, i, j)
        total = sum(part.amount for part in why.contributions) + why.rest
        assert total == why.score
        assert_allclose(why.score, scores[i, j], atol=1e-6 * unit)
        assert_allclose(why.search_score, scores[i, j], atol=1e-6 * unit)
        assert why.source_neighbors is why.target_neighbors is None
        assert str(why)
        assert explanation_picture(why).startswith("<svg")


@pytest.mark.parametrize("way", [PAIR, ("text", "text")])
def test_what_a_pair_adds_is_a_kernel_times_its_coefficient(way):
    search = model("every")
    choice = Choice((Setting("pairs", ridge=3.0, weight=2.0),), 0.0, 0, {})
    before, evidence = search._factors[way], read_evidence(search.links_, *way)
    factors = fit_factors(before.sides, evidence, choice)
    search._factors = {**search._factors, way: factors}
    (term, weight), maps = factors.terms[0], factors.sides.maps
    expected = {}
    # Few pairs are all rows of the term.
    for i, j, c in zip(*evidence.targets()[:2], term.coefficients, strict=True):
        near = 0.0
        for left, right, share in term.rows.columns:
            x = maps[0].values[5, left] @ maps[0].values[i, left]
            near += share * x * (maps[1].values[5, right] @ maps[1].values[j, right])
        # Within a view both orders of a pair are one.
        key = (i, j) if way == PAIR else tuple(sorted((i, j)))
        amount = weight * c * float(near)
        expected[key] = expected.get(key, 0.0) + amount
    why = explained(search, *way, 5, 5)
    assert len(why.contributions) == len(expected)
    for part in why.contributions:
        ends = zip(way, (part.source_item, part.target_item), strict=True)
        key = tuple(int(search.items_[v].positions([own])[0]) for v, own in ends)
        assert part.amount == pytest.approx(expected[key], rel=1e-3, abs=1e-6)
        verdict = search.links_.judged(*way)[key]
        assert part.kind == ("must-link" if verdict > 0 else "cannot-link")


def test_a_prior_without_links_is_the_cosine_less_hubs():
    search = model("shared")
    X, Y = search._tables["text"], search._tables["image"]
    cosine = X[4] @ Y[9] / np.linalg.norm(X[4]) / np.linalg.norm(Y[9])
    why = explained(search, *PAIR, 4, 9)
    amounts = {part.kind: part.amount for part in why.contributions}
    assert set(amounts) == {"prior", "hubs"}
    assert amounts["prior"] == pytest.approx(cosine, abs=1e-6)
    assert amounts["hubs"] < 0


def test_labels_are_split_by_classes():
    search = model("every")
    why = explained(search, *PAIR, 3, 70)
    classes = [part for part in why.contributions if part.kind == "class"]
    assert len(classes) == 4
    assert all(part.classes[0] == part.classes[1] for part in classes)
    weight = next(t.weight for t in search.choices_[PAIR].terms if t.kind == "labels")
    p, q = (
        own[k] for own, k in zip(search._factors[PAIR].classes, (3, 70), strict=True)
    )
    for part in classes:
        c = part.classes[0]
        assert part.amount == pytest.approx(weight * p[c] * q[c], rel=1e-5)
    (chance,) = [part for part in why.contributions if part.kind == "chance"]
    assert chance.amount < 0


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "given"])
def test_new_items_are_explained(kind):
    search = model(kind)
    row = search._tables["text"][[7]] * 1.1
    target = search.items_["image"].ids[20]
    why = search.explain(row, target, source="text", target="image", n_links=2)
    score = search.scores(*PAIR, rows=row)[0, 20]
    unit = np.abs(search.scores(*PAIR)).max()
    assert why.source_item is None
    assert len(why.contributions) <= 2
    assert_allclose(why.score, score, atol=1e-6 * unit)
    assert "the new text item" in str(why)


def test_a_changed_search_explains_itself():
    search = model("judged")
    search.add_items("text", search._tables["text"][:2] * 1.2, ids=["a", "b"])
    search.add_links(ls.Links.from_pairs([("a", "image9", 1.0)], between=PAIR))
    search.remove_items("text", ["text0", "text60"])
    scores = search.scores(*PAIR)
    unit = np.abs(scores).max()
    why = search.explain("a", "image9", source="text", target="image")
    assert_allclose(why.score, scores[118, 9], atol=1e-6 * unit)
    names = {(part.source_item, part.target_item) for part in why.contributions}
    assert ("a", "image9") in names
    assert not any(source == "text0" for source, _ in names)


def test_searches_through_other_views_are_refused():
    views = make_strangers()
    third = views["image"][:, :3] @ np.random.default_rng(4).normal(size=(3, 3))
    links = ls.Links.from_matched(PAIR, 40)
    links += ls.Links.from_matched(("image", "sound"), 40)
    search = ls.CrossViewSearch().fit({**views, "sound": third}, links)
    assert search.scores("text", "sound").shape == (120, 120)
    with pytest.raises(LinkError, match="Explain each of its steps"):
        search.explain(0, 0, source="text", target="sound")
    with pytest.raises(LinkspreadError, match="`source_item` must be the id of one"):
        search.explain([0, 1], 0, source="text", target="image")


BETWEEN = {"source": "text", "target": "image"}


def suggested(search, n, **words):
    i, j = search.suggest_pairs(n, **(BETWEEN | words))
    return list(zip(i.tolist(), j.tolist(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_suggestions_are_distinct_and_never_judged(kind):
    search = model(kind)
    pairs = suggested(search, 60)
    judged = search.links_.judged(*PAIR)
    assert len(pairs) == len(set(pairs)) == 60
    for i, j in pairs:
        k = search.items_["text"].positions([i])[0]
        assert judged[k, search.items_["image"].positions([j])[0]] == 0
    assert suggested(search, 60) == pairs


def test_within_a_view_no_pair_comes_twice():
    search = model("within")
    pairs = suggested(search, 200, source="text", target="text")
    assert len({frozenset(pair) for pair in pairs}) == 200


def test_suggested_items_are_of_all_classes():
    views, _ = class_views()
    data = ls.datasets.make_views(
        {"text": 120, "image": 90}, n_classes=4, random_state=0
    )
    search = ls.CrossViewSearch().fit(views)
    pairs = suggested(search, 16)
    for side, view in enumerate(PAIR):
        items = {pair[side] for pair in pairs}
        assert len({data.labels[view][k] for k in items}) == 4


def test_gains_fall_where_something_is_known():
    search = model("judged")
    pairs = np.array(suggested(search, 10))
    gains = search.expected_gains(pairs[:, 0], pairs[:, 1], **BETWEEN)
    assert np.all((gains > 0) & (gains < 1))
    answers = [(i, j, 1.0) for i, j in pairs]
    search.add_links(ls.Links.from_pairs(answers, between=PAIR))
    after = search.expected_gains(pairs[:, 0], pairs[:, 1], **BETWEEN)
    assert np.all(after < gains)


def test_views_that_nothing_joins_are_refused():
    views, known = class_views()
    third = np.random.default_rng(0).normal(size=(20, 3))
    search = ls.CrossViewSearch(prior=None)
    search.fit({**views, "sound": third}, ls.Links.from_labels(known))
    with pytest.raises(LinkError, match="share a space or have links"):
        search.suggest_pairs(3, source="text", target="sound")


@pytest.mark.parametrize("blocks", [("gaussian",), ("linear", "gaussian", "graph")])
def test_leading_features_are_those_of_the_kernel(blocks):
    X = np.random.default_rng(0).normal(size=(50, 3))
    own = make_map(X, blocks=blocks)
    features = leading_features(own)
    name, columns = blocks[-1], own.columns(blocks[-1])
    whole = own.values[:, columns] * own.blocks[name].size + own.blocks[name].mean
    assert_allclose(features @ features.T, whole @ whole.T, atol=1e-4)
    if name == "gaussian":
        D = ((X[:, None] - X) ** 2).sum(axis=2)
        assert_allclose(features @ features.T, np.exp(-D / D.mean()), atol=1e-4)


@pytest.mark.slow
def test_nothing_of_all_pairs_of_items_is_made():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 4))
    search = ls.CrossViewSearch().fit({"text": X, "image": X + 0.1})
    tracemalloc.start()
    search.suggest_pairs(20, **BETWEEN)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6000 * 6000 * 4 / 2

"""Held-out quality: against plain refits, scikit-learn's measures, and pure noise."""

from itertools import permutations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import average_precision_score, roc_auc_score

from linkspread import Links, LinkSpreading
from linkspread.datasets import make_views
from linkspread.ground.errors import FewLinksError, LinkError, LinkspreadError
from linkspread.selection import held_out, held_out_quality, plan_held_out
from linkspread.selection.held_out import _chance_precision, measure_pairs
from linkspread.studies.baselines import BilinearRidge

SIZES = {"text": 90, "image": 70}
BETWEEN = "text", "image"
MODEL = LinkSpreading(n_neighbors=8, alpha=0.5)


@pytest.fixture(scope="module")
def data():
    return make_views(SIZES, n_classes=3, random_state=0)


def isolated(data, rng, n_pairs=40):
    """Return pairs that share hardly an item."""
    i, j = (rng.permutation(SIZES[v])[:n_pairs] for v in BETWEEN)
    return i, j


def queries(data, rng, n_pairs=40):
    """Return pairs of a few texts with images of their own."""
    return np.arange(n_pairs) % 6, rng.permutation(SIZES["image"])[:n_pairs]


def crossed(data, rng, n_pairs=40):
    """Return all pairs of a few texts and images."""
    return tuple(own.ravel() for own in np.indices((7, 6)))


def star(data, rng, n_pairs=40):
    """Return pairs of one text."""
    return np.full(n_pairs, 5), rng.permutation(SIZES["image"])[:n_pairs]


def judged(data, draw, seed=0):
    """Return links by what the classes say of pairs."""
    i, j = draw(data, np.random.default_rng(seed))
    same = data.labels["text"][i] == data.labels["image"][j]
    pairs = np.column_stack([i, j, np.where(same, 1.0, -1.0)])
    return Links.from_pairs(pairs, between=BETWEEN)


def parts_of(data, links):
    """Return the parts that are held out of these links."""
    links = links.resolve(SIZES).select({})
    plan = plan_held_out(links)
    make = held_out._label_parts if plan.kind == "labels" else held_out._pair_parts
    return list(make(data.views(), links, plan, held_out.N_FOLDS))


def by_hand(data, links, model=MODEL):
    """Return AUC and average precision by plain fits without each part."""
    scores, must = [], []
    for part in parts_of(data, links):
        fitted = clone(model).fit(data.views(), part.trial.links)
        own = part.test
        scores += fitted.scores(own.source, own.target)[own.rows, own.cols].tolist()
        must += (own.weights > 0).tolist()
    return roc_auc_score(must, scores), average_precision_score(must, scores)


LINKS = {
    "isolated": lambda data: judged(data, isolated),
    "queries": lambda data: judged(data, queries),
    "crossed": lambda data: judged(data, crossed),
    "star": lambda data: judged(data, star),
    "partners": lambda data: Links.from_matched(BETWEEN, 40),
    "labels": lambda data: Links.from_labels(
        {v: np.where(np.arange(len(y)) < 40, y, -1) for v, y in data.labels.items()}
    ),
}


@pytest.mark.parametrize("kind", LINKS)
def test_the_figure_is_that_of_plain_fits_without_the_items(data, kind):
    links = LINKS[kind](data)
    quality = held_out_quality(MODEL, data.views(), links)
    expected = by_hand(data, links)
    assert (quality.auc, quality.average_precision) == pytest.approx(expected, abs=1e-3)
    # A fitted model has its graphs already, and gives the same.
    fitted = clone(MODEL).fit(data.views(), links)
    again = held_out_quality(fitted, data.views())
    assert again.auc == pytest.approx(quality.auc, abs=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        LinkSpreading(n_neighbors=8, rank=6),
        LinkSpreading(n_neighbors=8, graph={"text": "cwa", "image": "knn"}),
    ],
    ids=["rank", "cwa"],
)
def test_other_settings_are_measured_as_they_are_fitted(data, model, monkeypatch):
    monkeypatch.setattr(held_out, "N_FOLDS", held_out.N_REFITS)
    # Within a view too, so that constrained graphs depend on what is hidden.
    y = np.where(np.arange(90) < 30, data.labels["text"], -1)
    links = judged(data, isolated) + Links.from_labels({"text": y})
    found = held_out_quality(model, data.views(), links)
    assert found.kind == "pairs" and found.n_folds == held_out.N_REFITS
    expected = by_hand(data, links, model)
    assert (found.auc, found.average_precision) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("kind", LINKS)
def test_no_fit_knows_anything_of_the_items_it_is_asked_about(data, kind):
    links = LINKS[kind](data).resolve(SIZES)
    parts, asked = parts_of(data, links), []
    for part in parts:
        own, shown = part.test, part.trial.links
        touched = shown.judged("text", "image").astype(bool)
        if "text" in part.hidden:
            assert touched[own.rows].nnz == 0
        assert touched[:, own.cols].nnz == 0
        if kind == "labels":
            for view, items in zip(BETWEEN, (own.rows, own.cols), strict=True):
                assert shown.memberships(view)[items].sum() == 0
        must = own.weights > 0 if kind == "partners" else own.weights != 0
        asked += zip(own.rows[must], own.cols[must], strict=True)
    assert ("text" in parts[0].hidden) == (kind != "star")
    if kind != "labels":
        pairs = links.judged(*BETWEEN).tocoo()
        assert sorted(asked) == sorted(zip(pairs.row, pairs.col, strict=True))
    # Pairs that share no item are lost with no other.
    assert len(parts) == (
        5 if kind in ("isolated", "partners", "labels") else len(parts)
    )


def test_verdicts_of_chance_are_found_by_chance(data):
    found = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        i, j = isolated(data, rng)
        weights = np.where(rng.random(40) < 0.4, 1.0, -1.0)
        links = Links.from_pairs(np.column_stack([i, j, weights]), between=BETWEEN)
        found.append(held_out_quality(MODEL, data.views(), links))
    assert abs(np.mean([own.auc for own in found]) - 0.5) < 0.12
    covered = [own.auc_interval[0] <= 0.5 <= own.auc_interval[1] for own in found]
    assert sum(covered) >= 6
    n_pairs = found[0].n_must + found[0].n_cannot
    assert found[0].chance_precision >= found[0].n_must / n_pairs


@pytest.mark.parametrize("n_pairs", [12, 60])
def test_partners_of_chance_are_found_by_chance(data, n_pairs):
    rng = np.random.default_rng(0)
    i, j = isolated(data, rng, n_pairs)
    links = Links.from_pairs(np.column_stack([i, j]), between=BETWEEN)
    quality = held_out_quality(MODEL, data.views(), links)
    assert quality.kind == "partners" and quality.n_judged == n_pairs
    assert quality.auc_interval[0] <= 0.5 <= quality.auc_interval[1]


def test_ids_views_in_any_order_and_baselines_are_measured_alike(data):
    i, j = isolated(data, np.random.default_rng(0))
    same = data.labels["text"][i] == data.labels["image"][j]
    words = np.where(same, "must", "cannot")
    ids = {v: [f"{v}{k}" for k in range(n)] for v, n in SIZES.items()}
    named = [(f"image{b}", f"text{a}", w) for a, b, w in zip(i, j, words, strict=True)]
    links = Links.from_pairs(named, between=("image", "text"))
    plain = held_out_quality(MODEL, data.views(), judged(data, isolated))
    found = held_out_quality(MODEL, data.views(), links, ids=ids)
    fitted = clone(MODEL).fit(data.views(), links, ids=ids)
    again = held_out_quality(fitted, data.views())
    assert found.auc == pytest.approx(again.auc)
    assert abs(found.auc - plain.auc) < 0.2  # other folds
    rival = held_out_quality(BilinearRidge(), data.views(), links, ids=ids)
    assert rival.n_folds == held_out.N_REFITS and 0 <= rival.auc <= 1


def test_links_within_a_view_are_measured_where_there_are_no_others(data, rng):
    X, y = data.views()["text"], data.labels["text"]
    i, j = rng.permutation(90)[:80].reshape(2, 40)
    weights = np.where(y[i] == y[j], 1.0, -1.0)
    links = Links.from_pairs(np.column_stack([i, j, weights]), between=("X", "X"))
    quality = held_out_quality(MODEL, {"X": X}, links)
    assert quality.between == ("X", "X") and quality.n_judged == 40
    assert quality.auc > 0.5
    by_labels = held_out_quality(MODEL, X, np.where(np.arange(90) < 40, y, -1))
    assert by_labels.kind == "labels" and by_labels.n_judged == 40
    assert str(by_labels).startswith("Held-out items of X: AUC ")


def test_the_views_with_the_most_judgements_are_measured(data):
    links = judged(data, isolated) + Links.from_matched(("text", "sound"), 12)
    plan = plan_held_out(links.resolve({**SIZES, "sound": 20}))
    assert (plan.between, plan.kind, plan.n_judged) == (BETWEEN, "pairs", 40)
    assert str(plan) == "40 judged pairs of text and image"


def test_many_judgements_are_held_out_in_few_parts(data, rng):
    i, j = np.divmod(rng.permutation(90 * 70)[:4000], 70)
    weights = np.where(data.labels["text"][i] == data.labels["image"][j], 1.0, -1.0)
    links = Links.from_pairs(np.column_stack([i, j, weights]), between=BETWEEN)
    parts = parts_of(data, links)
    assert held_out.ENOUGH <= sum(part.n_tested for part in parts) < 2 * held_out.ENOUGH
    assert len(parts) <= 3
    labels = {v: rng.integers(0, 3, 4000) for v in BETWEEN}
    wide = {v: np.zeros((4000, 1)) for v in BETWEEN}
    known = Links.from_labels(labels).resolve(dict.fromkeys(BETWEEN, 4000))
    (part,) = held_out._label_parts(wide, known, plan_held_out(known), 5)
    assert len(part.test.rows) == held_out.MAX_ITEMS**2


@pytest.mark.parametrize(
    ("links", "message"),
    [
        (Links.from_matched(BETWEEN, 9), "at least 10 judgements .* got 9 must-links"),
        (
            Links.from_pairs([(k, k, -1.0) for k in range(12)], between=BETWEEN),
            "a must-link among them, got none",
        ),
        (
            Links.from_labels({v: np.arange(n) for v, n in SIZES.items()}),
            "no class has more than 1",
        ),
    ],
)
def test_too_few_judgements_are_said(data, links, message):
    with pytest.raises(FewLinksError, match=message):
        held_out_quality(MODEL, data.views(), links)


def test_fits_that_take_too_long_are_not_made(data, monkeypatch):
    links = judged(data, isolated)
    for parameters in ({}, {"rank": 5}):
        model = clone(MODEL).set_params(**parameters).fit(data.views(), links)
        with pytest.raises(LinkspreadError, match="3 fits|5 fits") as refused:
            held_out_quality(model, data.views(), max_seconds=1e-9)
        assert "linkspread evaluate MODEL --links" in str(refused.value)


@pytest.mark.parametrize("decimals", [1, 8])
@pytest.mark.slow
def test_measures_are_those_of_scikit_learn(rng, decimals):
    scores = np.round(rng.standard_normal(60), decimals)  # many of them equal
    must = rng.random(60) < 0.4
    rows, cols = rng.integers(0, 20, 60), rng.integers(0, 9, 60)
    quality = measure_pairs(
        scores, must, rows, cols, between=BETWEEN, kind="pairs", n_judged=60
    )
    assert quality.auc == pytest.approx(roc_auc_score(must, scores))
    expected = average_precision_score(must, scores)
    assert quality.average_precision == pytest.approx(expected)
    # The interval is that of drawing columns, which are fewer, by hand.
    draws = [rng.multinomial(9, np.full(9, 1 / 9))[cols] for _ in range(400)]
    drawn = [roc_auc_score(must, scores, sample_weight=w) for w in draws
             if w[must].any() and w[~must].any()]  # fmt: skip
    low, high = np.quantile(drawn, [0.05, 0.95])
    assert quality.auc_interval[0] <= low + 0.05
    assert quality.auc_interval[1] >= high - 0.05
    again = measure_pairs(
        scores, must, rows, cols, between=BETWEEN, kind="pairs", n_judged=60
    )
    assert again == quality  # the same draws


def test_chance_is_the_mean_of_all_orders():
    must = np.array([True, True, False, False, False])
    orders = [
        average_precision_score(must, np.array(order))
        for order in permutations(range(5))
    ]
    assert _chance_precision(2, 3) == pytest.approx(np.mean(orders))
    assert _chance_precision(4000, 6000) == pytest.approx(0.4, abs=1e-3)


def test_a_few_pairs_without_an_error_prove_little():
    must = np.arange(12) < 6
    quality = measure_pairs(
        must.astype(float), must, np.arange(12), np.arange(12), between=BETWEEN,
        kind="pairs", n_judged=12,
    )  # fmt: skip
    assert quality.auc == 1 and 0.5 < quality.auc_interval[0] < 0.8
    with pytest.raises(LinkError, match="got 12 must and 0 cannot"):
        measure_pairs(
            np.ones(12), np.ones(12, bool), np.arange(12), np.arange(12),
            between=BETWEEN, kind="pairs", n_judged=12,
        )  # fmt: skip

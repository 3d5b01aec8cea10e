"""The study of partners: what is known, what is asked, and what it may depend on."""

from dataclasses import replace

import numpy as np
import pytest

from linkspread.datasets.collection import Partners
from linkspread.ground.errors import LinkspreadError
from linkspread.studies.methods import partner_methods
from linkspread.studies.partners import (
    PARTNERS,
    _KnownPairs,
    load_partners,
    plan_partners,
    run_partners,
)
from linkspread.studies.report.study import Budget, Study

QUICK = ("ridge map", "ridge to identity")
EMPTY = Study("Partners", "", "", "small", {})


def small_partners(*, shared_space=True, n=60, n_lonely=6):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8))
    Y = X + 0.4 * rng.normal(size=X.shape)
    if not shared_space:
        Y = Y @ rng.normal(size=(8, 5))
    Y = np.vstack([Y, rng.normal(size=(n_lonely, Y.shape[1]))])
    ids = {"left": np.arange(n).astype(str), "right": np.arange(len(Y)).astype(str)}
    return Partners(
        views={"left": X, "right": Y},
        ids=ids,
        pairs=np.column_stack([np.arange(n), np.arange(n)]),
        metrics={"left": "euclidean", "right": "euclidean"},
        shared_space=shared_space,
    )


@pytest.fixture
def quick_methods(monkeypatch):
    """Keep two baselines, and one of them as ours."""

    def few(metrics, **options):
        methods = partner_methods(metrics, **options)
        ours = replace(methods[3], name="CrossViewSearch")
        return [ours, *(m for m in methods if m.name in QUICK)]

    monkeypatch.setattr("linkspread.studies.partners.partner_methods", few)


def study_of(collection, **options):
    amounts = {"matched": (0, 10, 20), "judged": (0, 30), "n_repetitions": 2}
    words = {"step": lambda text: None, **amounts}
    return run_partners(EMPTY, collection, **words | options)


def without_seconds(study):
    return [
        replace(cell, runs=tuple(replace(run, seconds={}) for run in cell.runs))
        for cell in study.cells
    ]


def test_no_pair_known_is_the_cosine(quick_methods):
    collection = small_partners()
    study = study_of(collection)
    X, Y = collection.views.values()
    units = [Z / np.linalg.norm(Z, axis=1, keepdims=True) for Z in (X, Y)]
    scores = units[0] @ units[1].T
    there = np.mean(scores.argmax(axis=1) == np.arange(60))
    back = np.mean(scores[:, :60].argmax(axis=0) == np.arange(60))
    cell = study.cell(("matched pairs", 0), "cosine")
    assert cell.mean == pytest.approx((there + back) / 2)
    assert study.had == "cosine"
    assert study.gain(("matched pairs", 10)) is not None


def test_no_shared_space_starts_from_chance(quick_methods):
    study = study_of(small_partners(shared_space=False))
    assert {c.method for c in study.cells if c.amount == 0} == {"chance"}
    assert study.cell(("matched pairs", 0), "chance").mean < 0.1
    assert study.cell(("matched pairs", 20), "ridge map").mean > 0.2


@pytest.mark.parametrize("shared_space", [True, False])
def test_partners_to_be_found_are_in_no_link(shared_space):
    collection = small_partners(shared_space=shared_space)
    known = _KnownPairs(collection, [0, 30, 200])
    sizes = {"left": 60, "right": 66}
    for budget in [("matched pairs", 25), ("judged pairs", 30), ("judged pairs", 200)]:
        now = known.at(Budget(*budget), seed=1)
        judged = now.links.resolve(sizes).judged("left", "right").tocoo()
        assert judged.nnz == budget[1]
        assert not np.intersect1d(judged.row, now.pairs[:, 0]).size
        assert not np.intersect1d(judged.col, now.pairs[:, 1]).size


def test_larger_budgets_hold_the_smaller_ones():
    known = _KnownPairs(small_partners(), [0, 30, 200])
    sizes = {"left": 60, "right": 66}
    for kind, amounts in (("matched pairs", (10, 30)), ("judged pairs", (30, 200))):
        small, large = (
            known.at(Budget(kind, n), seed=0)
            .links.resolve(sizes)
            .judged("left", "right")
            for n in amounts
        )
        assert (small != small.multiply(abs(large))).nnz == 0


def test_a_study_cut_short_goes_on(quick_methods):
    collection, kept = small_partners(), []
    whole = study_of(collection, keep=kept.append)
    for before in kept[::5]:
        assert without_seconds(study_of(collection, before=before)) == without_seconds(
            whole
        )


def test_partners_that_are_asked_for_change_no_choice(quick_methods):
    collection = small_partners()
    known = _KnownPairs(collection, [0, 30]).at(Budget("matched pairs", 10), seed=0)
    i, j = known.pairs.T
    kept = collection.pairs[~np.isin(collection.pairs[:, 0], i)]
    other = replace(
        collection, pairs=np.vstack([kept, np.column_stack([i, np.roll(j, 1)])])
    )
    # The draw depends on the order of the pairs, which must stay.
    order = np.argsort(other.pairs[:, 0])
    other = replace(other, pairs=other.pairs[order])
    one, two = (study_of(c, matched=(10,), judged=(), n_repetitions=1)
                for c in (collection, other))  # fmt: skip
    chosen = [[c.runs[0].parameters for c in study.cells] for study in (one, two)]
    assert chosen[0] == chosen[1]
    assert without_seconds(one) != without_seconds(two)


def test_every_row_is_planned_with_and_without_hubs():
    plan = plan_partners(small_partners(), matched=(0, 10), judged=(30,))
    names = {name for budget, _, rows in plan for name in rows if budget[1] == 30}
    assert {"cosine", "cosine + hubs", "CSA", "CSA + hubs", "ASIF + hubs"} <= names


def test_mistakes_have_a_sentence(quick_methods):
    with pytest.raises(LinkspreadError, match="collection must be one of"):
        load_partners("abt_buy")
    with pytest.raises(LinkspreadError, match="leave some partners"):
        study_of(small_partners(), matched=(60,))
    assert "fonts" in PARTNERS

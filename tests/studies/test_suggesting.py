"""Simulated judging of CrossViewSearch: who answers, and that tests stay unseen."""

import numpy as np
import pytest

from benchmarks_in_small import small_collection
from linkspread.studies.collections import resplit
from linkspread.studies.report.study import Study
from linkspread.studies.suggesting import (
    N_START,
    RANDOM,
    SUGGESTED,
    Judging,
    run_suggesting,
)

EMPTY = Study("Suggesting", "", "", "small", {})
AMOUNTS = {SUGGESTED: (20, 40), RANDOM: (20, 40)}


@pytest.fixture(scope="module")
def judging():
    data, rng = small_collection(), np.random.default_rng(0)
    split = resplit(data.labels, 110, seed=0)
    return Judging(
        dict(data.views),
        split.train,
        split.train,
        rng.choice(split.train, (N_START, 2)),
        labels=data.labels,
        test=split.test,
    )


def test_every_amount_is_measured_for_both(judging, monkeypatch):
    asked, answer = [], Judging.judge
    monkeypatch.setattr(
        Judging, "judge", lambda own, i, j: asked.append((i, j)) or answer(own, i, j)
    )
    study = run_suggesting(EMPTY, [judging], amounts=AMOUNTS, step=lambda text: None)
    assert study.methods == (SUGGESTED, RANDOM) and study.ours == SUGGESTED
    assert [budget.amount for budget in study.budgets] == [20, 40]
    assert all(0.3 < cell.mean <= 1 for cell in study.cells)
    i, j = (np.concatenate(own) for own in zip(*asked, strict=True))
    assert np.isin(i, judging.rows).all() and np.isin(j, judging.columns).all()
    assert len(i) == 2 * 40


def test_partners_are_judged_by_what_is_known_and_tested_on_the_others():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    pairs = np.column_stack([np.arange(60)] * 2)
    own = Judging(
        {"a": X, "b": X + 0.1 * rng.normal(size=X.shape)},
        np.arange(30),
        np.arange(30),
        pairs[:0],
        test=pairs[30:],
        partners=dict(pairs[:30].tolist()),
    )
    links = own.judge(np.array([3, 4]), np.array([3, 5]))
    assert links.pair_tables[0][1].weights.tolist() == [1, -1]
    study = run_suggesting(EMPTY, [own], amounts=AMOUNTS, step=lambda text: None)
    assert study.measure == "recall at 1"
    assert all(cell.mean > 0.5 for cell in study.cells)
    n_must = {c.method: c.runs[0].parameters["must-links"] for c in study.cells}
    assert n_must[SUGGESTED] > n_must[RANDOM]

"""The study of matching: same judgements for all, nothing chosen by the truth."""

import numpy as np
import pytest

from linkspread.datasets.collection import Partners
from linkspread.features.catalogues import describe_together
from linkspread.ground.errors import LinkspreadError
from linkspread.studies import matching
from linkspread.studies.matching import RANDOM, SUGGESTED, MatchingTask, run_matching
from linkspread.studies.pair_classifiers import CLASSIFIERS
from linkspread.studies.report.study import Study

EMPTY = Study("Matching", "", "", "small", {})


def small_catalogues(n=60, n_lonely=10):
    rng = np.random.default_rng(0)
    words = np.array([f"w{i}" for i in range(40)])
    left = [" ".join(rng.choice(words, 6, replace=False)) for _ in range(n)]
    right = []
    for text in left:
        kept = text.split()
        kept[:2] = rng.choice(words, 2, replace=False)
        right.append(" ".join(kept))
    right[:n_lonely] = [
        " ".join(rng.choice(words, 6, replace=False)) for _ in range(n_lonely)
    ]
    texts = {"left": left, "right": right}
    rows = np.arange(n_lonely, n)
    price = [str(10 + i) for i in range(n)]
    return Partners(
        views=describe_together(texts),
        ids={view: np.arange(n).astype(str) for view in texts},
        pairs=np.column_stack([rows, rows]),
        metrics=dict.fromkeys(texts, "cosine"),
        shared_space=True,
        texts=texts,
        columns={view: {"name": own, "price": price} for view, own in texts.items()},
    )


@pytest.fixture
def one_classifier(monkeypatch):
    for name in set(CLASSIFIERS) - {"logistic regression"}:
        monkeypatch.delitem(CLASSIFIERS, name)


def test_every_method_is_measured_with_both_kinds(one_classifier):
    study = run_matching(
        EMPTY,
        small_catalogues(),
        amounts=(0, 30),
        n_repetitions=2,
        step=lambda text: None,
    )
    methods = {cell.method for cell in study.cells}
    assert methods == {"CrossViewSearch", "logistic regression"}
    for kind in (RANDOM, SUGGESTED):
        cell = study.cell((kind, 30), "CrossViewSearch")
        assert len(cell.runs) == 2
        assert cell.mean > 0.7
    assert study.cell((RANDOM, 0), "CrossViewSearch").mean > 0.5


def test_judged_pairs_are_right_and_random_ones_nested():
    task = MatchingTask(small_catalogues())
    many = task.known(RANDOM, 0, (0, 10, 50))
    np.testing.assert_array_equal(task.are_true(many.left, many.right), many.is_must)
    assert many.first(10).left.tolist() == many.left[:10].tolist()
    assert len(many.left) == 50
    suggested = task.known(SUGGESTED, 0, (0, 20))
    assert suggested.is_must.mean() > many.is_must.mean()


@pytest.mark.parametrize("name", [*CLASSIFIERS])
@pytest.mark.slow
def test_classifiers_learn(name):
    task = MatchingTask(small_catalogues())
    known = task.known(RANDOM, 0, (200,))
    quality = task.classified(name, known, 0)
    assert quality["F1"] > 0.6
    few = task.classified(name, known.first(0), 0)
    assert few["F1"] > 0.5  # the cosine


def test_the_threshold_is_that_of_held_out_judgements():
    held = np.array([0.1, 0.5, 0.8, 0.9])
    chosen, y = np.ones(4, dtype=bool), np.array([False, False, True, True])
    assert matching._best_threshold(held, chosen, y) == 0.8
    assert matching._best_threshold(held, chosen, ~y & False) == 0.0


def test_other_collections_are_refused():
    collection = small_catalogues()
    from dataclasses import replace

    with pytest.raises(LinkspreadError, match="abt-buy"):
        MatchingTask(replace(collection, columns=None))

"""Measures of judged pairs: scikit-learn's, with intervals."""

from itertools import permutations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from linkspread.ground.errors import LinkError
from linkspread.selection.evaluation import _chance_precision, measure_pairs

BETWEEN = "text", "image"


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

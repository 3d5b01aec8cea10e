"""How "auto" weighs fits of judged pairs: by items that nobody judged."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from linkspread import Links, LinkSpreading
from linkspread.datasets import make_views
from linkspread.estimators import auto_objective
from linkspread.estimators.auto_objective import _weigh_judged
from linkspread.fitting.centred_kernel import CentredKernel
from linkspread.fitting.pairs import fit_pairs, pair_targets
from linkspread.fitting.view_kernels import FeatureKernel
from linkspread.metrics import mean_average_precision

N, N_CLASSES = 60, 4


def kernel(features):
    return FeatureKernel(features, embed=lambda rows: rows)


def judged(labels, n_pairs, rng):
    """Return random pairs, must where the classes are the same."""
    i, j = np.divmod(rng.choice(N * N, n_pairs, replace=False), N)
    weights = np.where(labels[0][i] == labels[1][j], 1.0, -1.0)
    return sparse.csr_array((weights, (i, j)), shape=(N, N))


@pytest.mark.parametrize("n_pairs", [800, 3200])
def test_a_fit_that_only_remembers_items_does_not_count(n_pairs, rng):
    labels = rng.integers(N_CLASSES, size=(2, N))
    classes = [np.eye(N_CLASSES)[own] for own in labels]
    vague = [own + 0.7 * rng.standard_normal(own.shape) for own in classes]
    kernels = {
        # Knows each item of the first view by name, and the classes of the second.
        "memory": (kernel(np.eye(N)), kernel(classes[1])),
        "features": (kernel(vague[0]), kernel(vague[1])),
    }
    pairs = judged(labels, n_pairs, rng)
    fits, shares, told = _weigh_judged(kernels, pairs, "auto")
    assert told[1] > 100 * told[0]
    # Pairs that are left out alone would tell otherwise.
    targets, weights = pair_targets(pairs, "auto")
    alone = [fit_pairs(own, pairs, targets, weights, ridges=(1.0,)).fit.error
             for own in kernels.values()]  # fmt: skip
    assert alone[0] < alone[1]


def make_model(n_pairs, rng, **parameters):
    data = make_views(N, n_classes=N_CLASSES, random_state=0)
    labels = list(data.labels.values())
    entries = judged(labels, n_pairs, rng).tocoo()
    table = np.column_stack([*entries.coords, entries.data])
    links = Links.from_pairs(table, between=("text", "image"))
    model = LinkSpreading(objective="auto", **parameters).fit(data.views(), links)
    return model, data.views(), entries


@pytest.mark.parametrize("n_pairs", [3, 20, 400])
def test_scores_of_judged_pairs_are_within_1_and_judged_pairs_score_as_judged(
    n_pairs, rng
):
    model, _, entries = make_model(n_pairs, rng)
    scores = model.scores("text", "image")
    assert np.isfinite(scores).all()
    assert np.abs(scores).max() <= 1
    judged = scores[entries.coords]
    assert judged[entries.data > 0].mean() > judged[entries.data < 0].mean()


def test_every_kernel_of_judged_pairs_is_centred(rng):
    model, views, _ = make_model(400, rng)
    changed = model.spreads_["text", "image"].embed_left
    assert changed.change.mass == "root length"
    terms = changed.embed.operator.terms
    assert all(isinstance(own, CentredKernel) for term in terms for own in term[1:])
    # New rows are centred by the same means: what is divided is 0 on average.
    plain = changed.embed(views["text"][:5] + 0.1) @ changed.embed.basis.T
    assert_allclose(plain.mean(axis=1) / np.abs(plain).max(), 0, atol=1e-4)


def test_half_lengths_find_more_than_plain_scores_and_whole_lengths(monkeypatch):
    data = make_views(N, n_classes=N_CLASSES, random_state=0)
    labels = list(data.labels.values())
    kinds = ("root length", "none", "length")
    found = dict.fromkeys(kinds, 0.0)
    for seed in range(4):
        for mass in kinds:
            monkeypatch.setattr(auto_objective, "JUDGED_MASS", mass)
            model, _, _ = make_model(30, np.random.default_rng(seed))
            found[mass] += mean_average_precision(
                model.scores("text", "image"), *labels
            )
    assert max(found, key=found.__getitem__) == "root length", found

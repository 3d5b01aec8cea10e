"""A grid of 10 x 10 x 8 settings on five folds of Wikipedia, against single fits.

The grid is propagated at once on every fold. It is compared with one propagation on
every fold, at the hardest setting of the grid and at an easy one, and with the scoring
of all settings, which cannot be shared.
"""

import time
from functools import partial

import numpy as np

import harness
from linkspread import Links, LinkSpreading
from linkspread.compiled.backends import small_algebra
from linkspread.datasets import load_wikipedia
from linkspread.graphs import knn_graph, normalize
from linkspread.propagation import propagate
from linkspread.selection import tune
from linkspread.selection.folds import item_trials

ALPHAS = [0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.95]
BETAS = [0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99]
GRID = {"alpha": {"text": ALPHAS, "image": ALPHAS}, "beta": BETAS}
N_SETTINGS = len(ALPHAS) ** 2 * len(BETAS)
METRICS = {"text": "hellinger", "image": "chi2"}
SINGLE = {"hardest": (0.95, 0.99), "gentle": (0.1, 0.95)}


def setup():
    """Return the views, the labels of the training documents, and their folds."""
    data = load_wikipedia(harness.data_folder("wikipedia"))
    labels = np.full(len(data.labels), -1)
    labels[data.train] = data.labels[data.train]
    known = dict.fromkeys(data.views, labels)
    trials = item_trials(
        data.views, Links.from_labels(known), protocol="transductive", n_splits=5
    )
    return data.views, known, [trial for (trial,) in trials]


def run_single(graphs, trials, alpha, beta):
    """Propagate once on every fold."""
    for trial in trials:
        Z = trial.links.between("text", "image")
        propagate(graphs["text"], Z, graphs["image"], alpha=alpha, beta=beta)


def score_all(trials):
    """Score as many settings as the grid has on every fold."""
    for trial in trials:
        (test,) = trial.tests
        n_queries, n_items = len(test.rows), len(test.cols)
        rng = np.random.default_rng(0)
        # As wide as the shared functions of the grid for ten classes.
        left, right = (rng.standard_normal((n, 260)) for n in (n_queries, n_items))

        def block(*_, left=left, right=right, **__):
            with small_algebra(len(left) * len(right)):
                return left @ right.T

        for _ in range(N_SETTINGS):
            trial.measure(block)


def main():
    """Return the seconds of the grid and of the comparisons."""
    views, known, trials = setup()
    graphs = {
        view: normalize(knn_graph(X, metric=METRICS[view])) for view, X in views.items()
    }
    single = {
        name: harness.measure(partial(run_single, graphs, trials, alpha, beta),
                              repeats=3)["seconds_median"]
        for name, (alpha, beta) in SINGLE.items()
    }  # fmt: skip
    scoring = harness.measure(partial(score_all, trials[:1]), repeats=1)
    start = time.perf_counter()
    tuning = tune(views, known, GRID, model=LinkSpreading(metric=METRICS))
    seconds = time.perf_counter() - start
    scoring_seconds = len(trials) * scoring["seconds_median"]
    return {
        "settings": N_SETTINGS,
        "folds": len(trials),
        "grid_seconds": seconds,
        "single_seconds": single,
        "scoring_seconds": scoring_seconds,
        "ratios": {n: seconds / (s + scoring_seconds) for n, s in single.items()},
        "best": {
            **tuning.best_parameters["alpha"],
            "beta": tuning.best_parameters["beta"],
        },
        "best_score": tuning.best_score,
    }


def rows(result):
    """Return one line of the table per single setting."""
    return [
        {
            "grid": f"{result['settings']} settings x {result['folds']} folds",
            "seconds": f"{result['grid_seconds']:.1f}",
            "compared with": f"{result['folds']} propagations, {name} setting",
            "their seconds": f"{seconds:.2f}",
            "scoring all settings": f"{result['scoring_seconds']:.1f}",
            "ratio to both": f"{result['ratios'][name]:.2f}",
        }
        for name, seconds in result["single_seconds"].items()
    ]


def headline(result):
    """Return the sentence for the front page."""
    return [
        f"{result['settings']} settings of alpha and beta on {result['folds']} folds "
        f"of Wikipedia: {result['grid_seconds']:.0f} s, "
        f"{result['ratios']['hardest']:.1f} times as long as {result['folds']} single "
        "propagations and the scoring of all settings."
    ]

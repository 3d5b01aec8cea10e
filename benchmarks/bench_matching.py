"""Matching 100,000 items with 100,000: candidates, calibration, assignment."""

import numpy as np

import harness
import linkspread as ls

N_JUDGED = 100


def setup(n_items):
    """Return a model of two noisy copies of vectors, one in five without a partner."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_items, 64)).astype(np.float32)
    Y = X + 0.9 * rng.standard_normal(X.shape).astype(np.float32)
    alone = rng.permutation(n_items)[: n_items // 5]
    Y[alone] = rng.standard_normal((len(alone), 64))
    model = ls.CrossViewSearch().fit({"left": X, "right": Y})
    matches = model.match("left", "right")
    pairs = matches.rated.pairs
    places = rng.choice(len(pairs.left), N_JUDGED, replace=False)
    places[::2] = rng.choice(np.flatnonzero(matches.rated.is_match), N_JUDGED // 2)
    i, j = (own[np.unique(places)] for own in pairs[:2])
    same = (i == j) & ~np.isin(i, alone)
    rows = np.column_stack([i, j, np.where(same, 1.0, -1.0)])
    return model.add_links(ls.Links.from_pairs(rows, between=("left", "right")))


def main():
    sizes = [2_000] if harness.is_small() else [10_000, 100_000]
    for n_items in sizes:
        model = setup(n_items)
        harness.case(f"match {n_items:,} x {n_items:,}", model.match, "left", "right")


if __name__ == "__main__":
    main()

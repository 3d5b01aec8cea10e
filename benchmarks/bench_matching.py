"""Match 100,000 items with 100,000: seconds, memory and quality.

Two noisy copies of vectors, of which one in five has no partner; 200 candidates are
judged. ``python benchmarks/bench_matching.py --n 10000`` prints one result as JSON.
"""

import argparse
import json

import numpy as np

import harness
import linkspread as ls

WIDTH, NOISE, N_JUDGED = 64, 0.9, 200
VIEWS = ("left", "right")


def alone(size):
    """Return which items have no partner."""
    return np.random.default_rng(1).permutation(size) < size // 5


def setup(size):
    """Return a model that knows judged candidates."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((size, WIDTH), dtype=np.float32)
    Y = X + NOISE * rng.standard_normal(X.shape, dtype=np.float32)
    Y[alone(size)] = rng.standard_normal((alone(size).sum(), WIDTH), dtype=np.float32)
    model = ls.CrossViewSearch().fit(dict(zip(VIEWS, (X, Y), strict=True)))
    # Half are random pairs of row and row, which may be partners, half are searched.
    i = rng.choice(size, N_JUDGED // 2, replace=False)
    found = model.search(i, source="left", target="right", n_results=3)[0][:, 1]
    pairs = np.unique(np.concatenate([np.c_[i, i], np.c_[i, found]]), axis=0)
    same = (pairs[:, 0] == pairs[:, 1]) & ~alone(size)[pairs[:, 0]]
    rows = np.column_stack([pairs, np.where(same, 1.0, -1.0)])
    return model.add_links(ls.Links.from_pairs(rows, between=VIEWS))


def match(model):
    """Return the matches of all items."""
    return model.match(*VIEWS)


def main(n=100_000, repeats=1):
    """Return the seconds, the memory and the quality of a match."""
    model = setup(n)
    found = match(model)
    right = (found.source_ids == found.target_ids) & ~alone(n)[found.source_ids]
    return {
        "n_items": n,
        "extra_bytes": harness.extra_memory(lambda: match(model)),
        "precision": float(right.mean()),
        "expected_precision": found.precision,
        "recall": float(right.sum() / (~alone(n)).sum()),
        **harness.measure(lambda: match(model), repeats=repeats, warmup=0),
    }


def rows(result):
    """Return the line of the table."""
    size = f"{result['n_items']:,}"
    return [
        {
            "size": f"{size} x {size}, {WIDTH} numbers each",
            "seconds": f"{result['seconds_median']:.0f}",
            "memory": f"{result['extra_bytes'] / 1e6:.0f} MB",
            "precision": f"{result['precision']:.3f}",
            "expected precision": f"{result['expected_precision']:.3f}",
            "recall": f"{result['recall']:.3f}",
        }
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=100_000, help="items of each view")
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    print(json.dumps(main(options.n, options.repeats), indent=2))

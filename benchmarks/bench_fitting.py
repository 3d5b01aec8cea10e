"""Fitted links against spread ones at 100,000 + 100,000 items.

Nearest-neighbour graphs of `make_views`: 20 neighbours, 32 classes, 1 % of the labels
known, or single judged pairs. Seconds are those of spreading or fitting alone; both
have the same graphs. ``python benchmarks/bench_fitting.py --size 20000`` prints JSON.
"""

import argparse
import json

import numpy as np
from linkspread.fitting.fitted_pair import add_pair_fits
from linkspread.fitting.labels import fit_labels
from linkspread.fitting.pairs import fit_pairs, pair_targets
from linkspread.fitting.view_kernels import GraphKernel

import harness
from bench_renumbering import setup as setup_labels
from linkspread.datasets import make_views
from linkspread.links import Links
from linkspread.propagation import spread_links

SIZE = 100_000
N_PAIRS = 100_000
SMALL = 2_000
ALPHA, BETA, RIDGE, RANK = 0.9, 0.8, 0.3, 64


def setup(size):
    """Return graphs, label links, memberships and judged pairs."""
    S_x, S_y, Z = setup_labels(size)
    labels = make_views(size, n_classes=32, random_state=0).labels
    rng = np.random.default_rng(1)
    n_pairs = min(N_PAIRS, size)
    i, j = rng.integers(size, size=(2, n_pairs))
    same = labels["text"][i] == labels["image"][j]
    table = np.column_stack([i, j, np.where(same, 1.0, -1.0)])
    pairs = Links.from_pairs(table, between=("text", "image"))
    pairs = pairs.resolve({"text": size, "image": size})
    return S_x, S_y, Z, pairs.between("text", "image", balance="literal")


def spread_labels(inputs):
    S_x, S_y, Z, _ = inputs
    return spread_links(S_x, Z, S_y, alpha=ALPHA, beta=BETA)


def fit_label_links(inputs):
    S_x, S_y, Z, _ = inputs
    return [
        fit_labels(GraphKernel(S, ALPHA, tol=1e-6), known, ridges=(RIDGE,))
        for S, known in ((S_x, Z.left), (S_y, Z.right))
    ]


def spread_pairs(inputs):
    S_x, S_y, _, pairs = inputs
    return spread_links(S_x, pairs, S_y, alpha=ALPHA, beta=BETA, rank=RANK)


def fit_pair_links(inputs):
    S_x, S_y, _, pairs = inputs
    kernels = tuple(GraphKernel(S, ALPHA, tol=1e-5) for S in (S_x, S_y))
    targets, weights = pair_targets(pairs, "auto")
    fit = fit_pairs(kernels, pairs, targets, weights, ridges=(RIDGE,))
    return fit, add_pair_fits([fit], [1.0], rank=RANK, tol=1e-3)


CASES = {
    "labels, spread": spread_labels,
    "labels, fitted": fit_label_links,
    "pairs, spread": spread_pairs,
    "pairs, fitted": fit_pair_links,
}


def main(size=SIZE):
    """Return seconds and memory of each case, and the residuals of the fits."""
    small, inputs = setup(SMALL), setup(size)
    measured, results = {}, {}
    for name, case in CASES.items():
        case(small)  # compiled
        timing = harness.measure(
            lambda name=name, case=case: results.update({name: case(inputs)}),
            repeats=1,
            warmup=0,
        )
        measured[name] = {"seconds": timing["seconds_median"]}
        if "fitted" in name:
            memory = harness.peak_memory(setup, case, size)
            measured[name]["extra_bytes"] = memory["extra"]
    residuals = {
        "labels": max(fit.fit.residual for fit in results["labels, fitted"]),
        "pairs": results["pairs, fitted"][0].fit.residual,
    }
    return {"size": size, "cases": measured, "residuals": residuals}


def rows(result):
    """Return one line of the table per case."""
    return [
        {
            "links": name,
            "seconds": f"{case['seconds']:.1f}",
            "against spreading": f"{_ratio(result, name):.1f}",
            "memory over inputs": _gigabytes(case.get("extra_bytes")),
            "residual": _residual(result, name),
        }
        for name, case in result["cases"].items()
    ]


def headline(result):
    """Return the sentence for the front page."""
    size = result["size"]
    return [
        f"Fitting the labels of 1 % of {size:,} + {size:,} items takes "
        f"{_ratio(result, 'labels, fitted'):.1f} times as long as spreading them; "
        f"fitting {N_PAIRS:,} judged pairs takes "
        f"{_ratio(result, 'pairs, fitted'):.1f} times as long."
    ]


def _ratio(result, name):
    """Return the time of a case against spreading the same links."""
    cases, kind = result["cases"], name.partition(",")[0]
    return cases[name]["seconds"] / cases[f"{kind}, spread"]["seconds"]


def _gigabytes(n_bytes):
    """Return memory as text, where it was measured."""
    return "" if n_bytes is None else f"{n_bytes / 1e9:.2f} GB"


def _residual(result, name):
    """Return the residual of a fit, as text."""
    kind, _, how = name.partition(", ")
    return f"{result['residuals'][kind]:.0e}" if how == "fitted" else ""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=SIZE)
    print(json.dumps(main(parser.parse_args().size), indent=2))

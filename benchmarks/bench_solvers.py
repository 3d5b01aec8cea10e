"""Sparse codes of all Wikipedia items, against linear programming by HiGHS.

``python benchmarks/bench_solvers.py --n 300`` prints the result for some items as JSON.
The problems are those of the L1 graphs: 90 neighbours, Gaussian affinities of width
``sqrt(0.2 mean d^2)``, Hellinger (text) and chi-squared (image) distances d.
"""

import argparse
import json
import time

import numpy as np
from scipy.optimize import linprog

import harness
from linkspread import Links
from linkspread.compiled.lad import solve_many
from linkspread.datasets import load_wikipedia
from linkspread.graphs import nearest_neighbors
from linkspread.graphs.distances import pairwise_distances
from linkspread.graphs.l1 import LinkedNeighborhoods

METRICS = {"text": "hellinger", "image": "chi2"}
N_NEIGHBORS = 90
N_COMPARED = 100


def setup(size):
    """Return {case: (dictionaries, targets)} of so many items, for SR and CSR."""
    data = load_wikipedia(harness.data_folder("wikipedia"))
    labels = np.full(len(data.labels), -1)
    labels[data.train] = data.labels[data.train]
    rows = np.random.default_rng(0).permutation(len(labels))[:size]
    Z = Links.from_labels({"item": labels}).within(balance="literal")
    links = LinkedNeighborhoods(Z)
    cases = {}
    for view, metric in METRICS.items():
        X = data.views[view]
        ids = nearest_neighbors(X, n_neighbors=N_NEIGHBORS, metric=metric)[0][rows]
        squares = pairwise_distances(X, X, metric=metric) ** 2
        K = np.exp(-squares / (0.2 * squares.mean()))
        blocks, targets = K[ids[:, :, None], ids[:, None, :]], K[rows[:, None], ids]
        cases[f"SR {view}"] = blocks, targets
        stacked = np.concatenate([blocks, links.roots(ids)], axis=1)
        cases[f"CSR {view}"] = stacked, np.hstack([targets, 0 * targets])
    return cases


def measure_linkspread(A, targets, n_jobs, repeats):
    """Return milliseconds per row, and the report of the last run."""
    reports = []

    def solve():
        result = solve_many(lambda r: (A[r], targets[r]), len(A), n_jobs=n_jobs)
        reports.append(result[2])

    timing = harness.measure(solve, repeats=repeats)
    return 1000 * timing["seconds_median"] / len(A), reports[-1]


def linprog_objective(A, b):
    m, k = A.shape
    identity = np.eye(m)
    matrix = np.hstack([A, -A, identity, -identity])
    return linprog(np.ones(2 * (m + k)), A_eq=matrix, b_eq=b, method="highs").fun


def highspy_solver():
    """Return a function (A, b) -> minimum by the dual, or None without highspy."""
    try:
        import highspy
    except ImportError:
        return None
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.setOptionValue("presolve", "off")  # which halves its time here

    def solve(A, b):
        m, k = A.shape
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = m, k
        model.col_cost_ = -b
        model.col_lower_, model.col_upper_ = np.full(m, -1.0), np.ones(m)
        model.row_lower_, model.row_upper_ = np.full(k, -1.0), np.ones(k)
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = np.arange(0, m * k + 1, k)
        model.a_matrix_.index_ = np.tile(np.arange(k), m)
        model.a_matrix_.value_ = A.ravel()
        solver.passModel(model)
        solver.run()
        return -solver.getInfo().objective_function_value

    return solve


def milliseconds(solve, A, targets):
    """Return milliseconds per row of a solver of single problems."""
    start = time.perf_counter()
    for problem in zip(A, targets, strict=True):
        solve(*problem)
    return 1000 * (time.perf_counter() - start) / len(A)


def measure_case(A, targets, repeats):
    """Return the times of every solver on one kind of problem."""
    one, report = measure_linkspread(A, targets, 1, repeats)
    two, _ = measure_linkspread(A, targets, 2, repeats)
    few = A[:N_COMPARED], targets[:N_COMPARED]
    other = milliseconds(linprog_objective, *few)
    highspy = highspy_solver()
    return {
        "ms_one_thread": one,
        "ms_two_threads": two,
        "ms_linprog": other,
        "ms_highspy": milliseconds(highspy, *few) if highspy else None,
        "times_faster": other / one,
        "largest_gap": report.largest_gap,
        "n_retried": report.n_retried,
        "n_fallback": report.n_fallback,
        "pivots_per_row": report.n_pivots / report.n_rows,
    }


def main(n=2866, repeats=3):
    """Return the times, gaps and retries of every case."""
    cases = {name: measure_case(*arrays, repeats) for name, arrays in setup(n).items()}
    return {
        "n_rows": n,
        "n_neighbors": N_NEIGHBORS,
        "n_compared": min(n, N_COMPARED),
        "cases": cases,
        "times_faster": min(case["times_faster"] for case in cases.values()),
        "largest_gap": max(case["largest_gap"] for case in cases.values()),
    }


def rows(result):
    """Return one line of the table per case."""
    return [
        {
            "case": name,
            "ms per row": f"{case['ms_one_thread']:.2f}",
            "with two threads": f"{case['ms_two_threads']:.2f}",
            "scipy linprog": f"{case['ms_linprog']:.1f}",
            "highspy, dual": f"{case['ms_highspy']:.1f}" if case["ms_highspy"] else "-",
            "times faster than linprog": f"{case['times_faster']:.0f}",
            "largest gap": f"{case['largest_gap']:.0e}",
            "retried": case["n_retried"],
            "by HiGHS": case["n_fallback"],
        }
        for name, case in result["cases"].items()
    ]


def headline(result):
    """Return the sentence for the front page."""
    return [
        f"Sparse codes of {result['n_rows']:,} items over {result['n_neighbors']} "
        f"neighbours: at least {result['times_faster']:.0f} times faster per item than "
        "scipy's `linprog` on one thread, each with a proof that its objective is "
        f"within {result['largest_gap']:.0e} of the minimum."
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=2866, help="items")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    print(json.dumps(main(options.n, options.repeats), indent=2))

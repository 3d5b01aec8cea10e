"""What a GPU does: neighbours, propagation, sparse codes, search, end to end.

``python benchmarks/bench_gpu.py --output DIR [--quick]`` writes ``gpu.json``; it
also names parts that failed. Every time is compared with a floor: the bytes or
operations that cannot be avoided, divided by the rates measured in the same run.
"""

import argparse
import json
import time
import traceback
from functools import partial
from pathlib import Path

import numpy as np
import torch

import harness
import linkspread as ls
from gpu_details import (
    measure_code_parts,
    measure_steps,
    seconds,
)
from linkspread.compiled.gpu import open_device
from linkspread.compiled.gpu.codes import solve_codes
from linkspread.compiled.gpu.graphs import Graph
from linkspread.graphs import nearest_neighbors, normalize
from linkspread.propagation import propagate
from linkspread.propagation.filter import fitted_response, separate
from linkspread.search import rank
from neighbor_graphs import make_neighbor_graph

FULL = {
    "neighbors": 1_000_000,
    "propagation": 1_000_000,
    "codes": 100_000,
    "search": 1_000_000,
    "whole": 1_000_000,
    "processor": 100_000,
}
QUICK = {name: n // 20 for name, n in FULL.items()}
N_FEATURES, N_NEIGHBORS, N_CLASSES = 128, 20, 32
ALPHA, BETA, TOL = 0.1, 0.95, 1e-6
CODE_NEIGHBORS, GAP = 90, 1e-4


def ceilings(place):
    """Return what the device copies and multiplies in a second, on random data."""
    on_gpu = place == "cuda"
    source = torch.rand(1 << (30 if on_gpu else 22), device=place)
    target = torch.empty_like(source)
    copying = seconds(partial(target.copy_, source), repeats=5)
    rates = {"copy_bytes": 2 * 4 * len(source) / copying}
    del source, target
    n = 8192 if on_gpu else 512
    for name in ("float16", "float32", "float64"):
        a, b = (
            torch.randn((n, n), device=place).to(getattr(torch, name)) for _ in "ab"
        )
        rates[f"{name}_flops"] = 2 * n**3 / seconds(partial(torch.mm, a, b), repeats=5)
    return rates


def clouds(n, seed=0):
    """Return items around a hundred centres, in float32, and their centres."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((100, N_FEATURES), dtype=np.float32)
    classes = rng.integers(0, 100, n)
    return centres[classes] + rng.standard_normal(
        (n, N_FEATURES), dtype=np.float32
    ), classes


def plain_neighbors(X, block=4096):
    """Search by torch's product and selection, with the matrix units' own precision."""
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        half = X.square().sum(1) / 2
        found = []
        for q in X.split(block):
            keys = torch.addmm(half, q, X.T, beta=-1)
            found.append(keys.topk(N_NEIGHBORS + 1, dim=1).indices)
        return torch.cat(found)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False


def measure_neighbors(n, backend, rates):
    """Return the time of an exact search, and of torch's own, inexact one."""
    X, _ = clouds(n)
    device = open_device(backend)
    found = {}

    def search():
        found["ids"] = nearest_neighbors(X, n_neighbors=N_NEIGHBORS, backend=backend)[0]

    ours = seconds(search, repeats=3)
    sample = np.random.default_rng(1).choice(n, 200, replace=False)
    true = _true_neighbors(device.put(X), sample)
    table = device.put(X)
    plain = {}

    def compare():
        plain["ids"] = plain_neighbors(table)

    theirs = seconds(compare, repeats=1, warmup=0)
    rough = plain["ids"][device.put(sample)].cpu().numpy()
    return {
        "n_items": n,
        "seconds": ours,
        "floor_seconds": 2.0 * n * n * N_FEATURES / rates["float16_flops"],
        "torch_seconds": theirs,
        "recall": _recall(found["ids"][sample], true),
        "torch_recall": _recall(rough, true),
    }


def _true_neighbors(X, sample):
    """Return the neighbours of a sample by float64 differences."""
    rows = torch.from_numpy(sample).to(X.device)
    found = []
    for row in rows:
        sums = torch.cat(
            [(b.double() - X[row].double()).square().sum(1) for b in X.split(1 << 17)]
        )
        sums[row] = torch.inf
        found.append(sums.topk(N_NEIGHBORS, largest=False).indices)
    return torch.stack(found).cpu().numpy()


def _recall(found, true):
    """Return the share of true neighbours that were found."""
    pairs = zip(found, true, strict=True)
    return float(np.mean([np.isin(own, row).mean() for row, own in pairs]))


def measure_propagation(n, backend, rates):
    """Return the time of a propagation, graphs on the device or not."""
    rng = np.random.default_rng(0)
    graphs, labels = [], {}
    for seed, view in enumerate(("text", "image")):
        classes = rng.integers(0, N_CLASSES, n)
        W = make_neighbor_graph(classes, shuffled=True, random_state=seed)
        graphs.append(normalize(W).astype(np.float32))
        labels[view] = np.where(rng.random(n) < 0.01, classes, -1)
    Z = ls.Links.from_labels(labels).between("text", "image")
    device = open_device(backend)
    on_device = [Graph(device, S, torch.float32).matrix() for S in graphs]
    settings = {"alpha": ALPHA, "beta": BETA, "tol": TOL}
    here = partial(propagate, graphs[0], Z, graphs[1], backend=backend, **settings)
    there = partial(propagate, on_device[0], Z, on_device[1], **settings)
    degrees = separate((fitted_response((ALPHA, ALPHA), BETA),), tol=TOL / 2).degrees
    moved = sum(
        degree * (S.data.nbytes + S.indices.nbytes + 3 * n * N_CLASSES * 4)
        for S, degree in zip(graphs, degrees, strict=True)
    )
    factors = there()
    return {
        "n_items": n,
        "seconds": seconds(there),
        "seconds_from_host": seconds(here),
        "floor_seconds": moved / rates["copy_bytes"],
        "rank": factors.rank,
        "error": factors.error,
        "edges": [int(S.nnz) for S in graphs],
        "degrees": [int(d) for d in degrees],
        "steps": measure_steps(device, graphs[0], N_CLASSES),
    }


def measure_codes(n, backend, rates):
    """Return the time of sparse codes per row, and the work left to the processor."""
    from linkspread.compiled.lad import solve_on_device
    from linkspread.graphs.adjust import links_within
    from linkspread.graphs.knn import local_bandwidths, weigh_edges
    from linkspread.graphs.l1 import LinkedNeighborhoods, NeighborhoodKernels
    from linkspread.graphs.neighbors import NeighborIndex

    X, classes = clouds(n)
    device = open_device(backend)
    k = min(CODE_NEIGHBORS, n // 4)
    ids, distances = nearest_neighbors(X, n_neighbors=k, backend=backend)
    widths = local_bandwidths(distances)
    kernels = NeighborhoodKernels(NeighborIndex(X), widths, "gaussian")
    how = {"weights": "gaussian", "metric": "euclidean"}
    targets = weigh_edges(ids, distances, widths, widths, **how)
    y = np.where(np.random.default_rng(0).random(n) < 0.1, classes % 10, -1)
    links = links_within(
        ls.Links.from_labels({"X": y}), view=None, balance="literal", n_items=n
    )
    found = {"n_rows": n, "n_neighbors": k}
    for name, roots in (
        ("SR", None),
        ("CSR", LinkedNeighborhoods(links, root="symmetric")),
    ):
        m = k if roots is None else 2 * k
        problems = kernels.problems(ids, targets, roots, device)
        block = slice(0, min(n, 8192))
        A, b = problems(block)
        building = seconds(partial(problems, block), repeats=1)
        row = {"build_ms_per_row": 1e3 * building / block.stop}
        # Per step: A' Q A, two products and back substitutions, and the factor.
        flops = 2 * m * k * k + k**3 / 3 + 8 * m * k + 4 * k * k
        for tol in (GAP, 1e-7):
            took = seconds(partial(solve_codes, A, b, tol))
            w, gaps, n_steps = solve_codes(A, b, tol)
            row[f"gap {tol:g}"] = {
                "solve_ms_per_row": 1e3 * took / block.stop,
                "n_steps": n_steps,
                "floor_ms_per_row": 1e3 * n_steps * flops / rates["float64_flops"],
                "left_to_processor": int((gaps > tol).sum()),
                "mean_length": float((w != 0).double().sum(1).mean()),
            }
        row["parts"] = measure_code_parts(A)
        del A, b
        if roots is None:
            start = time.perf_counter()
            _, gaps, report = solve_on_device(
                device, problems, n, shape=(m, k), tol=GAP
            )
            row["whole_ms_per_row"] = 1e3 * (time.perf_counter() - start) / n
            row["largest_gap"], row["n_retried"] = report.largest_gap, report.n_retried
        found[name] = row
    return found


def measure_ranking(n, backend, rates):
    """Return the time of many exact searches by inner product."""
    rng = np.random.default_rng(0)
    items = rng.standard_normal((n, 64), dtype=np.float32)
    vectors = rng.standard_normal((10_000, 64), dtype=np.float32)
    work = partial(rank, vectors, items, n_results=10)
    return {
        "n_items": n,
        "n_queries": len(vectors),
        "seconds": seconds(partial(work, backend=backend)),
        "floor_seconds": 2.0 * n * len(vectors) * 64 / rates["float32_flops"],
    }


def measure_whole(n, backend, rates):
    """Return the time from two tables and a few labels to the first answer."""
    X, classes = clouds(n)
    Y, others = clouds(n, seed=1)
    rng = np.random.default_rng(2)
    labels = [
        np.where(rng.random(n) < 0.01, c % N_CLASSES, -1) for c in (classes, others)
    ]
    start = time.perf_counter()
    model = ls.LinkSpreading(n_neighbors=N_NEIGHBORS, backend=backend)
    model.fit(
        {"text": X, "image": Y}, dict(zip(("text", "image"), labels, strict=True))
    )
    fitted = time.perf_counter()
    ids, _ = model.search(7, source="text", target="image")
    end = time.perf_counter()
    right = np.mean(others[ids] % N_CLASSES == classes[7] % N_CLASSES)
    return {
        "n_items": n,
        "seconds": end - start,
        "search_seconds": end - fitted,
        "same_class": float(right),
        "floor_seconds": 4.0 * n * n * N_FEATURES / rates["float16_flops"],
        "report": str(model.report_),
    }


def measure_processor(n, backend, rates):
    """Return the same time without a GPU, for fewer items."""
    # The rates are those of the GPU, so there is no floor.
    return measure_whole(n, "cpu", rates) | {"floor_seconds": None}


PARTS = {
    "neighbors": measure_neighbors,
    "propagation": measure_propagation,
    "codes": measure_codes,
    "search": measure_ranking,
    "whole": measure_whole,
    "processor": measure_processor,
}


def main(backend="cuda", sizes=FULL, parts=tuple(PARTS), output=None, commit=""):
    """Return the figures of every part, or its error."""
    if backend == "cuda" and not torch.cuda.is_available():
        raise harness.DataMissingError("needs a GPU, and torch sees none here")
    place = "cuda" if backend == "cuda" else "cpu"
    name = torch.cuda.get_device_name() if place == "cuda" else "torch on the processor"
    result = {"device": name, "torch": torch.__version__, "ceilings": ceilings(place)}
    for part in parts:
        start = time.perf_counter()
        try:
            result[part] = PARTS[part](sizes[part], backend, result["ceilings"])
        except Exception:
            result[part] = {"failed": traceback.format_exc()[-2000:]}
        if place == "cuda":
            torch.cuda.empty_cache()
        print(part, f"{time.perf_counter() - start:.1f} s", flush=True)
        print(json.dumps(result[part]), flush=True)
        if output:
            output.mkdir(parents=True, exist_ok=True)
            content = {"environment": harness.environment(commit), "result": result}
            text = json.dumps(content, indent=2, default=float)
            (output / "gpu.json").write_text(text + "\n", encoding="utf-8")
    return result


def rows(result):
    """Return one line of the table per part."""
    cases = {
        "neighbors": "exact neighbours, 128 features, k=20",
        "propagation": "propagation, 32 classes, graphs on the device",
        "search": "10,000 searches for 10 of vectors of length 64",
        "whole": "two tables of 128 features and 1 % labels to the first answer",
        "processor": "the same by the processor beside it",
    }
    lines = [
        _line(case, f"{result[part]['n_items']:,}", result[part])
        for part, case in cases.items()
        if "seconds" in result.get(part, {})
    ]
    codes = result.get("codes", {})
    for name in ("SR", "CSR"):
        if name in codes:
            lines.append(_code_line(name, codes))
    if "whole_ms_per_row" in codes.get("SR", {}):
        took = 1e-3 * codes["n_rows"] * codes["SR"]["whole_ms_per_row"]
        case = f"SR codes, k={codes['n_neighbors']}, gap <= {GAP:g}, with all they need"
        part = {"seconds": took, "floor_seconds": None}
        lines.append(_line(case, f"{codes['n_rows']:,}", part))
    return lines


def _line(case, size, part):
    """Return one line of times, the floor and torch's own time beside it."""
    took, floor = part["seconds"], part["floor_seconds"]
    times = f"{took / floor:.1f}" if floor else ""
    own = f"{part['torch_seconds']:.3g}" if "torch_seconds" in part else ""
    return {
        "case": case,
        "items": size,
        "seconds": f"{took:.3g}",
        "floor": f"{floor:.2g}" if floor else "",
        "times the floor": times,
        "torch's product and topk": own,
    }


def _code_line(name, codes):
    """Return the line of sparse codes, all rows at the time of one block."""
    found, n_rows = codes[name][f"gap {GAP:g}"], codes["n_rows"]
    part = {
        "seconds": 1e-3 * n_rows * found["solve_ms_per_row"],
        "floor_seconds": 1e-3 * n_rows * found["floor_ms_per_row"],
    }
    case = (
        f"{name} codes, k={codes['n_neighbors']}, gap <= {GAP:g}, solving alone, "
        "extrapolated from 8,192"
    )
    return _line(case, f"{n_rows:,}", part)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure a GPU.")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--quick", action="store_true", help="a twentieth of the sizes")
    parser.add_argument("--commit", default="", help="of the sources that run")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    options = parser.parse_args()
    chosen = QUICK if options.quick else FULL
    main(options.backend, chosen, options.parts, options.output, options.commit)

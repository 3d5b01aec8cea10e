"""Where the time of `bench_gpu` goes: the parts of each kernel, and other tiles."""

import time
from functools import partial

import numpy as np
import torch

from linkspread.compiled.gpu.graphs import Graph


def seconds(work, *, repeats=3, warmup=1):
    """Return the median time of some work, the device waited for."""
    times = []
    for _ in range(warmup + repeats):
        _wait()
        start = time.perf_counter()
        work()
        _wait()
        times.append(time.perf_counter() - start)
    return sorted(times[warmup:])[repeats // 2]


def _wait():
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def measure_search_parts(X, device, n_neighbors, n_queries=16384):
    """Return the time of each part of a search, for all queries, from one block."""
    from linkspread.compiled.gpu import search as nearest

    n_queries = min(n_queries, len(X))
    scale = len(X) / n_queries
    search = nearest._Search(device, X, X, np.arange(len(X)), False)
    parts = {
        "table": seconds(partial(search._table, 0, len(X), n_neighbors, torch.float16))
    }
    table = search._table(0, len(X), n_neighbors, torch.float16)
    rows = np.arange(n_queries)
    queries = search._queries(table, rows)
    converted, norms, errors = table.convert(queries)
    parts["convert"] = scale * seconds(partial(table.convert, queries))
    parts["minima"] = scale * seconds(partial(table.minima, converted))
    minima = table.minima(converted)
    n_kept = min(n_neighbors + nearest.PADDING, minima.shape[1])
    choose = partial(nearest._least, minima, n_kept)
    parts["groups"] = scale * seconds(choose)
    least, groups = choose()
    own = device.put(rows)
    parts["measure"] = scale * seconds(
        partial(search._measure, table, queries, groups, own)
    )
    sums, members = search._measure(table, queries, groups, own)
    parts["smallest"] = scale * seconds(
        partial(nearest._smallest, sums, members, n_neighbors)
    )
    _, values = nearest._smallest(sums, members, n_neighbors)
    bounds = table.nearest_dropped(least[:, -1], norms, errors)
    parts["proven_share"] = float((values[:, -1].sqrt() < bounds).double().mean())
    if device.is_fused:
        parts["tiles"] = tune_tiles(table, converted, scale)
    return parts


def tune_tiles(table, converted, scale):
    """Return the time of the minima with other tiles."""
    from linkspread.compiled.gpu import fused

    names = "QUERY_TILE", "ITEM_TILE", "WALK", "N_WARPS", "N_STAGES"
    kept = [getattr(fused, name) for name in names]
    found = {}
    for tile in (
        (128, 128, 32, 8, 3),
        (128, 128, 32, 4, 3),
        (128, 128, 128, 8, 3),
        (128, 256, 32, 8, 2),
        (64, 256, 32, 4, 3),
        (128, 64, 64, 4, 4),
        (256, 128, 32, 8, 3),
    ):
        for name, value in zip(names, tile, strict=True):
            setattr(fused, name, value)
        try:
            found[str(tile)] = scale * seconds(partial(table.minima, converted))
        except Exception as error:
            found[str(tile)] = f"{type(error).__name__}: {error}"[:200]
    for name, value in zip(names, kept, strict=True):
        setattr(fused, name, value)
    return found


def measure_steps(device, S, n_columns):
    """Return the time of one step by each kernel."""
    from linkspread.compiled.gpu import plain

    graph = Graph(device, S, torch.float32)
    blocks = [torch.rand((S.shape[0], n_columns), device=device.place) for _ in "ab"]
    found = {
        "torch": seconds(partial(plain.chebyshev_step, graph, 2, *blocks), repeats=9)
    }
    if device.is_fused:
        from linkspread.compiled.gpu import fused

        step = partial(fused.chebyshev_step, graph, 2, *blocks)
        found["fused"] = seconds(step, repeats=9)
    return found


def measure_code_parts(A):
    """Return the time per row of the large operations of one step."""
    k = A.shape[2]
    eye = torch.eye(k, dtype=A.dtype, device=A.device)
    weights = torch.rand(A.shape[:2], dtype=A.dtype, device=A.device)
    scaled = A * weights[:, :, None]
    normal = torch.baddbmm(eye.expand(len(A), -1, -1), A.mT, A)
    factor = torch.linalg.cholesky_ex(normal).L
    right = torch.rand((len(A), k, 1), dtype=A.dtype, device=A.device)
    works = {
        "scale": lambda: A * weights[:, :, None],
        "normal": lambda: torch.bmm(A.mT, scaled),
        "cholesky": lambda: torch.linalg.cholesky_ex(normal),
        "solve": lambda: torch.cholesky_solve(right, factor),
        "triangles": lambda: torch.linalg.solve_triangular(factor, right, upper=False),
        "product": lambda: torch.bmm(A, right),
        "vertex": lambda: torch.linalg.solve_ex(normal, right[:, :, 0]),
    }
    return {name: 1e3 * seconds(work) / len(A) for name, work in works.items()}

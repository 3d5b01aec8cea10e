"""Where the time of `bench_gpu` goes: the parts of each kernel, and other tiles."""

import time
from functools import partial

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

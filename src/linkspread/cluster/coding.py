"""Sparse codes of the items of a view, block by block (SR and CSR)."""

from functools import partial
from operator import getitem
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.cluster.graph_blocks import mean_with_mirror, symmetrize_blocks
from linkspread.cluster.neighbors import Found
from linkspread.cluster.session import alone
from linkspread.cluster.view_graphs import BuiltGraph, Neighborhoods
from linkspread.cluster.views import ChunkedView
from linkspread.compiled.backends import use_backend
from linkspread.compiled.lad import Report
from linkspread.graphs import L1Graph
from linkspread.graphs.l1 import L1Report
from linkspread.links import LinkMatrix

Array = np.ndarray
# Of one block: its report, exact duplicates, empty codes, and all coefficients.
Told = tuple[Report, int, int, int]


def build_codes(near: Neighborhoods, Z: LinkMatrix | None) -> BuiltGraph:
    """Code every item by its neighbours, as `graphs.l1_graph` does."""
    session, view, chosen = near.session, near.view, near.chosen
    links = None if Z is None else session.hold(Z)
    code = partial(_code_block, view, chosen)
    each = len(near.found)
    shared = [session.hold(near.widths)] * each, list(near.blocks), [links] * each
    coded = session.submit_each(near.blocks, code, near.found, *shared)
    session.finish(coded, f"sparse codes of {view.name}")
    edges = session.submit_each(near.blocks, getitem, coded, [0] * each)
    told = session.submit_each(near.blocks, getitem, coded, [1] * each)
    session.keep(*edges, *told)
    affinity = symmetrize_blocks(session, edges, near.blocks, join=mean_with_mirror)
    session.finish(affinity, f"edges of {view.name}")
    return BuiltGraph(near, affinity, told=told)


def join_reports(told: list[Told], n_items: int) -> L1Report:
    """Return what the workers report together."""
    reports, duplicated, empty, lengths = zip(*told, strict=True)
    sums = {
        name: sum(getattr(report, name) for report in reports)
        for name in ("n_rows", "n_retried", "n_fallback", "n_pivots", "seconds")
    }
    gap = max(report.largest_gap for report in reports)
    solver = Report(**sums, largest_gap=gap)
    return L1Report(solver, sum(duplicated), sum(empty), sum(lengths) / n_items)


@alone
def _code_block(
    view: ChunkedView,
    chosen: dict[str, Any],
    found: Found,
    widths: Any,
    own: tuple[int, int],
    links: LinkMatrix | None,
) -> tuple[sparse.csr_array, Told]:
    """Return the codes of a block of rows; reads only the rows of their neighbours."""
    ids, distances = found
    used, places = np.unique(ids, return_inverse=True)
    is_local = np.ndim(widths) > 0
    graph = L1Graph(
        n_neighbors=chosen["n_neighbors"],
        metric=chosen["metric"],
        bandwidth=chosen["bandwidth"],
        kernel=chosen["weights"],
    ).resume(
        view.take(used),
        None,
        widths[used] if is_local else widths,
        links=None if links is None else _among(links, used),
        report=None,
    )
    with use_backend(chosen["backend"]):
        codes, solved = graph.encode(
            places.reshape(ids.shape),
            distances,
            widths[slice(*own)] if is_local else widths,
        )
    # Positions are sorted, so their order within a row stays.
    arrays = codes.data, used[codes.indices], codes.indptr
    edges = sparse.csr_array(arrays, shape=(len(ids), view.shape[0]))
    n_empty = int(np.sum(np.diff(codes.indptr) == 0))
    n_duplicated = int(np.sum(distances[:, 0] == 0))
    return edges, (solved, n_duplicated, n_empty, int(codes.nnz))


def _among(Z: LinkMatrix, used: Array) -> LinkMatrix:
    """Return the links among some items."""
    pairs = sparse.csr_array(Z.pairs[used][:, used])
    return LinkMatrix(Z.left[used], Z.core, Z.right[used], pairs)

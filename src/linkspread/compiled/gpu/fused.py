"""Kernels that torch has no operation for, written in Triton.

`plain` has the same functions in torch operations, for any device.
"""

import torch
import triton
import triton.language as tl
from triton.language import constexpr

# Queries and items per tile, and tiles per program.
QUERY_TILE, ITEM_TILE, WALK = constexpr(256), constexpr(128), constexpr(32)
# Features multiplied at once, for rows that fit the cache and for wider ones.
NARROW, WIDE_TILE = constexpr(128), constexpr(64)
# Edges loaded per step, and columns per program.
EDGES, COLUMNS = constexpr(8), 128


@triton.jit
def _group_minima(
    queries, items, offsets, out, n_queries, n_items, WIDTH: constexpr, GROUP: constexpr
):
    CHUNK: constexpr = WIDTH if WIDTH <= NARROW else WIDE_TILE
    N_GROUPS: constexpr = ITEM_TILE // GROUP
    rows = tl.program_id(0) * QUERY_TILE + tl.arange(0, QUERY_TILE)
    is_row = rows < n_queries
    ks = tl.arange(0, CHUNK)
    own = queries + rows.to(tl.int64)[:, None] * WIDTH + ks[None, :]
    block = tl.load(own, mask=is_row[:, None], other=0.0)
    n_groups = n_items // GROUP
    first = tl.program_id(1) * WALK
    for tile in range(first, min(first + WALK, tl.cdiv(n_items, ITEM_TILE))):
        cols = tile * ITEM_TILE + tl.arange(0, ITEM_TILE)
        is_col = cols < n_items
        other = items + cols.to(tl.int64)[None, :] * WIDTH + ks[:, None]
        if WIDTH == CHUNK:
            products = tl.dot(block, tl.load(other, mask=is_col[None, :], other=0.0))
        else:
            products = tl.zeros((QUERY_TILE, ITEM_TILE), dtype=tl.float32)
            for k in range(0, WIDTH, CHUNK):
                left = tl.load(own + k, mask=is_row[:, None], other=0.0)
                right = tl.load(other + k, mask=is_col[None, :], other=0.0)
                products = tl.dot(left, right, products)
        keys = tl.load(offsets + cols, mask=is_col, other=float("inf"))
        keys = keys[None, :] - products
        least = tl.min(tl.reshape(keys, (QUERY_TILE, N_GROUPS, GROUP)), axis=2)
        groups = tile * N_GROUPS + tl.arange(0, N_GROUPS)
        place = out + rows.to(tl.int64)[:, None] * n_groups + groups[None, :]
        tl.store(place, least, mask=is_row[:, None] & (groups < n_groups)[None, :])


def group_minima(queries, items, offsets, group):
    """Return ``min_j (offsets[j] - queries @ items[j])`` over each group of items.

    float16 rows with float32 sums; items come in whole groups of a power of two, and
    rows have 16, 32, 64 or 128 features or a multiple of 64.
    """
    n_queries, width = queries.shape
    n_items = len(items)
    out = queries.new_empty((n_queries, n_items // group), dtype=torch.float32)
    n_programs = triton.cdiv(n_items, ITEM_TILE.value * WALK.value)
    grid = (triton.cdiv(n_queries, QUERY_TILE.value), n_programs)
    arrays = queries, items, offsets, out, n_queries, n_items
    _group_minima[grid](*arrays, width, group, num_warps=8, num_stages=3)
    return out


@triton.jit
def _candidate_sums(
    queries, items, groups, out, n_items, width, GROUP: constexpr, CHUNK: constexpr
):
    row = tl.program_id(0).to(tl.int64)
    slot = row * tl.num_programs(1) + tl.program_id(1)
    members = tl.load(groups + slot) * GROUP + tl.arange(0, GROUP)
    is_item = members < n_items
    total = tl.zeros((GROUP,), dtype=tl.float64)
    for start in range(0, width, CHUNK):
        features = start + tl.arange(0, CHUNK)
        inside = features < width
        q = tl.load(queries + row * width + features, mask=inside, other=0.0)
        place = items + members[:, None] * width + features[None, :]
        x = tl.load(place, mask=is_item[:, None] & inside[None, :], other=0.0)
        q, x = q.to(tl.float64)[None, :], x.to(tl.float64)
        total += tl.sum((q - x) * (q - x), axis=1)
    total = tl.where(is_item, total, float("inf"))
    tl.store(out + slot * GROUP + tl.arange(0, GROUP), total)


def candidate_sums(queries, items, groups, group):
    """Return ``sum_f (q - x)^2`` of queries and all items of their kept groups.

    In float64; infinity beyond the last item. The result has shape
    (n_queries, n_kept * group).
    """
    n_queries, n_kept = groups.shape
    out = queries.new_empty((n_queries, n_kept * group), dtype=torch.float64)
    width = items.shape[1]
    sizes = len(items), width, group, min(triton.next_power_of_2(width), 128)
    _candidate_sums[(n_queries, n_kept)](
        queries, items, groups, out, *sizes, num_warps=2
    )
    return out


@triton.jit
def _chebyshev_step(
    data, indices, indptr, current, previous, scale, n_columns, COLUMNS: constexpr
):
    i = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < n_columns
    own = previous + i * n_columns + columns
    before = tl.load(own, mask=inside, other=0.0)
    total = tl.zeros_like(before)
    first, last = tl.load(indptr + i), tl.load(indptr + i + 1)
    for start in range(first, last, EDGES):
        edges = start + tl.arange(0, EDGES)
        is_edge = edges < last
        j = tl.load(indices + edges, mask=is_edge, other=0).to(tl.int64)
        weights = tl.load(data + edges, mask=is_edge, other=0.0)
        place = current + j[:, None] * n_columns + columns[None, :]
        rows = tl.load(place, mask=is_edge[:, None] & inside[None, :], other=0.0)
        total += tl.sum(weights[:, None] * rows, axis=0)
    tl.store(own, scale * total - before, mask=inside)


def chebyshev_step(graph, scale, current, previous):
    """Write ``scale * S @ current - previous`` over ``previous``; S is CSR."""
    n_rows, n_columns = current.shape
    columns = min(max(triton.next_power_of_2(n_columns), 16), COLUMNS)
    grid = (n_rows, triton.cdiv(n_columns, columns))
    arrays = graph.data, graph.indices, graph.indptr, current, previous
    _chebyshev_step[grid](*arrays, float(scale), n_columns, columns, num_warps=1)

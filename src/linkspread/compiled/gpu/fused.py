"""Kernels that torch has no operation for, written in Triton.

`plain` has the same functions in torch operations, for any device.
"""

import torch
import triton
import triton.language as tl

# Queries and items per tile, and tiles per program.
QUERY_TILE, ITEM_TILE, WALK = 256, 128, 32
# Features multiplied at once, for rows that fit the cache and for wider ones.
NARROW, WIDE_TILE = 128, 64
N_WARPS, N_STAGES = 8, 3
# Edges loaded per step, and columns per program.
EDGES, COLUMNS = 8, 128


@triton.jit
def _group_minima(
    queries,
    items,
    offsets,
    out,
    n_queries,
    n_items,
    n_tiles,
    WIDTH: tl.constexpr,
    GROUP: tl.constexpr,
    WALK: tl.constexpr,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    CHUNK: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    is_row = rows < n_queries
    ks = tl.arange(0, CHUNK)
    own = queries + rows.to(tl.int64)[:, None] * WIDTH + ks[None, :]
    block = tl.load(own, mask=is_row[:, None], other=0.0)
    n_groups = n_items // GROUP
    first = tl.program_id(1) * WALK
    for tile in range(first, min(first + WALK, n_tiles)):
        cols = tile * COLS + tl.arange(0, COLS)
        is_col = cols < n_items
        other = items + cols.to(tl.int64)[None, :] * WIDTH + ks[:, None]
        if WIDTH == CHUNK:
            products = tl.dot(block, tl.load(other, mask=is_col[None, :], other=0.0))
        else:
            products = tl.zeros((ROWS, COLS), dtype=tl.float32)
            for k in range(0, WIDTH, CHUNK):
                left = tl.load(own + k, mask=is_row[:, None], other=0.0)
                right = tl.load(other + k, mask=is_col[None, :], other=0.0)
                products = tl.dot(left, right, products)
        keys = tl.load(offsets + cols, mask=is_col, other=float("inf"))
        keys = keys[None, :] - products
        least = tl.min(tl.reshape(keys, (ROWS, COLS // GROUP, GROUP)), axis=2)
        groups = tile * (COLS // GROUP) + tl.arange(0, COLS // GROUP)
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
    n_tiles = triton.cdiv(n_items, ITEM_TILE)
    grid = (triton.cdiv(n_queries, QUERY_TILE), triton.cdiv(n_tiles, WALK))
    _group_minima[grid](
        queries,
        items,
        offsets,
        out,
        n_queries,
        n_items,
        n_tiles,
        WIDTH=width,
        GROUP=group,
        WALK=WALK,
        ROWS=QUERY_TILE,
        COLS=ITEM_TILE,
        CHUNK=width if width <= NARROW else WIDE_TILE,
        num_warps=N_WARPS,
        num_stages=N_STAGES,
    )
    return out


@triton.jit
def _candidate_sums(
    queries,
    items,
    groups,
    out,
    n_items,
    n_features,
    n_kept,
    GROUP: tl.constexpr,
    CHUNK: tl.constexpr,
    RELATIVE: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    slot = row * n_kept + tl.program_id(1)
    members = tl.load(groups + slot) * GROUP + tl.arange(0, GROUP)
    is_item = members < n_items
    total = tl.zeros((GROUP,), dtype=tl.float64)
    for start in range(0, n_features, CHUNK):
        features = start + tl.arange(0, CHUNK)
        inside = features < n_features
        q = tl.load(queries + row * n_features + features, mask=inside, other=0.0)
        place = items + members[:, None] * n_features + features[None, :]
        x = tl.load(place, mask=is_item[:, None] & inside[None, :], other=0.0)
        q, x = q.to(tl.float64)[None, :], x.to(tl.float64)
        terms = (q - x) * (q - x)
        if RELATIVE:
            sizes = q + x
            terms = terms / tl.where(sizes > 0, sizes, 1.0)
        total += tl.sum(terms, axis=1)
    total = tl.where(is_item, total, float("inf"))
    tl.store(out + slot * GROUP + tl.arange(0, GROUP), total)


def candidate_sums(queries, items, groups, group, relative):
    """Return ``sum_f (q - x)^2`` of queries and all items of their kept groups.

    With ``relative`` each term is divided by q + x. In float64; infinity beyond the
    last item. The result has shape (n_queries, n_kept * group).
    """
    n_queries, n_kept = groups.shape
    out = queries.new_empty((n_queries, n_kept * group), dtype=torch.float64)
    n_features = items.shape[1]
    _candidate_sums[(n_queries, n_kept)](
        queries,
        items,
        groups,
        out,
        len(items),
        n_features,
        n_kept,
        GROUP=group,
        CHUNK=min(triton.next_power_of_2(n_features), 128),
        RELATIVE=relative,
        num_warps=2,
    )
    return out


@triton.jit
def _chebyshev_step(
    data,
    indices,
    indptr,
    current,
    previous,
    scale,
    n_columns,
    COLUMNS: tl.constexpr,
    EDGES: tl.constexpr,
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
    _chebyshev_step[grid](
        graph.data,
        graph.indices,
        graph.indptr,
        current,
        previous,
        float(scale),
        n_columns,
        COLUMNS=columns,
        EDGES=EDGES,
        num_warps=1,
    )

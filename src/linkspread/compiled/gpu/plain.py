"""The kernels of `fused` in operations that torch has for every device."""

import torch

# Entries that are gathered at a time.
GATHERED = 1 << 24


def group_minima(queries, items, offsets, group):
    """Return ``min_j (offsets[j] - queries @ items[j])`` over each group of items.

    float16 rows are multiplied in float32, where their products are exact.
    """
    if queries.dtype == torch.float16:
        queries, items = queries.float(), items.float()
    keys = torch.matmul(queries, items.T)
    torch.sub(offsets, keys, out=keys)
    return keys if group == 1 else keys.view(len(queries), -1, group).amin(dim=2)


def candidate_sums(queries, items, groups, group):
    """Return ``sum_f (q - x)^2`` of queries and all items of their kept groups.

    In float64; infinity beyond the last item. The result has shape
    (n_queries, n_kept * group).
    """
    members = groups[:, :, None] * group + torch.arange(group, device=items.device)
    members = members.flatten(1)
    step, parts = max(GATHERED // (members.shape[1] * items.shape[1]), 1), []
    for q, near in zip(queries.split(step), members.split(step), strict=True):
        x = items[near.clamp(max=len(items) - 1)].double()
        parts.append((q.double()[:, None, :] - x).square_().sum(dim=2))
    return torch.cat(parts).masked_fill_(members >= len(items), torch.inf)


def chebyshev_step(graph, scale, current, previous):
    """Write ``scale * S @ current - previous`` over ``previous``; S is CSR."""
    S = graph.matrix()
    torch.addmm(previous, S, current, beta=-1, alpha=scale, out=previous)

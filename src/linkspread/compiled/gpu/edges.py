"""Lists of neighbours as a symmetric graph, assembled on a device."""

import torch


def symmetric_edges(ids, weights):
    """Return the CSR arrays of ``max(W, W')``, W having the weights at these ids."""
    n_items = len(ids)
    rows = torch.arange(n_items, device=ids.device)[:, None].expand_as(ids)
    is_edge = weights > 0
    i, j, values = rows[is_edge], ids[is_edge], weights[is_edge]
    # Every edge in both directions; one that both of its ends name is there twice.
    places, order = torch.cat([i * n_items + j, j * n_items + i]).sort()
    values = values.repeat(2)[order]
    if len(places) > 1:
        is_second = torch.zeros_like(places, dtype=torch.bool)
        is_second[1:] = places[1:] == places[:-1]
        first = torch.nonzero(is_second).flatten() - 1
        values[first] = torch.maximum(values[first], values[first + 1])
        places, values = places[~is_second], values[~is_second]
    counts = torch.bincount(places // n_items, minlength=n_items)
    indptr = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
    return values, places % n_items, indptr

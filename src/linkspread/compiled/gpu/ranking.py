"""The items with the largest inner products, on a device."""

import torch

# Scores of a row are looked at in pieces, as in `linkspread.search.best`.
PIECE, LEAST_PIECES = 512, 4
# Blocks of scores in memory at a time: the product and what selecting takes.
N_BLOCKS = 3


def best_items(device, vectors, items, n_results, *, closed=None, barred=None):
    """Return the positions and scores of the best items of every query."""
    dtype = torch.promote_types(
        *(torch.from_numpy(a[:1]).dtype for a in (vectors, items))
    )
    table = device.put(items, dtype)
    shut = None if closed is None else device.put(closed)

    def work(rows):
        scores = device.put(vectors[rows], dtype) @ table.T
        if shut is not None:
            scores[:, shut] = -torch.inf
        if barred is not None:
            own = barred[rows].tocoo()
            scores[tuple(device.put(index).long() for index in own.coords)] = -torch.inf
        return [tensor.cpu().numpy() for tensor in _best(scores, n_results)]

    row_bytes = N_BLOCKS * dtype.itemsize * len(items)
    n_block = device.block_rows(row_bytes, len(vectors))
    for _, found in device.in_blocks(work, len(vectors), n_block):
        yield found


def _best(scores, n_results):
    """Return positions and values of the largest entries of each row."""
    n_rows, n_columns = scores.shape
    if n_columns < LEAST_PIECES * n_results * PIECE:
        return _largest(scores, None, n_results)
    n_whole = n_columns // PIECE * PIECE
    pieces = scores[:, :n_whole].view(n_rows, -1, PIECE)
    # One piece more than results, to see whether its maximum ties with the last.
    kept = pieces.amax(dim=2).topk(n_results + 1, dim=1).indices.sort(dim=1).values
    within = torch.arange(PIECE, device=scores.device)
    places = (kept[:, :, None] * PIECE + within).flatten(1)
    rest = torch.arange(n_whole, n_columns, device=scores.device).expand(n_rows, -1)
    places = torch.cat([places, rest], dim=1)
    return _largest(scores.gather(1, places), places, n_results, whole=scores)


def _largest(values, places, n_results, whole=None):
    """Return the largest values of rows in order, equal ones by their places."""
    n_taken = min(n_results + 1, values.shape[1])
    best, found = values.topk(n_taken, dim=1)
    found = found if places is None else places.gather(1, found)
    if n_taken > n_results:
        tied = torch.nonzero(best[:, -1] == best[:, -2]).flatten()
        best, found = best[:, :-1], found[:, :-1]
        if len(tied):
            # Which of equal ones `topk` takes is luck, so whole rows are sorted.
            rows = (values if whole is None else whole)[tied]
            sorted_rows = rows.sort(dim=1, descending=True, stable=True)
            best[tied] = sorted_rows.values[:, :n_results]
            found[tied] = sorted_rows.indices[:, :n_results]
    found, order = found.sort(dim=1)
    best, again = best.gather(1, order).sort(dim=1, descending=True, stable=True)
    return found.gather(1, again), best

"""Exact nearest neighbours on a device, most of them through half precision.

For every query the groups of items with the smallest keys are kept, a few more than
there are neighbours to find: the k smallest keys lie in the k groups with the smallest
minima. The items of these groups are then measured exactly, in float64, and a query is
*proven* when no item of another group can be nearer than its last neighbour. What is
not proven is searched again in double precision.
"""

import numpy as np
import torch

from linkspread.compiled.gpu import plain
from linkspread.compiled.gpu.tables import ProductTable, RelativeTable

# Groups kept beyond one for every neighbour and one for the query itself.
PADDING = 11
# Items per group: the fewer, the more minima; the more, the more exact distances.
LARGEST_GROUP = 32
# Fewer groups than so many times those kept would nearly all be kept.
LEAST_GROUPS = 4
LARGEST_BLOCK = 1 << 14
# Minima are selected in two rounds, the first over the minima of so many, where there
# are enough of them.
PIECE, LEAST_PIECES = 16, 4
# Shares of the free memory for the items and for a block of queries.
ITEM_SHARE, QUERY_SHARE = 0.4, 0.4


def nearest_items(device, items, queries, excluded, n_neighbors, *, relative=False):
    """Return the nearest items of every query, and which rows are proven.

    ``d^2 = sum (q - x)^2``, each term over q + x where ``relative``. Item
    ``excluded[i]`` is not found by query i.
    """
    search = _Search(device, items, queries, excluded, relative)
    first = torch.from_numpy(items[:1]).dtype if relative else torch.float16
    ids, distances, is_proven = search.run(np.arange(len(queries)), n_neighbors, first)
    pending = np.flatnonzero(~is_proven)
    if len(pending) and not relative:
        found = search.run(pending, n_neighbors, torch.float64)
        ids[pending], distances[pending], is_proven[pending] = found
    return ids, distances, is_proven


class _Search:
    """One way through all items for some of the queries."""

    def __init__(self, device, items, queries, excluded, relative):
        self.device, self.relative = device, relative
        self.items, self.queries, self.excluded = items, queries, excluded

    def run(self, pending, n_neighbors, dtype):
        """Return ids, distances and proofs of the pending queries."""
        shape = len(pending), n_neighbors
        integers = np.int32 if len(self.items) < 2**31 else np.int64
        ids, sums = np.empty(shape, integers), np.empty(shape)
        bounds = np.full(len(pending), np.inf)
        for first, stop in self._chunks(dtype):
            table = self._table(first, stop, n_neighbors, dtype)

            def work(rows, table=table, first=first):
                return self._search_block(table, first, pending[rows], n_neighbors)

            n_block = self._block_rows(table, n_neighbors, len(pending))
            for rows, found in self.device.in_blocks(work, len(pending), n_block):
                new = [tensor.cpu().numpy() for tensor in found]
                if first:
                    new[:2] = _merged(ids[rows], sums[rows], *new[:2])
                ids[rows], sums[rows] = new[:2]
                bounds[rows] = np.fmin(bounds[rows], new[2])
            del table, work  # before the next chunk takes its place
        distances = np.sqrt(sums, out=sums)
        return ids, distances, distances[:, -1] < bounds

    def _chunks(self, dtype):
        """Yield the ends of chunks of items that fit the device."""
        n_items, n_features = self.items.shape
        row_bytes = n_features * (self.items.itemsize + dtype.itemsize) + 8
        step = self.device.block_rows(row_bytes, n_items, share=ITEM_SHARE)
        for first in range(0, n_items, step):
            yield first, min(first + step, n_items)

    def _table(self, first, stop, n_neighbors, dtype):
        """Return a chunk of items on the device, ready to be compared."""
        group, n_groups = LARGEST_GROUP, LEAST_GROUPS * (n_neighbors + PADDING)
        while group > 1 and stop - first < group * n_groups:
            group //= 2
        rows = self.device.put(self.items[first:stop])
        kind = RelativeTable if self.relative else ProductTable
        return kind(self.device, rows, dtype, group)

    def _block_rows(self, table, n_neighbors, n_pending):
        """Return how many queries are searched at a time."""
        n_groups = len(table.items) // table.group
        n_near = (n_neighbors + PADDING) * table.group
        n_keys = n_groups if table.is_fused else len(table.items) * 2 + n_groups
        # Keys, what selecting them takes, and the candidates with their ids.
        n_bytes = (n_keys + 2 * n_groups) * table.offsets.itemsize + 48 * n_near
        n_bytes += 32 * table.rows.shape[1]
        n_rows = min(n_pending, LARGEST_BLOCK)
        return self.device.block_rows(n_bytes, n_rows, share=QUERY_SHARE)

    def _search_block(self, table, first, rows, n_neighbors):
        """Return ids, squared distances and bounds of what was dropped."""
        own = self.device.put(self.excluded[rows]) - first
        queries = self._queries(table, rows)
        converted, norms, errors = table.convert(queries)
        minima = table.minima(converted)
        n_kept = min(n_neighbors + PADDING, minima.shape[1])
        least, groups = _least(minima, n_kept)
        if n_kept < minima.shape[1]:
            bounds = table.nearest_dropped(least[:, -1], norms, errors)
        else:
            bounds = torch.full_like(norms, torch.inf)
        del minima
        sums, members = self._measure(table, queries, groups, own)
        ids, sums = _smallest(sums, members, n_neighbors)
        small = torch.int32 if len(self.items) < 2**31 else torch.int64
        return (ids + first).to(small), sums, bounds

    def _queries(self, table, rows):
        """Return some queries on the device, in the precision of the items."""
        is_run = len(rows) == rows[-1] - rows[0] + 1
        if self.queries is self.items and len(table.rows) == len(self.items):
            here = slice(rows[0], rows[-1] + 1) if is_run else self.device.put(rows)
            return table.rows[here]
        here = slice(rows[0], rows[-1] + 1) if is_run else rows
        return self.device.put(self.queries[here], table.rows.dtype)

    def _measure(self, table, queries, groups, own):
        """Return squared distances of all items of some groups, and their places."""
        kernels = plain
        if self.device.is_fused:
            from linkspread.compiled.gpu import fused as kernels
        group = table.group
        sums = kernels.candidate_sums(queries, table.rows, groups, group, self.relative)
        within = torch.arange(group, device=sums.device)
        members = (groups[:, :, None] * group + within).flatten(1)
        return sums.masked_fill_(members == own[:, None], torch.inf), members


def _least(minima, n_kept):
    """Return the smallest entries of each row in order, and their places.

    The k smallest entries lie in the k pieces with the smallest minima, so that only
    these need be sorted through.
    """
    n_rows, n_columns = minima.shape
    n_whole = n_columns // PIECE * PIECE
    if n_columns < LEAST_PIECES * n_kept * PIECE:
        return minima.topk(n_kept, dim=1, largest=False)
    pieces = minima[:, :n_whole].unflatten(1, (-1, PIECE)).amin(dim=2)
    chosen = pieces.topk(n_kept, dim=1, largest=False, sorted=False).indices
    within = torch.arange(PIECE, device=minima.device)
    places = (chosen[:, :, None] * PIECE + within).flatten(1)
    rest = torch.arange(n_whole, n_columns, device=minima.device)
    places = torch.cat([places, rest.expand(n_rows, -1)], dim=1)
    least, order = minima.gather(1, places).topk(n_kept, dim=1, largest=False)
    return least, places.gather(1, order)


def _smallest(sums, members, n_neighbors):
    """Return the members with the smallest sums in order, ties by their places."""
    n_taken = min(n_neighbors + 1, sums.shape[1])
    values, places = sums.topk(n_taken, dim=1, largest=False)
    chosen = members.gather(1, places)
    if n_taken > n_neighbors:
        tied = values[:, -1] == values[:, -2]
        values, chosen = values[:, :-1], chosen[:, :-1]
        rows = torch.nonzero(tied).flatten()
        if len(rows):
            # Which of equal ones `topk` takes is luck, so all are sorted.
            found = _sorted(sums[rows], members[rows])
            values[rows], chosen[rows] = (part[:, :n_neighbors] for part in found)
    values, chosen = _sorted(values, chosen)
    missing = n_neighbors - values.shape[1]
    if missing > 0:
        values = torch.nn.functional.pad(values, (0, missing), value=torch.inf)
        chosen = torch.nn.functional.pad(chosen, (0, missing), value=-1)
    return chosen, values


def _sorted(values, ids):
    """Return values in rising order with their ids, ties by id."""
    ids, order = ids.sort(dim=1)
    values, again = values.gather(1, order).sort(dim=1, stable=True)
    return values, ids.gather(1, again)


def _merged(ids, sums, new_ids, new_sums):
    """Return the best of two lists, of which the first has the smaller ids."""
    sums, ids = np.hstack([sums, new_sums]), np.hstack([ids, new_ids])
    order = np.argsort(sums, axis=1, kind="stable")[:, : new_ids.shape[1]]
    return np.take_along_axis(ids, order, 1), np.take_along_axis(sums, order, 1)

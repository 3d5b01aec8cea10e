"""The nearest and the best-scoring items, searched on a device.

For every query the groups of items with the smallest keys are kept, a few more than
there are neighbours to find: the k smallest keys lie in the k groups with the smallest
minima. Exact distances to the items of these groups are computed in float64. A query
is *proven* when no item of another group can be nearer than its last neighbour; the
others are searched again in double precision.

Keys are half-precision products. Their rounding and conversion errors bound the
distance of the items that were dropped, as in `linkspread.graphs.neighbors`, but for
groups of items: only the smallest key of each group is written to memory.
"""

import math

import numpy as np
import torch

from linkspread.compiled.gpu import plain

# Groups kept beyond one for every neighbour and one for the query itself.
PADDING = 11
# Items per group: the fewer, the more minima; the more, the more exact distances.
LARGEST_GROUP = 32
# With fewer groups than this multiple of those kept, nearly all would be kept.
MIN_GROUPS = 4
LARGEST_BLOCK = 1 << 14
# Of many entries the smallest are selected in two rounds, the first over the minima of
# pieces of this size, if there are several times as many pieces as are kept.
PIECE, SCORE_PIECE, MIN_PIECES = 16, 512, 4
# Shares of the free memory for the items and for a block of queries.
ITEM_SHARE, QUERY_SHARE = 0.4, 0.4
# Blocks of scores in memory at a time: the product, and two for the selection.
N_BLOCKS = 3
# Rows converted at a time; bounds the float64 scratch of a large table.
CONVERSION_BLOCK = 1 << 18
EPS64 = torch.finfo(torch.float64).eps


def nearest_items(device, items, queries, excluded, n_neighbors):
    """Return the nearest items of every query, and which rows are proven.

    Item ``excluded[i]`` is not found by query i.
    """
    search = _Search(device, items, queries, excluded)
    everyone = np.arange(len(queries))
    ids, distances, is_proven = search.run(everyone, n_neighbors, torch.float16)
    pending = np.flatnonzero(~is_proven)
    if len(pending):
        found = search.run(pending, n_neighbors, torch.float64)
        ids[pending], distances[pending], is_proven[pending] = found
    return ids, distances, is_proven


class _Search:
    """A search of all items for some of the queries."""

    def __init__(self, device, items, queries, excluded):
        self.device, self.items = device, items
        self.queries, self.excluded = queries, excluded
        small = len(items) < 2**31
        self.integers = (np.int32, torch.int32) if small else (np.int64, torch.int64)

    def run(self, pending, n_neighbors, dtype):
        """Return ids, distances and proofs of the pending queries."""
        shape = len(pending), n_neighbors
        ids, sums = np.empty(shape, self.integers[0]), np.empty(shape)
        bounds = np.full(len(pending), np.inf)
        n_items, n_features = self.items.shape
        row_bytes = n_features * (self.items.itemsize + dtype.itemsize) + 8
        step = self.device.block_rows(row_bytes, n_items, share=ITEM_SHARE)
        for first in range(0, n_items, step):  # chunks that fit the device
            items = self.items[first : first + step]
            table = ProductTable(self.device, items, dtype, n_neighbors)

            def work(rows, table=table, first=first):
                return self._block(table, first, pending[rows], n_neighbors)

            n_block = self._block_rows(table, n_neighbors, len(pending))
            for rows, found in self.device.in_blocks(work, len(pending), n_block):
                new = [tensor.cpu().numpy() for tensor in found]
                if first:  # earlier chunks have the smaller ids
                    both = [ids[rows], new[0]], [sums[rows], new[1]]
                    near, far = (np.hstack(own) for own in both)
                    order = np.argsort(far, axis=1, kind="stable")[:, :n_neighbors]
                    new[:2] = (np.take_along_axis(own, order, 1) for own in (near, far))
                ids[rows], sums[rows] = new[:2]
                bounds[rows] = np.fmin(bounds[rows], new[2])
            del table, work  # before the next chunk takes its place
        distances = np.sqrt(sums, out=sums)
        return ids, distances, distances[:, -1] < bounds

    def _block_rows(self, table, n_neighbors, n_pending):
        """Return how many queries are searched at a time."""
        n_groups = len(table.items) // table.group
        n_near = (n_neighbors + PADDING) * table.group
        n_keys = n_groups if table.is_fused else len(table.items) * 2 + n_groups
        # Keys, their selection, and the candidates with their ids.
        n_bytes = (n_keys + 2 * n_groups) * table.offsets.itemsize + 48 * n_near
        n_bytes += 32 * table.rows.shape[1]
        n_rows = min(n_pending, LARGEST_BLOCK)
        return self.device.block_rows(n_bytes, n_rows, share=QUERY_SHARE)

    def _block(self, table, first, rows, n_neighbors):
        """Return ids, squared distances, and bounds of the dropped items."""
        own = self.device.put(self.excluded[rows]) - first
        queries = self._queries(table, rows)
        converted, norms, errors = table.convert(queries)
        minima = table.minima(converted)
        n_kept = min(n_neighbors + PADDING, minima.shape[1])
        least, groups = _least(minima, n_kept)
        bounds = torch.full_like(norms, torch.inf)
        if n_kept < minima.shape[1]:
            bounds = table.nearest_dropped(least[:, -1], norms, errors)
        del minima
        group = table.group
        sums = self.device.kernels.candidate_sums(queries, table.rows, groups, group)
        within = torch.arange(group, device=sums.device)
        members = (groups[:, :, None] * group + within).flatten(1)
        sums.masked_fill_(members == own[:, None], torch.inf)
        ids, sums = _smallest(sums, members, n_neighbors)
        missing = (0, n_neighbors - ids.shape[1])
        ids = torch.nn.functional.pad(ids, missing, value=-1)
        sums = torch.nn.functional.pad(sums, missing, value=torch.inf)
        return (ids + first).to(self.integers[1]), sums, bounds

    def _queries(self, table, rows):
        """Return some queries on the device, in the precision of the items."""
        is_run = len(rows) == rows[-1] - rows[0] + 1
        here = slice(rows[0], rows[-1] + 1) if is_run else rows
        if self.queries is self.items and len(table.rows) == len(self.items):
            return table.rows[here if is_run else self.device.put(rows)]
        return self.device.put(self.queries[here], table.rows.dtype)


class ProductTable:
    """Keys ``||x||^2 / 2 - q . x`` from products of converted rows."""

    def __init__(self, device, rows, dtype, n_neighbors):
        self.rows, self.dtype = device.put(rows), dtype
        self.group, n_groups = LARGEST_GROUP, MIN_GROUPS * (n_neighbors + PADDING)
        while self.group > 1 and len(rows) < self.group * n_groups:
            self.group //= 2
        rows = self.rows
        self.is_fused = device.is_fused and dtype == torch.float16
        self.kernels = device.kernels if self.is_fused else plain
        # Rounding grows with the norms, so rows are centred and scaled first. Dividing
        # by a power of two is exact, and keeps float16 from overflowing.
        self.centre = rows.mean(dim=0, dtype=torch.float64)
        above, below = rows.amax(0) - self.centre, self.centre - rows.amin(0)
        reach = float(torch.maximum(above, below).max())
        self.scale = 2.0 ** math.ceil(math.log2(reach)) if reach > 1e-300 else 1.0
        # Features that are 0 for all items, once centred, are 0 in every product.
        self.columns = torch.nonzero((above > 0) | (below > 0)).flatten()
        n_items, n_columns = len(rows), len(self.columns)
        n_padded = -(-n_items // self.group) * self.group
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        # Widths that matrix units take.
        narrow = (own for own in (16, 32, 64, 128) if n_columns <= own)
        width = next(narrow, -(-n_columns // 64) * 64)
        self.items = self.rows.new_zeros((n_padded, width), dtype=self.dtype)
        self.offsets = self.rows.new_full((n_padded,), torch.inf, dtype=wide)
        self.norm = self.error = 0.0
        for start in range(0, n_items, CONVERSION_BLOCK):
            stop = min(start + CONVERSION_BLOCK, n_items)
            converted, norms, errors = self.convert(self.rows[start:stop])
            self.items[start:stop] = converted
            self.offsets[start:stop] = norms.square() / 2
            self.norm = max(self.norm, float(norms.max()))
            self.error = max(self.error, float(errors.max()))

    def convert(self, rows):
        """Return converted rows, their norms, and the conversion errors."""
        centred = (rows.double() - self.centre) / self.scale
        converted = centred.to(self.dtype)
        norms = converted.double().norm(dim=1)
        errors = (centred - converted).norm(dim=1) + 2 * EPS64 * norms
        padding = self.items.shape[1] - len(self.columns)
        if len(self.columns) < centred.shape[1]:
            converted = converted[:, self.columns]
        if padding:
            converted = torch.nn.functional.pad(converted, (0, padding))
        return converted.contiguous(), norms, errors

    def minima(self, queries):
        """Return the smallest key of every group, for converted queries."""
        return self.kernels.group_minima(queries, self.items, self.offsets, self.group)

    def nearest_dropped(self, worst, norms, errors):
        """Return lower bounds of the distances of items whose keys are no less.

        NaN, from a query that overflowed, compares as not proven.
        """
        squared = 2 * (worst.double() - self._rounding(norms)) + norms.square()
        lowest = squared.clamp(min=0).sqrt() - errors - self.error
        n_terms = self.rows.shape[1] + 4
        return lowest * (self.scale * (1 - n_terms * EPS64))

    def _rounding(self, norms):
        """Return a bound of the rounding errors of keys.

        Twice the bound of the CPU, because matrix units truncate instead of rounding.
        """
        info = torch.finfo(self.offsets.dtype)
        share = 2 * (self.rows.shape[1] + 4) * info.eps
        return share * (norms + self.norm).square() + self.rows.shape[1] * info.tiny


def best_items(device, vectors, items, n_results, *, closed=None, barred=None):
    """Yield the positions and scores of the best items for blocks of queries."""
    dtype = torch.promote_types(
        *(torch.from_numpy(a[:1]).dtype for a in (vectors, items))
    )
    table = device.put(items, dtype)
    shut = None if closed is None else device.put(closed)

    def work(rows):
        keys = -device.put(vectors[rows], dtype) @ table.T
        if shut is not None:
            keys[:, shut] = torch.inf
        if barred is not None:
            own = barred[rows].tocoo()
            keys[tuple(device.put(index).long() for index in own.coords)] = torch.inf
        found, keys = _smallest_in_pieces(keys, n_results)
        return found.cpu().numpy(), (-keys).cpu().numpy()

    row_bytes = N_BLOCKS * dtype.itemsize * len(items)
    n_block = device.block_rows(row_bytes, len(vectors))
    for _, found in device.in_blocks(work, len(vectors), n_block):
        yield found


def _smallest_in_pieces(keys, n_kept):
    """Return places and values of the smallest entries of each row, ties by place."""
    places = torch.arange(keys.shape[1], device=keys.device).expand_as(keys)
    if keys.shape[1] < MIN_PIECES * n_kept * SCORE_PIECE:
        return _smallest(keys, places, n_kept)
    # One piece more than results, to see whether its minimum ties with the last.
    own = _in_best_pieces(keys, n_kept + 1, SCORE_PIECE)
    return _smallest(keys.gather(1, own), own, n_kept, whole=(keys, places))


def _least(minima, n_kept):
    """Return the smallest entries of each row in order, and their places."""
    if minima.shape[1] < MIN_PIECES * n_kept * PIECE:
        return minima.topk(n_kept, dim=1, largest=False)
    places = _in_best_pieces(minima, n_kept, PIECE)
    least, order = minima.gather(1, places).topk(n_kept, dim=1, largest=False)
    return least, places.gather(1, order)


def _in_best_pieces(values, n_pieces, size):
    """Return the places of the entries that lie in the pieces with the smallest minima.

    The k smallest entries lie in k of these, so that only they need be sorted through.
    """
    n_rows, n_columns = values.shape
    n_whole = n_columns // size * size
    pieces = values[:, :n_whole].unflatten(1, (-1, size)).amin(dim=2)
    chosen = pieces.topk(n_pieces, dim=1, largest=False, sorted=False).indices
    within = torch.arange(size, device=values.device)
    places = (chosen[:, :, None] * size + within).flatten(1)
    rest = torch.arange(n_whole, n_columns, device=values.device)
    return torch.cat([places, rest.expand(n_rows, -1)], dim=1)


def _smallest(values, ids, n_kept, whole=None):
    """Return the ids and values of the smallest entries in order, ties by id.

    Where the last one ties with an entry that is not kept, the `whole` rows decide.
    """
    n_taken = min(n_kept + 1, values.shape[1])
    least, places = values.topk(n_taken, dim=1, largest=False)
    chosen = ids.gather(1, places)
    if n_taken > n_kept:
        tied = torch.nonzero(least[:, -1] == least[:, -2]).flatten()
        least, chosen = least[:, :-1], chosen[:, :-1]
        if len(tied):
            # Which of equal entries `topk` takes is arbitrary, so all are sorted.
            rows = (part[tied] for part in whole or (values, ids))
            least[tied], chosen[tied] = (own[:, :n_kept] for own in _sorted(*rows))
    least, chosen = _sorted(least, chosen)
    return chosen, least


def _sorted(values, ids):
    """Return values in rising order with their ids, ties by id."""
    ids, order = ids.sort(dim=1)
    values, again = values.gather(1, order).sort(dim=1, stable=True)
    return values, ids.gather(1, again)

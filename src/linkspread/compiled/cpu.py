"""Compiled loops over plain arrays; rows are shared among the cores.

Sparse matrices arrive as their CSR arrays ``data, indices, indptr``. Each kernel
states its array equation and what it overwrites. Checks belong to the callers. A
product of a graph with a block waits for memory at every edge that leads far away,
though all its rows are known beforehand: asked for some edges ahead, they arrive in
time.
"""

import numpy as np
from llvmlite import ir
from numba import njit, prange, types
from numba.core import cgutils
from numba.extending import intrinsic

# Sums may be reordered for vector instructions; infinities and NaN keep their meaning.
FAST = {"reassoc", "contract", "nsz"}
# So many relevant items are counted against all others faster than rows are sorted.
FEW_RELEVANT = 256
# Columns of a table in bytes that have one step: a power of 2.
CODED = 64
# The largest code of a value in a byte, and what one code may stand for.
MOST_CODE = np.float32(127)
LEAST_STEP, MOST_STEP = np.float32(1e-30), np.float32(1e36)
# Edges ahead: measured for rows of 32 bytes to 3 kilobytes, all gain most near here.
AHEAD = 16
# Rows of a graph, which have some edges each.
ROWS_AHEAD = 4
LINE_BYTES = 64
# A block that fits the cache of one core is there anyway.
SMALL_BYTES = 1 << 20
# Columns whose best entries one core keeps at a time.
STRIPE = 4096


@intrinsic
def fetch(_, block, row, line):
    """Ask for a cache line from ``block[row]`` on; no error where there is none."""

    def generate(context, builder, signature, arguments):
        struct = context.make_array(signature.args[0])(context, builder, arguments[0])
        row, line = (
            context.cast(builder, value, kind, types.intp)
            for value, kind in zip(arguments[1:], signature.args[1:], strict=True)
        )
        # By bytes: the size of an entry would have to be looked up at every edge.
        start = builder.mul(row, cgutils.unpack_tuple(builder, struct.strides)[0])
        start = builder.add(start, builder.mul(line, line.type(LINE_BYTES)))
        place = builder.bitcast(struct.data, ir.IntType(8).as_pointer())
        place = builder.gep(place, [start])
        number = ir.IntType(32)
        takes = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
        instruction = builder.module.declare_intrinsic(
            "llvm.prefetch", [place.type], takes
        )
        # To be read, into the nearest cache, as data.
        builder.call(instruction, [place, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(block, row, line), generate


@njit
def lines_to_fetch(block):
    """Return how many cache lines of each row of a block are worth asking for."""
    if block.size * block.itemsize <= SMALL_BYTES:
        return 0
    return (block.shape[1] * block.itemsize + LINE_BYTES - 1) // LINE_BYTES


@njit(inline="always")
def add_row_product(data, indices, indptr, i, scale, block, n_lines, out):
    """Add ``scale * (S @ block)[i]`` to ``out``, with rows fetched some edges ahead."""
    last, end = len(indices) - 1, indptr[i + 1]
    # The row that is written is read and written once for four edges.
    fours = indptr[i] + (end - indptr[i]) // 4 * 4
    for k in range(indptr[i], fours, 4):
        if n_lines:
            for edge in range(k + AHEAD, k + AHEAD + 4):
                ahead = np.uint64(indices[min(edge, last)])
                for line in range(n_lines):
                    fetch(block, ahead, line)
        a, b = scale * data[k], scale * data[k + 1]
        c, d = scale * data[k + 2], scale * data[k + 3]
        # Unsigned, so that no sign is tested.
        p, q = np.uint64(indices[k]), np.uint64(indices[k + 1])
        r, s = np.uint64(indices[k + 2]), np.uint64(indices[k + 3])
        for j in range(block.shape[1]):
            sums = a * block[p, j] + b * block[q, j] + c * block[r, j] + d * block[s, j]
            out[i, j] += sums
    for k in range(fours, end):
        weight, p = scale * data[k], np.uint64(indices[k])
        for j in range(block.shape[1]):
            out[i, j] += weight * block[p, j]


@njit(parallel=True, cache=True, fastmath=FAST)
def chebyshev_step(data, indices, indptr, scale, current, previous, following):
    """Write ``following = scale * S @ current - previous``.

    S may be some rows of a graph, which `following` and `previous` then have too.
    """
    n_lines = lines_to_fetch(current)
    for i in prange(following.shape[0]):
        for c in range(current.shape[1]):
            following[i, c] = -previous[i, c]
        add_row_product(data, indices, indptr, i, scale, current, n_lines, following)


@njit(parallel=True, cache=True, fastmath=FAST)
def add_products(left, right, rows, columns, totals):
    """Add ``left[rows[k]] * right[columns[k]]`` to ``totals[k]`` for every k."""
    for k in prange(len(rows)):
        one, other, total = left[rows[k]], right[columns[k]], totals[k]
        for c in range(len(total)):
            total[c] += one[c] * other[c]


@njit(parallel=True, cache=True, fastmath=FAST)
def add_terms(terms, coefficients, totals):
    """Add ``sum_t coefficients[t, r] * terms[t]`` to ``totals[:, r]`` for every r."""
    n_terms, n_items, n_columns = terms.shape
    for i in prange(n_items):
        for r in range(coefficients.shape[1]):
            for t in range(n_terms):
                weight = coefficients[t, r]
                for c in range(n_columns):
                    totals[i, r, c] += weight * terms[t, i, c]


@njit(parallel=True, cache=True, fastmath=FAST)
def clenshaw_step(
    data, indices, indptr, scale, current, previous, coefficients, sources
):
    """Advance Clenshaw's recurrence for ``sum_i T_i(S) (sum_r c_ri B_r)``.

    Write ``previous = scale * S @ current - previous
    + sum_r coefficients[r] * sources[:, r]``. S may be some rows of a graph, which
    all but `current` then have too.
    """
    n_columns, n_lines = current.shape[1], lines_to_fetch(current)
    for i in prange(previous.shape[0]):
        for c in range(n_columns):
            previous[i, c] = -previous[i, c]
        add_row_product(data, indices, indptr, i, scale, current, n_lines, previous)
        for r in range(coefficients.shape[0]):
            weight = coefficients[r]
            for c in range(n_columns):
                previous[i, c] += weight * sources[i, r, c]


@njit(parallel=True, cache=True, fastmath=FAST)
def sampled_products(left, right, rows, columns):
    """Return ``left[rows[k]] @ right[columns[k]]`` for every k."""
    out = np.empty(len(rows), left.dtype)
    for k in prange(len(rows)):
        one, other = left[rows[k]], right[columns[k]]
        total = left.dtype.type(0)
        for c in range(left.shape[1]):
            total += one[c] * other[c]
        out[k] = total
    return out


@njit(parallel=True, cache=True)
def largest_means(scores, n_largest, width, out):
    """Write the mean of the largest scores of column j into ``out[j]``.

    Columns are read `width` at a time.
    """
    n_rows, n_columns = scores.shape
    for b in prange((n_columns + width - 1) // width):
        first, last = b * width, min((b + 1) * width, n_columns)
        kept = np.full((last - first, n_largest), -np.inf, scores.dtype)
        least = np.full(last - first, -np.inf, scores.dtype)
        for i in range(n_rows):
            row = scores[i, first:last]
            for j in range(last - first):
                if row[j] > least[j]:
                    # Ascending: what is smaller moves down, and the smallest out.
                    own, place = kept[j], 0
                    while place + 1 < n_largest and own[place + 1] < row[j]:
                        own[place] = own[place + 1]
                        place += 1
                    own[place] = row[j]
                    least[j] = own[0]
        for j in range(last - first):
            out[first + j] = kept[j].mean()


@njit(parallel=True, cache=True, fastmath=FAST)
def encode_rows(table, signs, rounding, codes, steps, slack):
    """Write every row, turned block by block, as the nearest ``codes * steps[i, b]``.

    A block of columns is multiplied by `signs` and by the Hadamard matrix, so that no
    column has much more than the others. ``slack[i]`` is the largest distance of a
    block from its codes, in steps, with `rounding` times its length.
    """
    for i in prange(table.shape[0]):
        turned = np.empty(CODED, np.float32)
        farthest = np.float32(0)
        for b in range(steps.shape[1]):
            own = table[i, b * CODED : (b + 1) * CODED]
            turned[:] = 0
            for c in range(len(own)):
                turned[c] = np.float32(own[c]) * signs[c]
            half = CODED // 2
            while half:
                for start in range(0, CODED, 2 * half):
                    left = turned[start : start + half]
                    right = turned[start + half : start + 2 * half]
                    for c in range(half):
                        one, other = left[c], right[c]
                        left[c], right[c] = one + other, one - other
                half //= 2
            largest = np.float32(0)
            for c in range(CODED):
                largest = max(largest, abs(turned[c]))
            step = min(max(largest / MOST_CODE, LEAST_STEP), MOST_STEP)
            inverse = np.float32(1) / step
            code = codes[i, b * CODED : (b + 1) * CODED]
            far, size = np.float32(0), np.float32(0)
            for c in range(CODED):
                value = turned[c] * inverse
                nearest = min(max(np.rint(value), -MOST_CODE), MOST_CODE)
                code[c] = np.int8(nearest)
                far += (value - nearest) ** 2
                size += value * value
            steps[i, b] = step
            farthest = max(farthest, np.sqrt(far) + rounding * np.sqrt(size))
        slack[i] = farthest


@njit(nogil=True, cache=True)
def grow_order(indices, indptr, needed, span, order):
    """Write into ``order`` all nodes of a graph, neighbours near each other.

    A breadth-first walk that takes in a node once ``needed`` of its neighbours are
    among the ``span`` nodes left since counting began anew: single edges that lead far
    away are not followed, as they would soon scatter the walk over the whole graph.
    """
    n_nodes = len(order)
    # Which count a node is in, times `needed`, plus the count; -1 once taken in.
    state = np.zeros(n_nodes, order.dtype)
    n_left = n_found = base = first = 0
    until = span
    while n_left < n_nodes:
        starts_anew = n_left == n_found
        if starts_anew:
            while state[first] < 0:
                first += 1
            order[n_found], state[first] = first, -1
            n_found += 1
        if starts_anew or n_left == until:
            base += needed
            until = n_left + span
        node = order[n_left]
        n_left += 1
        for k in range(indptr[node], indptr[node + 1]):
            j = indices[k]
            if state[j] < 0:
                continue
            count = max(state[j], base) + 1
            if starts_anew or count == base + needed:
                order[n_found], state[j] = j, -1
                n_found += 1
            else:
                state[j] = count


@njit(parallel=True, cache=True)
def renumber_rows(
    data, indices, indptr, order, places, new_data, new_indices, new_indptr
):
    """Write row ``order[i]`` as row i, its column j as ``places[j]``, sorted."""
    last = len(order) - 1
    for i in prange(len(order)):
        fetch(indptr, order[min(i + 2 * ROWS_AHEAD, last)], 0)
        ahead = indptr[order[min(i + ROWS_AHEAD, last)]]
        for line in range(2):
            fetch(indices, ahead, line)
            fetch(data, ahead, line)
        first = new_indptr[i]
        shift = first - indptr[order[i]]
        for k in range(indptr[order[i]], indptr[order[i] + 1]):
            column, value = places[indices[k]], data[k]
            place = k + shift
            while place > first and new_indices[place - 1] > column:
                new_indices[place] = new_indices[place - 1]
                new_data[place] = new_data[place - 1]
                place -= 1
            new_indices[place], new_data[place] = column, value


# The search kernels below run on one core and release the interpreter lock: their
# callers give each thread its own block of queries, so that the BLAS product and the
# selection of one tile share a cache and no two thread pools fight for the cores.


@njit(nogil=True, cache=True, fastmath=FAST)
def score_bounds(
    codes, steps, coefficients, norms, blocks, constants, scaled, scales, bounds
):
    """Add what parts of scores are at least, and at most, to both rows of `bounds`.

    Part k is ``scales[scaled[k]] * (sum_b steps[:, b] * codes_b @ coefficients[k]_b +
    constants[k, 0])``, with no scale where ``scaled[k]`` is -1, and no coefficients but
    in ``blocks[k]``, from the first to before the second. It is off by ``steps @
    norms[k] + constants[k, 1]`` at most, times the size of the scale.
    """
    for i in range(codes.shape[0]):
        for k in range(len(coefficients)):
            total, error = constants[k, 0], constants[k, 1]
            for b in range(blocks[k, 0], blocks[k, 1]):
                own = codes[i, b * CODED : (b + 1) * CODED]
                other = coefficients[k, b * CODED : (b + 1) * CODED]
                product = np.float32(0)
                for c in range(CODED):
                    product += np.float32(own[c]) * other[c]
                total += steps[i, b] * product
                error += steps[i, b] * norms[k, b]
            if scaled[k] >= 0:
                total *= scales[scaled[k], i]
                error *= abs(scales[scaled[k], i])
            bounds[0, i] += total - error
            bounds[1, i] += total + error


@njit(nogil=True, cache=True)
def keep_nearest(tile, offsets, first, excluded, keys, ids):
    """Keep in ``keys, ids`` the smallest of ``offsets[j] + tile[i, j]`` met so far.

    Item ``first + j`` is skipped in row i when it equals ``excluded[i]``. Each row of
    ``keys, ids`` is overwritten as a max-heap ordered by (key, id), root first; fill
    them with infinity and -1 before the first tile, and give the tiles in order.
    """
    n_columns = tile.shape[1]
    for i in range(tile.shape[0]):
        row, key, index = tile[i], keys[i], ids[i]
        hidden = excluded[i] - first
        for start in range(0, n_columns, 64):
            stop = min(start + 64, n_columns)
            # Counting hits is a vector loop; most groups of 64 have none.
            n_hits = 0
            for j in range(start, stop):
                n_hits += offsets[j] + row[j] < key[0]
            if n_hits == 0:
                continue
            for j in range(start, stop):
                value = offsets[j] + row[j]
                if value < key[0] and j != hidden:
                    _replace_root(key, index, value, first + j)


@njit(nogil=True, parallel=True, cache=True)
def keep_largest(tile, first, offsets, row_kept, column_kept):
    """Keep the largest of ``offsets[0][i] + offsets[1][j] + tile[i, j]``.

    ``row_kept`` and ``column_kept`` are keys and ids: for row ``first + i``, and for
    each column, max-heaps of minus the values met so far, root first; fill them with
    infinity and -1 before the first tile. NaN is never kept.
    """
    row_keys, row_ids = row_kept
    column_keys, column_ids = column_kept
    n_rows, n_columns = tile.shape
    for i in prange(n_rows):
        key, index, own = row_keys[first + i], row_ids[first + i], offsets[0][first + i]
        for start in range(0, n_columns, 64):
            stop = min(start + 64, n_columns)
            # Counting hits is a vector loop; most groups of 64 have none.
            n_hits = 0
            for j in range(start, stop):
                n_hits += -(own + offsets[1][j] + tile[i, j]) < key[0]
            if n_hits:
                for j in range(start, stop):
                    value = -(own + offsets[1][j] + tile[i, j])
                    if value < key[0]:
                        _replace_root(key, index, value, j)
    # Columns are shared among the cores in stripes, whose roots stay in the cache.
    n_stripes = (n_columns + STRIPE - 1) // STRIPE
    for stripe in prange(n_stripes):
        begin, end = stripe * STRIPE, min((stripe + 1) * STRIPE, n_columns)
        roots = np.empty(end - begin, dtype=column_keys.dtype)
        for j in range(begin, end):
            roots[j - begin] = column_keys[j, 0]
        for i in range(n_rows):
            own = offsets[0][first + i]
            for start in range(begin, end, 64):
                stop = min(start + 64, end)
                n_hits = 0
                for j in range(start, stop):
                    value = -(own + offsets[1][j] + tile[i, j])
                    n_hits += value < roots[j - begin]
                if n_hits:
                    for j in range(start, stop):
                        value = -(own + offsets[1][j] + tile[i, j])
                        if value < roots[j - begin]:
                            key, index = column_keys[j], column_ids[j]
                            _replace_root(key, index, value, first + i)
                            roots[j - begin] = column_keys[j, 0]


@njit(nogil=True, cache=True)
def keep_largest_stored(data, indices, indptr, first, offsets, row_kept, column_kept):
    """Keep the largest stored entries of a sparse tile, as `keep_largest`."""
    row_keys, row_ids = row_kept
    column_keys, column_ids = column_kept
    for i in range(indptr.shape[0] - 1):
        key, index, own = row_keys[first + i], row_ids[first + i], offsets[0][first + i]
        for place in range(indptr[i], indptr[i + 1]):
            j = indices[place]
            value = -(own + offsets[1][j] + data[place])
            if value < key[0]:
                _replace_root(key, index, value, j)
            if value < column_keys[j, 0]:
                _replace_root(column_keys[j], column_ids[j], value, first + i)


@njit(nogil=True, cache=True)
def _replace_root(key, index, value, item):
    """Replace the root of the heap ``key, index`` and restore its order."""
    n_kept, place = key.shape[0], 0
    while 2 * place + 1 < n_kept:
        child = 2 * place + 1
        other = child + 1
        if other < n_kept and (
            key[other] > key[child]
            or (key[other] == key[child] and index[other] > index[child])
        ):
            child = other
        if key[child] < value or (key[child] == value and index[child] < item):
            break
        key[place], index[place] = key[child], index[child]
        place = child
    key[place], index[place] = value, item


@njit(nogil=True, cache=True, fastmath=FAST)
def difference_sums(Q, X, ids, relative, out):
    """Write ``sum_f (q - x)^2`` of row i and item ``ids[i, j]`` into ``out[i, j]``.

    With ``relative`` each term is divided by q + x, and 0 / 0 counts as 0. Negative
    ids give infinity. Sums are taken in float64 whatever the rows are stored in.
    """
    for i in range(ids.shape[0]):
        for j in range(ids.shape[1]):
            if ids[i, j] < 0:
                out[i, j] = np.inf
            elif relative:
                out[i, j] = _relative_sum(Q[i], X[ids[i, j]])
            else:
                out[i, j] = _square_sum(Q[i], X[ids[i, j]])


@njit(nogil=True, cache=True, fastmath=FAST)
def _square_sum(q, x):
    """Return ``sum (q - x)^2``."""
    total = 0.0
    for f in range(q.shape[0]):
        difference = np.float64(q[f]) - np.float64(x[f])
        total += difference * difference
    return total


@njit(nogil=True, cache=True, fastmath=FAST, error_model="numpy")
def _relative_sum(q, x):
    """Return ``sum (q - x)^2 / (q + x)``, where 0 / 0 = 0."""
    total = 0.0
    for f in range(q.shape[0]):
        difference = np.float64(q[f]) - np.float64(x[f])
        size = np.float64(q[f]) + np.float64(x[f])
        # A divisor of 1 for the empty terms keeps the loop free of branches.
        total += difference * difference / (size if size > 0.0 else 1.0)
    return total


@njit(nogil=True, cache=True)
def sparse_products(q_data, q_indices, q_indptr, data, indices, indptr, out):
    """Write ``-Q @ X.T`` into ``out``; Q and the *transpose* of X are CSR."""
    out[:] = 0.0
    for i in range(out.shape[0]):
        row = out[i]
        for entry in range(q_indptr[i], q_indptr[i + 1]):
            feature, value = q_indices[entry], q_data[entry]
            for k in range(indptr[feature], indptr[feature + 1]):
                row[indices[k]] -= value * data[k]


@njit(nogil=True, cache=True, error_model="numpy")
def sparse_difference_sums(
    q_data, q_indices, q_indptr, data, indices, indptr, ids, relative, out
):
    """Write what `difference_sums` writes; Q and X are CSR with sorted indices."""
    end = np.iinfo(np.int64).max
    for i in range(ids.shape[0]):
        for j in range(ids.shape[1]):
            item = ids[i, j]
            if item < 0:
                out[i, j] = np.inf
                continue
            a, b = q_indptr[i], indptr[item]
            total = 0.0
            while a < q_indptr[i + 1] or b < indptr[item + 1]:
                left = np.int64(q_indices[a]) if a < q_indptr[i + 1] else end
                right = np.int64(indices[b]) if b < indptr[item + 1] else end
                q = q_data[a] if left <= right else 0.0
                x = data[b] if right <= left else 0.0
                a += left <= right
                b += right <= left
                size = q + x if relative else 1.0
                total += (q - x) * (q - x) / (size if size != 0.0 else 1.0)
            out[i, j] = total


@njit(parallel=True, cache=True)
def average_precisions(scores, relevant):
    """Return the average precision of each row, NaN where nothing is relevant.

    Equal scores rank by position. A few relevant items are each compared with the whole
    row, which vector instructions do; for many, the row is sorted.
    """
    values = np.full(scores.shape[0], np.nan)
    for i in prange(scores.shape[0]):
        row, own, total = scores[i], np.flatnonzero(relevant[i]), 0.0
        if 0 < len(own) <= FEW_RELEVANT:
            own = own[np.argsort(-row[own], kind="mergesort")]
            for r in range(len(own)):
                place, rank = own[r], 1
                for j in range(place):
                    rank += row[j] >= row[place]
                for j in range(place + 1, len(row)):
                    rank += row[j] > row[place]
                total += (r + 1) / rank
        elif len(own):
            order, n_met = np.argsort(-row, kind="mergesort"), 0
            for rank in range(len(row)):
                if relevant[i, order[rank]]:
                    n_met += 1
                    total += n_met / (rank + 1)
        if len(own):
            values[i] = total / len(own)
    return values

# mypy: disable-error-code="no-untyped-def, misc"
"""The compiled simplex method of Barrodale and Roberts, with long steps.

The m residuals and the k coefficients of ``|w|_1 + |b - A w|_1`` are m + k variables
of the same kind: each costs its absolute value. At a vertex k of them are zero, the
*idle* ones z, and the m *active* ones are ``v = T z + t``. The tableau holds T and,
beside it, t for the exact target and t for a slightly moved one that has no ties. One
line below stands the cost, ``sum_i sign(v_i) (T_i, t_i)``: the vertex is optimal when
no idle variable has a cost beyond [-1, 1].
"""

from typing import NamedTuple

import numpy as np
from numba import njit

# All in one file: a cached function is not compiled again when another file changes.
FAST = {"reassoc", "contract", "nsz"}
# A cost this little beyond 1 counts as optimal, and a pivot this small as none.
COST_TOLERANCE = 1e-9
SMALLEST_PIVOT = 1e-10
# Beyond this error the tableau has lost precision and is built again, so many times.
LARGEST_ERROR = 1e-9
MAX_REBUILDS = 3
# Rounding of residuals and coefficients; targets are at most 1.
ROUNDING = 1e-14


class Vertex(NamedTuple):
    """The tableau of a vertex, and room to compute the next one."""

    tableau: np.ndarray  # (height + 1, width), the cost in the last line
    signs: np.ndarray  # (m,), of the active variables
    weights: np.ndarray  # (width,), 1 + the squared length of each column
    active: np.ndarray  # (m,), numbers of variables; residual i has number k + i
    idle: np.ndarray  # (k,)
    row: np.ndarray  # (width,)
    slopes: np.ndarray  # (m,)
    times: np.ndarray  # (m,)
    order: np.ndarray  # (m,)


@njit(nogil=True, cache=True, fastmath=FAST)
def solve_batch(A, exact, moved, max_pivots, coefficients, duals, n_pivots):
    """Write minimisers of ``|w|_1 + |exact[i] - A[i] @ w|_1`` and dual solutions.

    The ``moved`` targets lead past ties to a vertex next to the solution. Every row of
    ``coefficients``, ``duals`` and ``n_pivots`` is overwritten.
    """
    n_rows, m, k = A.shape
    # Beyond k columns are two targets; lines and columns are filled up to fours.
    height, width = (m + 3) // 4 * 4, (k + 5) // 4 * 4
    vertex = Vertex(
        np.zeros((height + 1, width)),
        np.empty(m),
        np.empty(width),
        np.empty(m, np.int64),
        np.empty(k, np.int64),
        np.empty(width),
        np.empty(m),
        np.empty(m),
        np.empty(m, np.int64),
    )
    wanted = np.empty(m + k)
    for r in range(n_rows):
        _start(vertex, A[r], exact[r], moved[r])
        n_pivots[r] = 0
        for _ in range(MAX_REBUILDS + 1):
            n_pivots[r] += _descend(vertex, max_pivots - n_pivots[r])
            error = _read(vertex, A[r], exact[r], coefficients[r], duals[r])
            if error <= LARGEST_ERROR or n_pivots[r] >= max_pivots:
                break
            wanted[:] = 0.0
            for i in range(m):
                wanted[vertex.active[i]] = vertex.signs[i]
            _start(vertex, A[r], exact[r], exact[r])
            _return(vertex, wanted)


@njit(nogil=True, cache=True, fastmath=FAST)
def _start(vertex, A, exact, moved):
    """Write the vertex w = 0, where the residuals are the target."""
    m, k = A.shape
    tableau, weights = vertex.tableau, vertex.weights
    weights[:] = 1.0
    for i in range(m):
        for j in range(k):
            tableau[i, j] = -A[i, j]
            weights[j] += A[i, j] * A[i, j]
        tableau[i, k] = exact[i]
        tableau[i, k + 1] = moved[i]
        vertex.signs[i] = 1.0 if moved[i] > 0.0 else -1.0
        vertex.active[i] = k + i
    for j in range(k):
        vertex.idle[j] = j
    _sum_cost(vertex)


@njit(nogil=True, cache=True, fastmath=FAST)
def _sum_cost(vertex):
    """Write the last line of the tableau: ``signs @ tableau[:m]``."""
    cost = vertex.tableau[-1]
    cost[:] = 0.0
    for i in range(vertex.signs.shape[0]):
        _add(vertex.signs[i], vertex.tableau[i], cost)


@njit(nogil=True, cache=True, fastmath=FAST)
def _add(factor, line, out):
    """Add ``factor * line`` to ``out``."""
    for j in range(out.shape[0]):
        out[j] += factor * line[j]


@njit(nogil=True, cache=True, fastmath=FAST)
def _descend(vertex, max_pivots):
    """Walk from vertex to vertex until none is lower; return the number of steps.

    The last steps are those of the exact target.
    """
    n_pivots, settled = 0, -1
    while n_pivots < max_pivots:
        j = _steepest(vertex)
        if j >= 0:
            if not _step(vertex, j):
                break
            n_pivots += 1
        elif settled == n_pivots:
            break
        else:
            _settle(vertex)
            settled = n_pivots
    return n_pivots


@njit(nogil=True, cache=True, fastmath=FAST)
def _settle(vertex):
    """Take the exact target for the moved one, and sum the cost that it gives."""
    tableau, signs, k = vertex.tableau, vertex.signs, vertex.idle.shape[0]
    for i in range(signs.shape[0]):
        tableau[i, k + 1] = tableau[i, k]
        # What is zero but for rounding keeps its sign, which goes on breaking the tie.
        if abs(tableau[i, k]) > ROUNDING:
            signs[i] = 1.0 if tableau[i, k] > 0.0 else -1.0
    _sum_cost(vertex)


@njit(nogil=True, cache=True, fastmath=FAST)
def _steepest(vertex):
    """Return the idle variable of steepest descent, or -1 at an optimum."""
    cost, weights = vertex.tableau[-1], vertex.weights
    best, chosen = 0.0, -1
    for j in range(vertex.idle.shape[0]):
        excess = abs(cost[j]) - 1.0
        if excess > COST_TOLERANCE and excess * excess > best * weights[j]:
            best = excess * excess / weights[j]
            chosen = j
    return chosen


@njit(nogil=True, cache=True, fastmath=FAST)
def _step(vertex, j):
    """Move idle variable j as far as the objective falls; tell whether it stopped."""
    tableau, signs, order = vertex.tableau, vertex.signs, vertex.order
    cost = tableau[-1]
    direction = -1.0 if cost[j] > 0.0 else 1.0
    n_passed = _longest_step(vertex, j, direction)
    if n_passed < 0:
        return False
    for passed in order[:n_passed]:
        signs[passed] = -signs[passed]
        _add(2.0 * signs[passed], tableau[passed], cost)
    i = order[n_passed]
    _add(-signs[i], tableau[i], cost)
    _exchange(vertex, i, j)
    signs[i] = direction
    _add(direction, tableau[i], cost)
    return True


@njit(nogil=True, cache=True, fastmath=FAST)
def _longest_step(vertex, j, direction):
    """Find how many active variables change sign while the objective still falls.

    Write into ``vertex.order`` the variables passed, then the one that stops. Return
    the number passed, or -1 when nothing stops the step.
    """
    tableau, signs = vertex.tableau, vertex.signs
    slopes, times, order = vertex.slopes, vertex.times, vertex.order
    moved = vertex.idle.shape[0] + 1
    slope = 1.0 - abs(tableau[-1, j])
    n_met = 0
    for i in range(signs.shape[0]):
        speed = -signs[i] * direction * tableau[i, j]
        if speed > SMALLEST_PIVOT:
            slopes[i] = 2.0 * speed
            times[n_met] = max(signs[i] * tableau[i, moved], 0.0) / speed
            order[n_met] = i
            n_met += 1
    # Few variables are passed, so taking the next nearest beats sorting.
    for n_passed in range(n_met):
        nearest, soonest = n_passed, times[n_passed]
        for place in range(n_passed + 1, n_met):
            if times[place] < soonest:
                nearest, soonest = place, times[place]
        order[n_passed], order[nearest] = order[nearest], order[n_passed]
        times[nearest] = times[n_passed]
        slope += slopes[order[n_passed]]
        if slope >= 0.0:
            return n_passed
    return -1


@njit(nogil=True, cache=True, fastmath=FAST)
def _exchange(vertex, i, j):
    """Make active variable i idle and idle variable j active.

    Overwrites the tableau, cost included, and the weights.
    """
    tableau, row = vertex.tableau, vertex.row
    inverse = 1.0 / tableau[i, j]
    for c in range(row.shape[0]):
        row[c] = -tableau[i, c] * inverse
        tableau[i, c] = 0.0
    row[j] = inverse
    tableau[i, j] = 1.0  # so that line i becomes the row, as the others gain from it
    _add_to_lines(tableau, j, row, vertex.weights)
    factor = tableau[-1, j]
    tableau[-1, j] = 0.0
    _add(factor, row, tableau[-1])
    vertex.active[i], vertex.idle[j] = vertex.idle[j], vertex.active[i]


@njit(nogil=True, cache=True, fastmath=FAST)
def _add_to_lines(tableau, j, row, weights):
    """Turn entry j of every line but the last into ``entry * row``; weigh columns.

    Nearly all time is spent here. Four lines at a time, and no slices of the tableau,
    whose owners would be counted: a quarter faster.
    """
    weights[:] = 1.0
    for i in range(0, tableau.shape[0] - 1, 4):
        a, b = tableau[i, j], tableau[i + 1, j]
        c, d = tableau[i + 2, j], tableau[i + 3, j]
        for line in range(i, i + 4):
            tableau[line, j] = 0.0
        for place in range(row.shape[0]):
            new_a = tableau[i, place] + a * row[place]
            new_b = tableau[i + 1, place] + b * row[place]
            new_c = tableau[i + 2, place] + c * row[place]
            new_d = tableau[i + 3, place] + d * row[place]
            tableau[i, place] = new_a
            tableau[i + 1, place] = new_b
            tableau[i + 2, place] = new_c
            tableau[i + 3, place] = new_d
            weights[place] += new_a**2 + new_b**2 + new_c**2 + new_d**2


@njit(nogil=True, cache=True, fastmath=FAST)
def _read(vertex, A, exact, coefficients, dual):
    """Write the coefficients of the exact target and the dual; return their error.

    That is the duality gap plus the violation of the dual.
    """
    m, k = A.shape
    coefficients[:] = 0.0
    for i in range(m):
        variable, value = vertex.active[i], vertex.tableau[i, k]
        if variable >= k:
            dual[variable - k] = vertex.signs[i]
        elif abs(value) > ROUNDING:
            coefficients[variable] = value
    for j in range(k):
        if vertex.idle[j] >= k:
            dual[vertex.idle[j] - k] = -vertex.tableau[-1, j]
    products = vertex.row[:k]
    products[:] = 0.0
    gap, violation = 0.0, 0.0
    for i in range(m):
        _add(dual[i], A[i], products)
        residual = exact[i]
        for j in range(k):
            residual -= A[i, j] * coefficients[j]
        gap += abs(residual) - dual[i] * exact[i]
    for j in range(k):
        gap += abs(coefficients[j])
        violation = max(violation, abs(products[j]) - 1.0)
    return abs(gap) + violation


@njit(nogil=True, cache=True, fastmath=FAST)
def _return(vertex, wanted):
    """Go from w = 0 to the vertex whose active variables have a sign in ``wanted``.

    By the largest pivots: the precision that small ones had cost is won back.
    """
    while True:
        largest, leaving, entering = SMALLEST_PIVOT, -1, -1
        for i in range(vertex.active.shape[0]):
            if wanted[vertex.active[i]] != 0.0:
                continue
            for j in range(vertex.idle.shape[0]):
                size = abs(vertex.tableau[i, j])
                if size > largest and wanted[vertex.idle[j]] != 0.0:
                    largest, leaving, entering = size, i, j
        if leaving < 0:
            break
        _exchange(vertex, leaving, entering)
    for i in range(vertex.signs.shape[0]):
        sign = wanted[vertex.active[i]]
        vertex.signs[i] = sign if sign != 0.0 else 1.0
    _settle(vertex)

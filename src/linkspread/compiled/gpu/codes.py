"""Sparse codes of many neighbourhoods at once, by an interior-point method.

``min_w |w|_1 + |b - A w|_1`` is a regression on the rows of ``D = [I; A]`` with the
targets ``t = [0; b]``. With positive and negative parts ``u - v = t - D w`` and duals d
in [-1, 1], ``D'd = 0``, each Newton step of Frisch and Mehrotra needs one k x k
Cholesky factorisation per problem. The last point is moved to the nearest vertex, which
has exact zeros, unless that is worse.
"""

import torch

MAX_STEPS = 40
# How far towards the boundary a step goes.
STEP_SHARE = 0.9995
# Share of the largest coefficient below which others count as 0.
VANISHING = 1e-7
# A batch is packed again when this share of its problems is left.
LEFT_SHARE = 0.6
# Share of the squared norms below which their difference has lost digits.
CANCELLED = 1e-5
PAIRS_AT_A_TIME = 1 << 20
# The similarities of the metrics, as in `linkspread.graphs.distances`.
SIMILARITIES = {
    "cosine": lambda d: (1 - d.square() / 2).clamp(min=0),
    "euclidean": lambda d: 1 / (1 + d),
    "hellinger": lambda d: (1 - d.square()).clamp(min=0),
}


def distances_within(queries, items):
    """Return all distances between items (n, k, f) of each neighbourhood, in float64.

    They come from products, or from differences where those cancel. Duplicates are at
    distance 0 exactly.
    """
    queries, items = queries.double(), items.double()
    # Relative to one of them, neighbours have norms similar to their distances.
    q, x = queries - items[:, :1], items - items[:, :1]
    sizes = q.square().sum(2)[:, :, None] + x.square().sum(2)[:, None, :]
    squares = torch.baddbmm(sizes, q, x.mT, alpha=-2)
    own = (queries - items).square().sum(2)
    squares.diagonal(dim1=1, dim2=2).copy_(own)
    cancelled = squares < CANCELLED * sizes
    cancelled.diagonal(dim1=1, dim2=2).fill_(False)
    n, i, j = torch.nonzero(cancelled, as_tuple=True)
    for part in torch.arange(len(n), device=n.device).split(PAIRS_AT_A_TIME):
        apart = queries[n[part], i[part]] - items[n[part], j[part]]
        squares[n[part], i[part], j[part]] = apart.square().sum(1)
    return squares.sqrt_()


def affinities(distances, widths, kernel, metric):
    """Return the affinities (n, k, k) that belong to distances and widths (n, k)."""
    if kernel == "similarity":
        return SIMILARITIES[metric](distances)
    exponents = (distances / widths[:, :, None]) * (distances / widths[:, None, :])
    return exponents.neg_().exp_()


def solve_codes(A, targets, tol):
    """Return the sparse codes of a batch of targets, and their relative gaps."""
    coefficients = targets.new_zeros((len(A), A.shape[2]))
    gaps = torch.where(targets.any(dim=1), torch.inf, 0.0).to(targets.dtype)
    pending, n_steps = torch.nonzero(gaps > 0).flatten(), 0
    if not len(pending):
        return coefficients, gaps, 0
    # Codes scale with their targets, so targets are scaled to about 1 by powers of two.
    sizes = torch.exp2(torch.ceil(torch.log2(targets[pending].abs().amax(1))))[:, None]
    own = A if len(pending) == len(A) else A[pending]
    points = _Points(own, targets[pending] / sizes)
    while len(pending):
        points.step()
        n_steps += 1
        left = points.gaps() > tol
        if n_steps == MAX_STEPS:
            left[:] = False
        # Reading a number waits for the device, so the first steps are not checked.
        elif n_steps < 8 or float(left.double().mean()) > LEFT_SHARE:
            continue
        done = ~left
        found = points.answers(done, sizes, tol)
        coefficients[pending[done]], gaps[pending[done]] = found
        pending, sizes, points = pending[left], sizes[left], points.part(left)
    return coefficients, gaps, n_steps


class _Points:
    """The interior points of a batch of problems."""

    def __init__(self, A, targets):
        self.A, self.targets = A, targets
        n, _, k = A.shape
        self.t = torch.cat([targets.new_zeros((n, k)), targets], dim=1)
        # Least squares is a good enough start, and d = 0 satisfies D'd = 0.
        eye = torch.eye(k, dtype=A.dtype, device=A.device).expand(n, -1, -1)
        factor = torch.linalg.cholesky_ex(torch.baddbmm(eye, A.mT, A)).L
        self.w = torch.cholesky_solve(self._back(self.t)[:, :, None], factor)[:, :, 0]
        residual = self.t - self._rows(self.w)
        slack = 0.1 * residual.abs().amax(dim=1, keepdim=True).clamp(min=1e-3)
        self.u, self.v = residual.clamp(min=0) + slack, (-residual).clamp(min=0) + slack
        self.d = torch.zeros_like(self.t)

    def part(self, chosen):
        """Return some of the points."""
        some = object.__new__(_Points)
        for name, value in vars(self).items():
            setattr(some, name, value[chosen])
        return some

    def step(self):
        """Move all points, along a predicted and then a corrected direction."""
        s, r = 1 - self.d, 1 + self.d  # room above and below the duals
        u, v = self.u, self.v
        weights = 1 / (u / s + v / r)
        k = self.w.shape[1]
        scaled = self.A * weights[:, k:, None]
        normal = torch.baddbmm(torch.diag_embed(weights[:, :k]), self.A.mT, scaled)
        factor = torch.linalg.cholesky_ex(normal).L
        residual = self.t - self._rows(self.w)
        off = self._back(self.d)  # 0, but for rounding

        def direction(shift):
            aim = weights * (residual - shift)
            w = torch.cholesky_solve((self._back(aim) + off)[:, :, None], factor)
            w = w[:, :, 0]
            return w, aim - weights * self._rows(w)

        w, d = direction(0.0)
        du, dv = -u + (u / s) * d, -v - (v / r) * d
        primal, dual = _length((u, v), (du, dv)), _length((s, r), (-d, d))
        now = (u * s + v * r).sum(1, keepdim=True)
        then = ((u + primal * du) * (s - dual * d)).sum(1, keepdim=True)
        then = then + ((v + primal * dv) * (r + dual * d)).sum(1, keepdim=True)
        mu = now * (then / now) ** 3 / (2 * u.shape[1])
        above, below = mu + du * d, mu - dv * d
        w, d = direction(above / s - below / r)
        du, dv = above / s - u + (u / s) * d, below / r - v - (v / r) * d
        primal = (STEP_SHARE * _length((u, v), (du, dv))).clamp(max=1)
        dual = (STEP_SHARE * _length((s, r), (-d, d))).clamp(max=1)
        self.w = self.w + primal * w
        self.u, self.v = u + primal * du, v + primal * dv
        self.d = self.d + dual * d

    def gaps(self, w=None):
        """Return the relative duality gaps, infinite where a point is NaN."""
        values = objectives(self.A, self.targets, self.w if w is None else w)
        y = self.d[:, self.w.shape[1] :]
        products = torch.bmm(y[:, None, :], self.A)[:, 0].abs()
        scale = torch.maximum(y.abs().amax(1), products.amax(1)).clamp(min=1)
        gaps = (values - (self.targets * y).sum(1) / scale) / values
        return torch.where(gaps.isnan(), torch.inf, gaps.clamp(min=0))

    def answers(self, chosen, sizes, tol):
        """Return the codes of some problems and their gaps."""
        some = self if bool(chosen.all()) else self.part(chosen)
        w, gaps = some.w, some.gaps()
        # Where no vertex is found, tiny coefficients are at least set to 0.
        largest = w.abs().amax(dim=1, keepdim=True)
        sparse = torch.where(w.abs() < VANISHING * largest, 0.0, w)
        for better in (sparse, some.vertex()):
            own = some.gaps(better)
            taken = (own <= gaps) | (own <= tol)
            w = torch.where(taken[:, None], better, w)
            gaps = torch.where(taken, own, gaps)
        w = torch.where(gaps.isfinite()[:, None], w, 0.0)
        return w * sizes[chosen], gaps

    def vertex(self):
        """Return the nearest vertices, where the k freest duals have residual 0."""
        k = self.w.shape[1]
        # Free: away from both ends, and with small parts of the residual.
        room = (1 - self.d.abs()) / (self.u + self.v)
        free = room.topk(k, dim=1).indices
        is_zero = free < k
        rows = self.A.gather(1, (free - k).clamp(min=0)[:, :, None].expand(-1, -1, k))
        units = torch.nn.functional.one_hot(free.clamp(max=k - 1), k).to(rows.dtype)
        basis = torch.where(is_zero[:, :, None], units, rows)
        corner, info = torch.linalg.solve_ex(basis, self.t.gather(1, free))
        # Rounding of the solution must not blur the zeros.
        forced = torch.zeros_like(self.w, dtype=torch.bool)
        forced.scatter_(1, free.clamp(max=k - 1), is_zero)
        return torch.where(forced | (info != 0)[:, None], 0.0, corner)

    def _rows(self, w):
        """Return ``D w``."""
        return torch.cat([w, torch.bmm(self.A, w[:, :, None])[:, :, 0]], dim=1)

    def _back(self, z):
        """Return ``D'z``."""
        k = self.A.shape[2]
        return z[:, :k] + torch.bmm(z[:, None, k:], self.A)[:, 0]


def objectives(A, targets, w):
    """Return ``|w|_1 + |b - A w|_1`` of every problem."""
    residuals = targets - torch.bmm(A, w[:, :, None])[:, :, 0]
    return w.abs().sum(1) + residuals.abs().sum(1)


def _length(points, moves):
    """Return the largest step with which all points of a row stay positive."""
    least = points[0].new_full((len(points[0]), 1), 1e10)
    for point, move in zip(points, moves, strict=True):
        steps = torch.where(move < 0, -point / move, torch.inf)
        least = torch.minimum(least, steps.amin(1, keepdim=True))
    return least.clamp(max=1e10)

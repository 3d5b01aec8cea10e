"""Affinities within neighbourhoods, for a block of them at a time."""

import torch

# Share of the squared lengths below which a difference of them has lost digits.
CANCELLED = 1e-5
PAIRS_AT_A_TIME = 1 << 20
# Of the metrics by name, as `linkspread.graphs.distances` defines them.
SIMILARITIES = {
    "chi2": lambda d: (1 - d.square()).clamp(min=0),
    "cosine": lambda d: (1 - d.square() / 2).clamp(min=0),
    "euclidean": lambda d: 1 / (1 + d),
    "hellinger": lambda d: (1 - d.square()).clamp(min=0),
}


def distances_within(queries, items, relative):
    """Return all distances between items (n, k, f) of each neighbourhood, in float64.

    Duplicates are at distance 0 exactly.
    """
    queries, items = queries.double(), items.double()
    if not relative:
        return _squares_within(queries, items).sqrt_()
    n, k, n_features = queries.shape
    sums = queries.new_zeros((n, k, k))
    for f in range(n_features):
        q, x = queries[:, :, None, f], items[:, None, :, f]
        sizes = q + x
        sums += (q - x).square() / torch.where(sizes > 0, sizes, 1.0)
    return sums.sqrt_()


def _squares_within(queries, items):
    """Return squared distances by products, by differences where these would cancel."""
    # Seen from one of them, neighbours are about as long as they are apart.
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
    return squares


def affinities(distances, widths, kernel, metric):
    """Return the affinities (n, k, k) that belong to distances and widths (n, k)."""
    if kernel == "similarity":
        return SIMILARITIES[metric](distances)
    exponents = (distances / widths[:, :, None]) * (distances / widths[:, None, :])
    return exponents.neg_().exp_()

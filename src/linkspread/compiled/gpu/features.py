"""The features of `linkspread.learning`, of many rows on a device."""

import torch

from linkspread.compiled.gpu.graphs import Graph, filtered_sums

# Rows per tile, and landmarks whose heat is computed at once.
TILE, WIDTH = 1 << 17, 64


def prepare(rows, metric):
    """Return rows in float64 whose Euclidean distances are those of a metric."""
    rows = rows.double()
    if metric == "cosine":
        return unit_rows(rows)
    if metric in ("hellinger", "chi2"):
        total = rows.sum(dim=1, keepdim=True)
        return (rows / torch.where(total > 0, total, 1)).sqrt()
    return rows


def unit_rows(rows):
    """Return rows with unit norm; rows of zeros stay."""
    lengths = rows.norm(dim=1, keepdim=True)
    return rows / torch.where(lengths > 0, lengths, 1)


def gram(rows, metric):
    """Return ``R'R`` of prepared rows, in float64."""
    total = rows.new_zeros((rows.shape[1],) * 2, dtype=torch.float64)
    for some in rows.split(TILE):
        own = prepare(some, metric)
        total.addmm_(own.T, own)
    return total.cpu().numpy()


def projected(rows, metric, components):
    """Return prepared rows in float32, on components or as they are."""
    parts = []
    for some in rows.split(TILE):
        own = prepare(some, metric)
        own = own if components is None else own @ components.double()
        parts.append(own.float())
    return torch.cat(parts)


def gaussian_kernel(rows, metric, landmarks, width):
    """Return ``exp(-|x - l|^2 / width)`` of prepared rows and landmarks, in float32."""
    K = rows.new_empty((len(rows), len(landmarks)), dtype=torch.float32)
    squares = landmarks.square().sum(dim=1)
    for some, out in zip(rows.split(TILE), K.split(TILE), strict=True):
        own = prepare(some, metric).float()
        torch.addmm(squares, own, landmarks.T, alpha=-2, out=out)
        out += own.square().sum(dim=1, keepdim=True)
        out.clamp_(min=0).div_(-width).exp_()
    return K


def heat_kernel(device, W, landmarks, coefficients):
    """Return a polynomial of the normalised graph at landmarks, in float32."""
    graph = Graph(device, W, torch.float32)
    _normalize(graph)
    K = graph.data.new_empty((W.shape[0], len(landmarks)))
    for some, out in zip(landmarks.split(WIDTH), K.split(WIDTH, dim=1), strict=True):
        units = graph.data.new_zeros((W.shape[0], len(some)))
        units[some, torch.arange(len(some), device=some.device)] = 1
        out.copy_(filtered_sums(graph, units, coefficients[None])[:, 0])
    return K


def _normalize(graph):
    """Normalise the edges symmetrically, in place."""
    indptr = graph.indptr.long()
    degrees = torch.segment_reduce(graph.data.double(), "sum", offsets=indptr)
    roots = torch.where(degrees > 0, degrees.rsqrt(), 0)
    own = roots.repeat_interleave(indptr.diff(), output_size=len(graph.data))
    own *= roots[graph.indices]
    graph.data = (own * graph.data).float()


def whiten(K, factor):
    """Write ``K L'^-1`` over K, whose inner products approximate the kernel."""
    turned = factor.to(K.dtype).T
    for some in K.split(TILE):
        some.copy_(torch.linalg.solve_triangular(turned, some, upper=True, left=False))
    return K


def standardize(values):
    """Centre columns and scale to mean squared norm 1, in place."""
    mean = sum(some.sum(dim=0, dtype=torch.float64) for some in values.split(TILE))
    mean = (mean / len(values)).float()
    values -= mean
    squares = sum(some.square().sum(dtype=torch.float64) for some in values.split(TILE))
    size = float((squares / len(values)).sqrt()) or 1.0
    values /= size
    return mean.cpu().numpy(), size


def to_host(parts, values):
    """Write blocks of columns, side by side, into an array of the host."""
    host = torch.from_numpy(values)
    # Copies from pinned memory use all cores.
    shape = min(TILE, len(values)), values.shape[1]
    pinned = torch.empty(shape, dtype=host.dtype, pin_memory=parts[0].is_cuda)
    for rows in host.split(TILE):
        start = rows.storage_offset() // values.shape[1]
        own = [part[start : start + len(rows)] for part in parts]
        rows.copy_(pinned[: len(rows)].copy_(torch.cat(own, dim=1)))


def ridge_regression(device, H, Y, ridge):
    """Return the ridge regression of centred targets on centred features."""
    H = device.put(H)
    Y = device.put(Y, H.dtype)
    G = H.T @ H
    G.diagonal().add_(ridge)
    factor = torch.linalg.cholesky(G)
    half = torch.linalg.solve_triangular(factor, H.T, upper=False)
    W = torch.cholesky_solve(H.T @ Y, factor)
    found = W, H @ W, half.square().sum(dim=0)
    return tuple(tensor.cpu().numpy() for tensor in found)

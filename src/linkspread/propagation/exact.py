"""Exact propagation of links over two graphs, in time linear in the items.

``F = h(S_x, S_y) o Z`` with links ``Z = U G V'``: the polynomials of the filter are
applied to U and V, and the results are compressed to short vectors. Links without thin
factors are sketched from products with random blocks.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from linkspread.compiled.backends import choose_device, is_tensor, map_blocks
from linkspread.compiled.gpu import load_torch, open_device
from linkspread.ground.checks import check_count, is_number
from linkspread.ground.cores import count_threads
from linkspread.ground.errors import LinkspreadError, warn_caller
from linkspread.ground.progress import format_bytes
from linkspread.links import LinkMatrix, as_link_matrix
from linkspread.propagation.chebyshev import (
    FilterOperator,
    filtered_sums,
    find_order,
    recurrence_terms,
    reorder,
)
from linkspread.propagation.filter import (
    Response,
    SeparableFilter,
    fitted_response,
    separate,
    unseen_response,
)
from linkspread.propagation.spread import (
    Factored,
    Spread,
    Vectors,
    compress,
    shorten,
    sketch,
)

Array = np.ndarray
Alpha = float | tuple[float, float]

# Factors up to this width are compressed in a few seconds; a sketch takes longer.
THIN_WIDTH = 1536
# Error of the filter that is small compared with that of a usual rank.
COARSE = 1e-3
# Columns of the blocks of a sketch, to decide on an order of the items.
WIDTH = 64
# Power iterations that detect a graph that is not normalised.
POWER_STEPS = 10
# Multiplications of a step, edges times columns, from which a GPU is used: all steps
# together take a CPU about half a second.
MIN_WORK = 1e8
# Functions of a filter, for estimates: more than any has needed.
N_FUNCTIONS = 13
# Blocks of the recurrence in the memory of a device, beside the sums.
N_BLOCKS = 3


def propagate(
    S_x: Any,
    Z: Any,
    S_y: Any,
    *,
    alpha: Alpha = 0.1,
    beta: float = 0.95,
    tol: float = 1e-6,
    rank: int | None = None,
    n_outer: int | None = None,
    n_inner: int | None = None,
    backend: str = "auto",
) -> Factored:
    """Propagate links over the graphs of two views.

    The fixed point of the paper's iteration, ``F = h(S_x, S_y) o Z``, without its
    N x M arrays.

    Parameters
    ----------
    S_x : sparse, ndarray or sparse CSR Tensor of shape (n, n)
        Normalised affinity of the row view; float32 graphs give float32 factors, and
        tensors give tensors on their device.
    Z : sparse, ndarray or LinkMatrix of shape (n, m)
        Links, positive for must and negative for cannot.
    S_y : sparse, ndarray or sparse CSR Tensor of shape (m, m)
        Normalised affinity of the column view.
    alpha : float or tuple of two floats, default=0.1
        Smoothing of each view, in [0, 1).
    beta : float, default=0.95
        Weight of the other view's result against the given links, in [0, 1).
    tol : float, default=1e-6
        Relative error allowed, in Frobenius norm; sets the degree and the rank.
    rank : int, default=None
        Keep at most this many directions, the best; None keeps what `tol` needs.
    n_outer : int, default=None
        Stop after this many rounds, as in the paper's experiments.
    n_inner : int, default=None
        Stop the iteration within each view after this many steps.
    backend : {"auto", "cpu", "cuda", "torch"}, default="auto"
        "auto" uses a GPU, if there is one, for large graphs. Links without thin
        factors are propagated on the CPU.

    Returns
    -------
    F : Factored of shape (n, m)

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.graphs import normalize
    >>> from linkspread.propagation import propagate
    >>> S = normalize(np.array([[0.0, 1.0], [1.0, 0.0]]))  # two items, neighbours
    >>> Z = np.array([[1.0, 0.0], [0.0, 0.0]])             # the first ones are linked
    >>> propagate(S, Z, S, alpha=0.5, beta=0.5).toarray().round(2)
    array([[0.53, 0.2 ],
           [0.2 , 0.07]])
    """
    pair, beta = check_alpha_pair(alpha), check_beta(beta)
    responses = (fitted_response(pair, beta, n_outer=n_outer, n_inner=n_inner),)
    return _spread(S_x, Z, S_y, responses, tol, rank, backend).fitted()


def spread_links(
    S_x: Any,
    Z: Any,
    S_y: Any,
    *,
    alpha: Alpha = 0.1,
    beta: float = 0.95,
    tol: float = 1e-6,
    rank: int | None = None,
    backend: str = "auto",
) -> Spread:
    """Propagate links, with factors for new items of either view.

    Parameters
    ----------
    S_x : sparse or ndarray of shape (n, n)
    Z : sparse, ndarray or LinkMatrix of shape (n, m)
    S_y : sparse or ndarray of shape (m, m)
    alpha : float or tuple of two floats, default=0.1
    beta : float, default=0.95
    tol : float, default=1e-6
    rank : int, default=None
    backend : {"auto", "cpu", "cuda", "torch"}, default="auto"
        All as in :func:`propagate`.
    """
    responses = spread_responses(check_alpha_pair(alpha), check_beta(beta))
    return _spread(S_x, Z, S_y, responses, tol, rank, backend)


def check_alpha_pair(alpha: Any) -> tuple[float, float]:
    """Return alpha of both views, from one number or a pair."""
    is_pair = isinstance(alpha, Sequence) and not isinstance(alpha, str)
    pair = tuple(alpha) if is_pair else (alpha, alpha)
    if len(pair) != 2:
        raise LinkspreadError(
            f"`alpha` must be one number or a pair, got {len(pair)} values. "
            "Give one for each of the two views."
        )
    return _fraction(pair[0], "alpha"), _fraction(pair[1], "alpha")


def check_beta(beta: Any) -> float:
    """Return beta if it is in [0, 1)."""
    return _fraction(beta, "beta")


def _fraction(value: Any, name: str) -> float:
    """Return a number in [0, 1)."""
    if is_number(value) and 0 <= value < 1:
        return float(value)
    raise LinkspreadError(
        f"`{name}` must be a number in [0, 1), got {value!r}. 0 does not propagate, "
        "0.95 propagates far."
    )


def check_tol(tol: Any) -> float:
    """Return the tolerance if it is a number between 0 and 1."""
    if is_number(tol) and 0 < tol < 1:
        return float(tol)
    raise LinkspreadError(
        f"`tol` must be between 0 and 1, got {tol!r}. The default is 1e-6."
    )


def check_shapes(S_x: Any, Z: Any, S_y: Any) -> None:
    """Refuse graphs and links of inconsistent shapes."""
    for name, S in (("S_x", S_x), ("S_y", S_y)):
        if len(S.shape) != 2 or S.shape[0] != S.shape[1]:
            raise LinkspreadError(
                f"`{name}` must be square, got shape {tuple(S.shape)}. "
                "Build it with `normalize(knn_graph(X))`."
            )
    expected = (S_x.shape[0], S_y.shape[0])
    if tuple(Z.shape) != expected:
        raise LinkspreadError(
            f"`Z` must have one row per item of S_x and one column per item of S_y, "
            f"{expected}, got {tuple(Z.shape)}. Transpose it, or check which view is "
            "which."
        )


def working_graphs(
    S_x: Any, Z: Any, S_y: Any
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return both graphs, checked, as CSR in the same precision."""
    check_shapes(S_x, Z, S_y)
    for name, S in (("S_x", S_x), ("S_y", S_y)):
        _refuse_stretching(_largest_stretch(S), name)
    return same_precision(sparse.csr_array(S_x), sparse.csr_array(S_y))


def same_precision(
    S_x: sparse.csr_array, S_y: sparse.csr_array
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Return both graphs in float32 if both are, else in float64."""
    single = S_x.dtype == np.float32 and S_y.dtype == np.float32
    dtype = np.float32 if single else np.float64
    return S_x.astype(dtype, copy=False), S_y.astype(dtype, copy=False)


def _largest_stretch(S: Any) -> float:
    """Return a lower bound of the largest eigenvalue of a symmetric matrix."""
    # In the graph's precision, so that products do not convert the graph.
    vector = np.ones(S.shape[0], dtype=np.result_type(S.dtype, np.float32))
    largest = 0.0
    for _ in range(POWER_STEPS):
        image = S @ vector
        size, before = float(np.linalg.norm(image)), float(np.linalg.norm(vector))
        largest = max(largest, size / (before or 1.0))
        if size == 0:
            break
        vector = image / size
    return largest


def _refuse_stretching(largest: float, name: str) -> None:
    """Refuse a graph with an eigenvalue above 1, for which the filter diverges."""
    if largest > 1 + 1e-4:
        raise LinkspreadError(
            f"`{name}` must be normalised, with eigenvalues between -1 and 1, and "
            f"it has one of at least {largest:.3g}. Use `normalize(W)`."
        )


def spread_responses(alpha: tuple[float, float], beta: float) -> tuple[Response, ...]:
    """Return the responses of fitted items, of new rows and of new columns."""
    new_left = unseen_response(alpha, beta)
    new_right = unseen_response(alpha[::-1], beta)
    return fitted_response(alpha, beta), new_left, lambda l, m: new_right(m, l)


def has_thin_factors(
    links: LinkMatrix, separable: SeparableFilter, rank: int | None
) -> bool:
    """Return whether the exact factors of links are thin enough to compress."""
    n_functions = max(len(separable.left), len(separable.right))
    limit = min(links.shape)
    if links.pairs.nnz:
        # Compression costs the cube of the width; a sketch of the rank may be cheaper.
        limit = min(limit, max(2 * (rank or 0), THIN_WIDTH))
    return links.thin_width() * n_functions <= limit


def _spread(
    S_x: Any,
    Z: Any,
    S_y: Any,
    responses: tuple[Response, ...],
    tol: float,
    rank: int | None,
    backend: str,
) -> Spread:
    """Apply responses to links by thin factors, or by a sketch."""
    tol = check_tol(tol)
    if rank is not None:
        check_count(rank, name="rank", remedy="None keeps what `tol` needs.")
    check_shapes(S_x, Z, S_y)
    device = _choose_device(backend, S_x, Z, S_y)
    links = as_link_matrix(Z)
    # Half of the error may come from the filter, half from dropped directions.
    separable = separate(responses, tol=tol / 2)
    is_thin = has_thin_factors(links, separable, rank)
    if device is not None and (is_thin or is_tensor(S_x)):
        found = spread_on_device(device, S_x, links, S_y, separable, tol=tol, rank=rank)
    else:
        S_x, S_y = working_graphs(S_x, Z, S_y)
        if is_thin:
            found = _from_thin(S_x, links, S_y, separable, tol=tol, rank=rank)
        else:

            def operate(dtype: Any, separable: SeparableFilter) -> FilterOperator:
                x, y = (S.astype(dtype, copy=False) for S in (S_x, S_y))
                return FilterOperator.of(x, links, y, separable, WIDTH)

            found = sketch_links(
                operate, S_x.dtype, responses, separable, tol=tol, rank=rank
            )
    left, right, cores, error = found
    error += separable.error
    if rank is None:
        warn_of_error(error, tol, left)
    unseen = cores[1:] if len(cores) > 1 else [None, None]
    return Spread(left, right, cores[0], unseen[0], unseen[1], error)


def warn_of_error(error: float, tol: float, vectors: Any) -> None:
    """Warn of vectors with a larger error than `tol`."""
    is_single = str(vectors.dtype).endswith("float32")
    rounding = 100 * float(np.finfo(np.float32 if is_single else np.float64).eps)
    if error > max(2 * tol, rounding):
        warn_caller(
            f"vectors of {vectors.shape[1]:,} dimensions have a relative error of "
            f"about {error:.1e}, more than tol={tol:.1e}; exact ones would be longer. "
            "Give a `rank` to choose how many dimensions to keep, or a larger `tol`.",
            ConvergenceWarning,
        )


def _from_thin(
    S_x: Any, links: LinkMatrix, S_y: Any, separable: SeparableFilter, **how: Any
) -> Vectors:
    """Filter the memberships of each view and compress the results."""
    U, G, V = links.thin()
    width = U.shape[1]
    # One buffer for both views: the first use of memory pages is slow.
    workspace = recurrence_terms(max(links.shape), width, S_x.dtype)

    def find(k: int) -> Array | None:
        return find_order((S_x, S_y)[k], width=width, n_steps=separable.degrees[k])

    own, other = map_blocks(find, [0, 1], n_threads=count_threads(None))
    left = _filtered(S_x, own, U, separable.left, workspace)
    right = _filtered(S_y, other, V, separable.right, workspace)
    del workspace
    cores = [np.kron(core, G) for core in separable.cores]
    # The bases do not depend on the order of rows, which is undone at the end.
    return compress(left, right, cores, orders=(own, other), **how)


def _filtered(
    S: Any, order: Array | None, block: Any, functions: Array, workspace: Array
) -> Array:
    """Return filtered columns side by side, the rows in the order."""
    x = reorder(S, order)
    sums = filtered_sums(x.S, x.inwards(block), functions, workspace=workspace)
    return sums.reshape(S.shape[0], -1)


def sketch_links(
    operate: Callable[[Any, SeparableFilter], Any],
    dtype: Any,
    responses: tuple[Response, ...],
    separable: SeparableFilter,
    *,
    tol: float,
    rank: int | None,
) -> Vectors:
    """Sketch the filtered links, no more exactly than the rank allows."""
    if rank is not None and tol < COARSE:
        operator = operate(np.float32, separate(responses, tol=COARSE))
        left, right, cores, error = sketch(operator, tol=COARSE, rank=rank)
        # The error of the filter is negligible against that of the rank.
        if error > 10 * COARSE:
            small = [core.astype(dtype) for core in cores]
            return left.astype(dtype), right.astype(dtype), small, error
    return sketch(operate(dtype, separable), tol=tol, rank=rank)


def _choose_device(backend: str, S_x: Any, Z: Any, S_y: Any) -> Any:
    """Return the device for the propagation, or None."""
    if is_tensor(S_x):
        return open_device("cuda" if S_x.device.type == "cuda" else "torch")
    width = Z.thin_width() if isinstance(Z, LinkMatrix) else min(Z.shape)
    n_edges = float(sum(getattr(S, "nnz", np.size(S)) for S in (S_x, S_y)))
    device = choose_device(backend, work=n_edges * width, min_work=MIN_WORK)
    if device is None or backend != "auto":
        return device
    needed = _device_bytes(max(Z.shape), n_edges, width, N_FUNCTIONS, 8)
    return device if needed < device.free_bytes() else None


def spread_on_device(
    device: Any,
    S_x: Any,
    links: LinkMatrix,
    S_y: Any,
    separable: SeparableFilter,
    **how: Any,
) -> tuple[Any, Any, list[Any], float]:
    """Filter the memberships of each view on a device and compress the results."""
    from linkspread.compiled.gpu.graphs import triangle

    torch = load_torch()
    U, G, V = links.thin()
    graphs = [S if is_tensor(S) else sparse.csr_array(S) for S in (S_x, S_y)]
    is_single = all(str(S.dtype).endswith("float32") for S in graphs)
    dtype = torch.float32 if is_single else torch.float64
    left = _filtered_on(device, graphs[0], U, separable.left, dtype, "S_x")
    right = _filtered_on(device, graphs[1], V, separable.right, dtype, "S_y")
    cores = [np.kron(core, G) for core in separable.cores]
    to_left, to_right, short, error = shorten(
        triangle(left), cores, triangle(right), **how
    )
    bases = [
        tall @ device.put(to_short, tall.dtype)
        for tall, to_short in ((left, to_left), (right, to_right))
    ]
    small = [device.put(core, left.dtype) for core in short]
    if not is_tensor(S_x):
        bases, small = ([t.cpu().numpy() for t in part] for part in (bases, small))
    return bases[0], bases[1], small, error


def _filtered_on(
    device: Any, S: Any, block: Any, functions: Array, dtype: Any, name: str
) -> Any:
    """Return filtered columns side by side; refuse if the device is too small."""
    from linkspread.compiled.gpu import graphs

    n_edges = S._nnz() if is_tensor(S) else S.nnz
    width, itemsize = block.shape[1], dtype.itemsize
    n_bytes = _device_bytes(S.shape[0], n_edges, width, len(functions), itemsize)
    free = device.free_bytes()
    if n_bytes > free:
        raise LinkspreadError(
            f"The device must have about {format_bytes(n_bytes)} free to spread links "
            f"over `{name}`, got {format_bytes(free)}. Use backend='cpu', or links of "
            "fewer classes."
        )
    graph = graphs.Graph(device, S, dtype)
    _refuse_stretching(graphs.largest_stretch(graph, POWER_STEPS), name)
    dense = graphs.dense_block(device, block, dtype)
    return graphs.filtered_sums(graph, dense, functions).flatten(1)


def _device_bytes(
    n_items: int, n_edges: float, width: int, n_functions: int, itemsize: int
) -> float:
    """Return the memory that one view takes on a device."""
    sums = float(n_items) * width * (2 * n_functions + N_BLOCKS) * itemsize
    return sums + n_edges * (itemsize + 4)

"""Propagation of links over two graphs, exactly, in time linear in the items."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from linkspread.compiled.backends import is_tensor
from linkspread.compiled.threads import map_blocks
from linkspread.ground.cores import count_threads
from linkspread.ground.errors import LinkspreadError
from linkspread.links import LinkMatrix, as_link_matrix
from linkspread.propagation.chebyshev import (
    FilterOperator,
    filtered_sums,
    recurrence_terms,
)
from linkspread.propagation.device import device_for, spread_on_device
from linkspread.propagation.factored import Factored
from linkspread.propagation.filter import (
    Response,
    SeparableFilter,
    fitted_response,
    separate,
    unseen_response,
)
from linkspread.propagation.lowrank import ThinOperator, sketch
from linkspread.propagation.ordering import find_order, reorder
from linkspread.propagation.parameters import (
    check_alpha_pair,
    check_beta,
    check_tol,
    working_graphs,
)
from linkspread.propagation.spread import Spread, compress

Array = np.ndarray
Alpha = float | tuple[float, float]

# Factors up to this width are shortened in a few seconds; a sketch takes longer.
THIN_WIDTH = 1536
# Error of the filter that is small beside what a rank usually drops.
COARSE = 1e-3


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

    The fixed point of the paper's alternation, ``F = h(S_x, S_y) o Z``, without its
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
        Weight of the other view's answer against the given links, in [0, 1).
    tol : float, default=1e-6
        Relative error allowed, in Frobenius norm; sets the degree and the rank.
    rank : int, default=None
        Keep at most so many directions, the best ones; None keeps what `tol` needs.
    n_outer : int, default=None
        Stop the alternation after so many rounds, as the paper's experiments do.
    n_inner : int, default=None
        Stop each view's own iteration after so many steps.
    backend : {"auto", "cpu", "cuda", "torch"}, default="auto"
        "auto" takes a GPU for large graphs where there is one. Links without short
        exact factors are spread by the processor.

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
    settings: dict[str, Any] = {"tol": tol, "rank": rank, "backend": backend}
    return _spread(S_x, Z, S_y, responses, **settings).fitted()


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
    """Propagate links, ready for items of either view that are not in the graphs.

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

    Returns
    -------
    spread : Spread
    """
    responses = spread_responses(check_alpha_pair(alpha), check_beta(beta))
    settings: dict[str, Any] = {"tol": tol, "rank": rank, "backend": backend}
    return _spread(S_x, Z, S_y, responses, **settings)


def spread_responses(alpha: tuple[float, float], beta: float) -> tuple[Response, ...]:
    """Return the responses that scores of fitted and of new items take."""
    new_left = unseen_response(alpha, beta)
    new_right = unseen_response(alpha[::-1], beta)
    return fitted_response(alpha, beta), new_left, lambda l, m: new_right(m, l)


def _spread(
    S_x: Any,
    Z: Any,
    S_y: Any,
    responses: tuple[Response, ...],
    *,
    tol: float,
    rank: int | None,
    backend: str,
) -> Spread:
    """Apply responses to links by thin factors, or by a sketch if they are wide."""
    tol, rank = check_tol(tol), _check_rank(rank)
    device = device_for(backend, S_x, Z, S_y)
    if device is None:
        S_x, S_y = working_graphs(S_x, Z, S_y)
    links = as_link_matrix(Z)
    # Half of the error may come from the filter, half from dropped directions.
    separable = separate(responses, tol=tol / 2)
    is_thin = has_thin_factors(links, separable, rank)
    if device is not None and (is_thin or is_tensor(S_x)):
        left, right, cores, error = spread_on_device(
            device, S_x, links, S_y, separable, tol=tol, rank=rank
        )
    elif is_thin:
        left, right, cores, error = _from_thin(S_x, links, S_y, separable, tol, rank)
    else:
        if device is not None:
            S_x, S_y = working_graphs(S_x, Z, S_y)

        def operate(dtype: Any, separable: SeparableFilter) -> FilterOperator:
            graphs = [S.astype(dtype, copy=False) for S in (S_x, S_y)]
            return FilterOperator(graphs[0], links, graphs[1], separable)

        left, right, cores, error = sketch_links(
            operate, S_x.dtype, responses, separable, tol=tol, rank=rank
        )
    error += separable.error
    if rank is None:
        warn_of_error(error, tol, left)
    unseen = cores[1:] if len(cores) > 1 else [None, None]
    return Spread(left, right, cores[0], unseen[0], unseen[1], error)


def warn_of_error(error: float, tol: float, vectors: Any) -> None:
    """Warn of vectors that are less exact than was asked for."""
    is_single = str(vectors.dtype).endswith("float32")
    rounding = 100 * float(np.finfo(np.float32 if is_single else np.float64).eps)
    if error <= max(2 * tol, rounding):
        return
    message = (
        f"vectors of {vectors.shape[1]:,} dimensions have a relative error of about "
        f"{error:.1e}, more than tol={tol:.1e}, and exact ones would be longer. "
        "Give a `rank` to choose how many dimensions to keep, or a larger `tol`."
    )
    warnings.warn(message, ConvergenceWarning, stacklevel=4)


def has_thin_factors(
    links: LinkMatrix, separable: SeparableFilter, rank: int | None
) -> bool:
    """Tell whether the exact factors of links are narrow enough to be shortened."""
    n_functions = max(len(separable.left), len(separable.right))
    limit = min(links.shape)
    if links.pairs.nnz:
        # Shortening takes the cube of the width; a sketch of the rank is soon cheaper.
        limit = min(limit, max(2 * (rank or 0), THIN_WIDTH))
    return links.thin_width() * n_functions <= limit


def _from_thin(
    S_x: sparse.csr_array,
    links: LinkMatrix,
    S_y: sparse.csr_array,
    separable: SeparableFilter,
    tol: float,
    rank: int | None,
) -> tuple[Array, Array, list[Array], float]:
    """Filter the memberships of each view and shorten what comes out."""
    U, G, V = links.thin()
    # Large blocks are used again: pages of memory take time when they are first used.
    workspace = recurrence_terms(max(links.shape), U.shape[1], S_x.dtype)
    orders = _find_orders((S_x, S_y), U.shape[1], separable.degrees)
    left = _filtered(S_x, orders[0], U, separable.left, workspace)
    right = _filtered(S_y, orders[1], V, separable.right, workspace)
    del workspace
    cores = [np.kron(core, G) for core in separable.cores]
    # Any order of the rows has the same bases; these are the shortest to put back.
    return compress(left, right, cores, tol=tol, rank=rank, orders=orders)


def sketch_links(
    operate: Callable[[Any, SeparableFilter], ThinOperator],
    dtype: Any,
    responses: tuple[Response, ...],
    separable: SeparableFilter,
    *,
    tol: float,
    rank: int | None,
) -> tuple[Array, Array, list[Array], float]:
    """Sketch the filtered links, no more exactly than the rank lets them be."""
    if rank is not None and tol < COARSE:
        operator = operate(np.float32, separate(responses, tol=COARSE))
        left, right, cores, error = sketch(operator, tol=COARSE, rank=rank)
        # What the rank drops hides an error of the filter that is much smaller.
        if error > 10 * COARSE:
            small = [core.astype(dtype) for core in cores]
            return left.astype(dtype), right.astype(dtype), small, error
    return sketch(operate(dtype, separable), tol=tol, rank=rank)


def _find_orders(
    graphs: tuple[sparse.csr_array, sparse.csr_array],
    width: int,
    degrees: tuple[int, int],
) -> tuple[Array | None, Array | None]:
    """Return an order of the nodes of each graph, found at the same time."""

    def find(k: int) -> Array | None:
        return find_order(graphs[k], width=width, n_steps=degrees[k])

    one, other = map_blocks(find, [0, 1], n_threads=count_threads(None))
    return one, other


def _filtered(
    S: sparse.csr_array,
    order: Array | None,
    block: Any,
    functions: Array,
    workspace: Array,
) -> Array:
    """Return filtered columns side by side, the rows in the order."""
    x = reorder(S, order)
    sums = filtered_sums(x.S, x.inwards(block), functions, workspace=workspace)
    return sums.reshape(S.shape[0], -1)


def _check_rank(rank: Any) -> int | None:
    """Return the rank if it is None or a positive integer."""
    if rank is None:
        return None
    if isinstance(rank, int | np.integer) and rank > 0:
        return int(rank)
    raise LinkspreadError(
        f"`rank` must be a positive integer or None, got {rank!r}. "
        "None keeps what `tol` needs."
    )

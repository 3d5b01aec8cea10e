"""Singular vectors, and bases of the range of a linear map.

>>> import numpy as np
>>> from linkspread.compiled.singular import range_basis
>>> table = np.outer([3.0, 4.0], [1.0, 2.0])
>>> np.abs(range_basis(lambda block: table @ block, np.ones((2, 1)))).round(6).tolist()
[[0.6], [0.8]]
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg import svd as plain_svd

from linkspread.compiled.backends import small_algebra

Array = np.ndarray
Map = Callable[[Array], Array]


def svd(matrix: Array, *, full_matrices: bool = False) -> tuple[Array, Array, Array]:
    """Return ``U, singular, Vt`` with ``matrix = U @ diag(singular) @ Vt``.

    LAPACK's divide and conquer, which NumPy uses, sometimes fails to converge on an
    ordinary matrix; the plain iteration is slower and converges.
    """
    try:
        U, singular, Vt = np.linalg.svd(matrix, full_matrices=full_matrices)
    except np.linalg.LinAlgError:
        if not np.isfinite(matrix).all():
            raise
        U, singular, Vt = plain_svd(
            matrix, full_matrices=full_matrices, lapack_driver="gesvd"
        )
    return U, singular, Vt


def orthonormal(block: Array) -> Array:
    """Return an orthonormal basis of the columns of a block."""
    with small_algebra(block.size):
        return np.linalg.qr(block)[0]


def range_basis(apply: Map, samples: Array, *, back: Map | None = None) -> Array:
    """Return an orthonormal basis of the images of random samples.

    With ``back``, the transposed map, one power iteration turns the basis towards the
    largest singular vectors (Halko, Martinsson and Tropp 2011).
    """
    basis = orthonormal(apply(samples))
    return basis if back is None else range_basis(apply, orthonormal(back(basis)))

"""Singular values and vectors that are found even where the fast way gives up."""

import numpy as np
from scipy.linalg import svd as plain_svd

Array = np.ndarray


def svd(matrix: Array, *, full_matrices: bool = False) -> tuple[Array, Array, Array]:
    """Return ``U, singular, Vt`` with ``matrix = U @ diag(singular) @ Vt``.

    LAPACK's divide and conquer, which NumPy takes, now and then does not converge on
    a matrix like any other; the plain iteration is slower and does.
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

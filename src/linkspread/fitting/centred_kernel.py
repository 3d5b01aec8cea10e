"""A kernel less what all items have in common.

Some items are near to everything, and judgements then say first of all how often such
an item is linked at all. Fits by centred kernels cannot say so: the scores of every
item are 0 on average, and tell only with whom it belongs.
"""

import numpy as np

from linkspread.fitting.embeddings import Shifted
from linkspread.fitting.view_kernels import StoredKernel, ViewKernel

__all__ = ["CentredKernel"]

Array = np.ndarray


class CentredKernel(StoredKernel):
    """``H K H`` with ``H = I - 1 1' / n``: the similarities less their averages.

    Parameters
    ----------
    kernel : ViewKernel

    Attributes
    ----------
    means : ndarray of shape (n_items,)
        How alike each item is to all on average.

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.fitting.centred_kernel import CentredKernel
    >>> from linkspread.fitting.view_kernels import FeatureKernel
    >>> K = FeatureKernel(np.array([[1.0], [3.0]]), embed=lambda rows: rows)
    >>> (CentredKernel(K) @ np.eye(2)).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """

    def __init__(self, kernel: ViewKernel) -> None:
        self.kernel = kernel
        self.n_items = kernel.n_items
        ones = np.ones((self.n_items, 1))
        self.means = np.asarray(kernel @ ones, dtype=np.float64)[:, 0] / self.n_items

    def __matmul__(self, block: Array) -> Array:
        product = self.kernel @ (block - block.mean(axis=0))
        return product - product.mean(axis=0)

    def diagonal(self) -> Array:
        """Return the similarity of each item to itself."""
        return self.kernel.diagonal() - 2 * self.means + self.means.mean()

    def block(self, rows: Array, columns: Array) -> Array:
        """Return some entries, as of every kernel."""
        entries = self.kernel.block(rows, columns)
        others = self.means[columns] - self.means.mean()
        means = self.means[rows, None] + others
        return entries - means.astype(entries.dtype, copy=False)

    def release(self) -> None:
        """Forget what only products need."""
        self.kernel.release()

    def extension(self, coefficients: Array, fitted: Array) -> Shifted:
        """Return what makes values of new rows, as of every kernel."""
        centred = coefficients - coefficients.mean(axis=0)
        product = self.kernel @ centred
        return Shifted(self.kernel.extension(centred, product), -product.mean(axis=0))

    def centre_row(self, row: Array) -> Array:
        """Return the similarities of an item to all, less the averages.

        Parameters
        ----------
        row : ndarray of shape (n_items,)
            Its similarities by the kernel that is centred.

        Returns
        -------
        row : ndarray of shape (n_items,)
        """
        away = row - self.means
        return away - away.mean()

"""Fit what is known about items by kernels of each view, instead of only spreading it.

>>> import numpy as np
>>> from linkspread.fitting import FeatureKernel, fit_labels
>>> kernel = FeatureKernel(np.array([[1.0], [-1.0], [0.5]]), embed=np.asarray)
>>> known = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])  # nothing of the third
>>> fit_labels(kernel, known, ridges=(0.1,)).values[2].round(2).tolist()
[0.24, -0.24]
"""

from linkspread.fitting.kernel_choice import affinity_kernel, linear_kernel
from linkspread.fitting.labels import LabelFit, fit_labels
from linkspread.fitting.pairs import PairFit, fit_pairs
from linkspread.fitting.view_kernels import (
    DenseKernel,
    FeatureKernel,
    GraphKernel,
    MixedKernel,
    ViewKernel,
)

__all__ = [
    "DenseKernel",
    "FeatureKernel",
    "GraphKernel",
    "LabelFit",
    "MixedKernel",
    "PairFit",
    "ViewKernel",
    "affinity_kernel",
    "fit_labels",
    "fit_pairs",
    "linear_kernel",
]

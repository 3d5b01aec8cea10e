"""Solvers of small optimisation problems, many at a time, each with a certificate.

>>> import numpy as np
>>> from linkspread.solvers import solve_lad
>>> coefficients, gap = solve_lad(np.array([[2.0, 0.0], [0.0, 0.5]]), [4.0, 4.0])
>>> coefficients.tolist(), gap
([2.0, 0.0], 0.0)
"""

from linkspread.solvers.certificate import relative_gaps
from linkspread.solvers.lad import Report, solve_lad, solve_many

__all__ = ["Report", "relative_gaps", "solve_lad", "solve_many"]

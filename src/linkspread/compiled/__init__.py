"""The hot loops; callers import names from here only.

Those of a GPU are in `linkspread.compiled.gpu`; `linkspread.compiled.backends` chooses.
"""

from linkspread.compiled.cpu import (
    CODED,
    LINE_BYTES,
    add_products,
    add_terms,
    average_precisions,
    chebyshev_step,
    clenshaw_step,
    difference_sums,
    encode_rows,
    grow_order,
    keep_nearest,
    largest_means,
    renumber_rows,
    sampled_products,
    score_bounds,
    sparse_difference_sums,
    sparse_products,
)
from linkspread.compiled.threads import small_loops

__all__ = [
    "CODED",
    "LINE_BYTES",
    "add_products",
    "add_terms",
    "average_precisions",
    "chebyshev_step",
    "clenshaw_step",
    "difference_sums",
    "encode_rows",
    "grow_order",
    "keep_nearest",
    "largest_means",
    "renumber_rows",
    "sampled_products",
    "score_bounds",
    "small_loops",
    "sparse_difference_sums",
    "sparse_products",
]

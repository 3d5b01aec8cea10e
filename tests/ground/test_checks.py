"""Checks of what compiled loops trust."""

import numpy as np
import pytest
from scipy import sparse

from linkspread.ground.checks import check_sparse
from linkspread.ground.errors import LinkspreadError


def test_pointers_that_decrease_are_refused_even_where_the_last_is_zero():
    X = sparse.csr_array(np.eye(3))
    X.indptr[:] = [0, 1, 2, 0]
    with pytest.raises(LinkspreadError, match="view 'text' .* must not decrease"):
        check_sparse(X, name="view 'text'")

"""scikit-learn's own checks, on the form of LinkSpreading with a single view.

`EXPECTED` holds every check that fails on purpose, with its reason.
"""

import warnings

import pytest
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from linkspread import LinkSpreading
from linkspread.graphs import NeighborGraph

EXPECTED = {
    "LinkSpreading": {
        "check_fit_score_takes_y": (
            "the second argument of fit is called `links`: pairs or labels by view, "
            "of which a target y is the special case of one view"
        ),
        "check_n_features_in_after_fitting": (
            "rows with another number of columns are refused in other words than "
            "scikit-learn's"
        ),
        "check_dtype_object": (
            "labels in an array of objects are refused with a sentence of our own, "
            "and a cell that is no number is a ViewError, a ValueError that names the "
            "view, not a TypeError"
        ),
    },
    "NeighborGraph": {
        "check_dtype_object": (
            "a cell that is no number is a ViewError, a ValueError, not a TypeError"
        ),
        "check_estimator_sparse_tag": (
            "sparse tables are accepted, and the tags of the class do not say so yet"
        ),
        "check_fit2d_1sample": (
            "a single item is refused as too few for `n_neighbors`, in other words"
        ),
    },
}
ESTIMATORS = [LinkSpreading(n_neighbors=2), NeighborGraph(n_neighbors=2)]


def expected(estimator):
    """Return the checks that an estimator fails on purpose."""
    return EXPECTED[type(estimator).__name__]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=expected)
@pytest.mark.slow
def test_scikit_learn_accepts_the_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_no_exception_is_listed_that_is_not_needed(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about checks that are skipped
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {r["check_name"] for r in results if r["status"] == "failed"}
    assert failed == set(expected(estimator))

"""The certificate: 0 for the best answer, large for a wrong one, never too small."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from lad_problems import highs_objective, objective
from linkspread.compiled.certificate import relative_gaps
from linkspread.compiled.highs import solve_with_highs
from linkspread.compiled.lad import solve_lad


@pytest.fixture
def problem(rng):
    """Return a dictionary, a target, and the solution of HiGHS with its dual."""
    A, b = 2 * rng.random((12, 8)), rng.random(12)
    coefficients, duals = solve_with_highs(A, b)
    return A[None], b[None], coefficients, duals


def test_an_optimum_has_no_gap(problem):
    assert relative_gaps(*problem) <= 1e-9


def test_a_wrong_answer_has_a_large_gap(problem):
    A, b, coefficients, duals = problem
    assert relative_gaps(A, b, coefficients + 0.1, duals) > 0.1
    assert relative_gaps(A, b, np.zeros_like(coefficients), duals) > 0.1
    assert relative_gaps(A, b, -coefficients, duals) > 0.1


def test_a_wrong_dual_has_a_large_gap(problem):
    A, b, coefficients, duals = problem
    assert relative_gaps(A, b, coefficients, -duals) > 1
    assert_array_equal(relative_gaps(A, b, coefficients, 0 * duals), 1)


def test_the_gap_is_never_smaller_than_the_error(problem, rng):
    A, b, coefficients, duals = problem
    minimum = highs_objective(A[0], b[0])
    for size in (1e-9, 1e-6, 1e-3, 1.0, 1e3):
        w = coefficients + size * rng.standard_normal(coefficients.shape)
        y = duals + size * rng.standard_normal(duals.shape)
        value = objective(A[0], b[0], w[0])
        assert relative_gaps(A, b, w, y) >= (value - minimum) / value - 1e-12


def test_duals_outside_the_box_are_scaled_into_it(problem):
    A, b, coefficients, duals = problem
    expected = relative_gaps(A, b, coefficients, duals)
    assert_allclose(relative_gaps(A, b, coefficients, 7 * duals), expected, atol=1e-9)


def test_a_zero_problem_has_no_gap():
    zero = np.zeros((1, 2))
    assert_array_equal(relative_gaps(np.ones((1, 2, 2)), zero, zero, zero), 0)


def test_gaps_do_not_depend_on_the_size_of_the_target(problem):
    A, b, coefficients, duals = problem
    wrong = coefficients + 0.1
    expected = relative_gaps(A, b, wrong, duals)
    small = relative_gaps(A, 1e-30 * b, 1e-30 * wrong, duals)
    assert_allclose(small, expected, rtol=1e-9)


def test_the_gap_that_is_returned_is_that_of_the_answer(rng):
    A, b = rng.random((10, 6)), rng.random(10)
    coefficients, gap = solve_lad(A, b)
    assert objective(A, b, coefficients) * (1 - gap) <= highs_objective(A, b) + 1e-12


def test_highs_gives_up_without_an_error():
    # Entries beyond 1e15 are infinite to HiGHS.
    coefficients, duals = solve_with_highs(np.full((2, 2), 1e30), np.ones(2))
    assert coefficients.shape == duals.shape == (1, 2)
    assert np.isfinite(coefficients).all() and np.isfinite(duals).all()

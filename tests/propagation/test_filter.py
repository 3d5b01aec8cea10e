import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.polynomial import chebyshev

from linkspread.ground.errors import LinkspreadError
from linkspread.propagation import filter as filter_module
from linkspread.propagation.filter import fitted_response, separate, unseen_response

SETTINGS = [(0.0, 0.0), (0.025, 0.95), (0.3, 0.5), (0.6, 0.95), (0.95, 0.95)]
EIGENVALUES = np.linspace(-1, 1, 41)


def evaluate(separable, k=0):
    phi = chebyshev.chebval(EIGENVALUES, separable.left.T)
    psi = chebyshev.chebval(EIGENVALUES, separable.right.T)
    return phi.T @ separable.cores[k] @ psi


def on_grid(response):
    return response(EIGENVALUES[:, None], EIGENVALUES[None, :])


@pytest.mark.parametrize("alpha, beta", SETTINGS)
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-10])
def test_separated_filter_is_within_tolerance_relative_to_its_minimum(alpha, beta, tol):
    response = fitted_response((alpha, alpha / 2), beta)
    separable = separate((response,), tol=tol)
    wanted = on_grid(response)
    assert np.abs(evaluate(separable) - wanted).max() <= tol * wanted.min()
    assert separable.error <= tol


@pytest.mark.parametrize("alpha, beta", SETTINGS[1:])
def test_several_responses_share_their_functions(alpha, beta):
    fitted, unseen = (
        fitted_response((alpha, 0.1), beta),
        unseen_response((alpha, 0.1), beta),
    )
    separable = separate((fitted, unseen), tol=1e-8)
    for k, response in enumerate((fitted, unseen)):
        wanted = on_grid(response)
        assert np.abs(evaluate(separable, k) - wanted).max() <= 1e-8 * wanted.min()


def test_degree_follows_tolerance_and_alpha():
    def degree(alpha, tol):
        return separate((fitted_response((alpha, alpha), 0.95),), tol=tol).degrees

    assert degree(0.025, 1e-4) < degree(0.025, 1e-10) < degree(0.3, 1e-10)
    assert degree(0.3, 1e-4) < degree(0.3, 1e-10)


def test_a_view_without_smoothing_needs_no_products():
    separable = separate((fitted_response((0.0, 0.3), 0.5),), tol=1e-10)
    assert separable.degrees[0] == 0
    assert separable.degrees[1] > 0


def test_alpha_close_to_one_stays_short():
    separable = separate((fitted_response((0.99, 0.99), 0.99),), tol=1e-6)
    assert separable.error <= 1e-6
    assert len(separable.left) < 25 < separable.degrees[0]


def test_values_too_close_to_one_are_refused(monkeypatch):
    monkeypatch.setattr(filter_module, "MAX_DEGREE", 512)
    response = fitted_response((0.99999, 0.99999), 0.99999)
    with pytest.raises(LinkspreadError, match="degree of at most 512.*Use smaller"):
        separate((response,), tol=1e-6)


@given(
    alpha=st.tuples(st.floats(0, 0.9), st.floats(0, 0.9)),
    beta=st.floats(0, 0.95),
    l=st.floats(-1, 1),
    m=st.floats(-1, 1),
)
def test_early_stopping_converges_to_the_fixed_point(alpha, beta, l, m):
    l, m = np.array(l), np.array(m)
    fixed = fitted_response(alpha, beta)(l, m)
    stopped = fitted_response(alpha, beta, n_outer=600, n_inner=600)(l, m)
    np.testing.assert_allclose(stopped, fixed, rtol=1e-8)


@given(alpha=st.tuples(st.floats(0, 0.99), st.floats(0, 0.99)), beta=st.floats(0, 0.99))
def test_a_constant_signal_passes_unchanged(alpha, beta):
    one = np.array(1.0)
    np.testing.assert_allclose(fitted_response(alpha, beta)(one, one), 1.0, rtol=1e-9)

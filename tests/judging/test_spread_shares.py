"""Shares of spread links: pairs within a view, and first steps on a graph."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from linkspread.judging.explanation import pair_shares
from linkspread.judging.spread_shares import first_step
from linkspread.propagation.filter import fitted_response, unseen_response

EIGENVALUES = np.linspace(-1, 1, 41)


def test_pairs_within_a_view_are_added_to_their_mirror_images(rng):
    upper = np.triu(rng.standard_normal((6, 6)), 1) * (rng.random((6, 6)) < 0.6)
    pairs = sparse.csr_array(upper + upper.T)
    P = rng.standard_normal((6, 6))
    i, j = pairs.tocoo().coords
    found = pair_shares(i, j, pairs.data, pairs.data * P[i, j], within=True)
    assert_allclose(found.amounts, upper[upper != 0] * (P + P.T)[upper != 0])
    assert_allclose(found.weights, upper[upper != 0])
    assert_allclose((found.items[0], found.items[1]), np.nonzero(upper))


@pytest.mark.parametrize("response_of", [fitted_response, unseen_response])
@pytest.mark.parametrize("alpha", [(0.3, 0.6), (0.9, 0.0), (0.0, 0.5)])
def test_a_response_is_its_first_step_and_what_takes_none(response_of, alpha):
    l, m = EIGENVALUES[:, None], EIGENVALUES[None, :]
    response = response_of(alpha, 0.8)
    stepped, own = first_step(response)
    assert_allclose(l * stepped(l, m) + own(l, m), response(l, m), atol=1e-13)
    # What takes no step does not depend on the graph, and steps are smooth at 0.
    assert np.ptp(own(l, m) + 0 * l, axis=0).max() == 0
    near = stepped(np.full((1, 1), 1e-5), m), stepped(np.zeros((1, 1)), m)
    assert_allclose(*near, atol=1e-4)


def test_the_first_step_of_spread_links_is_what_new_items_get():
    """A fitted item is its own links and a new item with the same neighbours."""
    l, m = EIGENVALUES[:, None], EIGENVALUES[None, :]
    stepped, _ = first_step(fitted_response((0.3, 0.6), 0.8))
    assert_allclose(stepped(l, m), unseen_response((0.3, 0.6), 0.8)(l, m), atol=1e-13)

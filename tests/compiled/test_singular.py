"""Singular vectors: the fast way, and the plain one where that gives up."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import linkspread
from linkspread.compiled.singular import range_basis, svd


def fail(*_, **__):
    raise np.linalg.LinAlgError("SVD did not converge")


@pytest.fixture
def stubborn(monkeypatch):
    """Let NumPy's decomposition fail, as it does on a few matrices."""
    monkeypatch.setattr(np.linalg, "svd", fail)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4), (2, 0)])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_plain_way_gives_the_same(rng, monkeypatch, shape, full, dtype):
    matrix = rng.standard_normal(shape).astype(dtype)
    expected = np.linalg.svd(matrix, full_matrices=full)
    monkeypatch.setattr(np.linalg, "svd", fail)
    found = svd(matrix, full_matrices=full)
    assert [part.shape for part in found] == [part.shape for part in expected]
    assert_allclose(found[1], expected[1], rtol=1e-5)
    k = len(found[1])
    product = found[0][:, :k] * found[1] @ found[2][:k]
    assert_allclose(product, matrix, atol=1e-5)
    assert all(part.dtype == dtype for part in found)


def test_what_is_not_finite_stays_an_error(stubborn):
    with pytest.raises(np.linalg.LinAlgError):
        svd(np.full((2, 2), np.nan))


def test_links_spread_where_the_fast_way_gives_up(stubborn):
    data = linkspread.datasets.make_views(60, n_classes=3, random_state=0)
    model = linkspread.LinkSpreading(n_neighbors=5).fit(data.views(), data.labels)
    assert np.isfinite(model.scores("text", "image")).all()


def test_nobody_takes_the_decomposition_of_numpy_itself():
    room = Path(linkspread.__file__).parent
    takers = [
        p.name for p in room.rglob("*.py") if "linalg.svd(" in p.read_text("utf-8")
    ]
    assert takers == ["singular.py"]


def test_a_step_back_and_there_turns_a_basis_towards_the_largest(rng):
    U, V = (np.linalg.qr(rng.standard_normal((n, n)))[0] for n in (60, 40))
    table = U[:, :40] * 0.8 ** np.arange(40) @ V.T
    samples = rng.standard_normal((40, 8))

    def missed(**back):
        basis = range_basis(lambda block: table @ block, samples, **back)
        assert_allclose(basis.T @ basis, np.eye(8), atol=1e-12)
        return np.linalg.norm(table - basis @ (basis.T @ table))

    best = np.linalg.norm(0.8 ** np.arange(8, 40))
    there, back_and_there = missed(), missed(back=lambda block: table.T @ block)
    assert best <= back_and_there < (best + there) / 2

import numpy as np
import pytest

from linkspread.propagation import spread as spread_module
from linkspread.propagation.spread import compress, triangle


@pytest.mark.parametrize("shape", [(50, 7), (7, 50), (33, 33)])
def test_triangle_in_blocks_has_the_gram_matrix_of_the_whole(monkeypatch, rng, shape):
    monkeypatch.setattr(spread_module, "QR_ROWS", 10)
    tall = rng.standard_normal(shape)
    R = triangle(tall)
    assert R.shape == (min(shape), shape[1])
    np.testing.assert_allclose(R.T @ R, tall.T @ tall, atol=1e-12)


def test_compress_finds_the_rank_despite_dependent_columns(rng):
    left = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 9))
    right = rng.standard_normal((40, 9))
    core = rng.standard_normal((9, 9))
    left_basis, right_basis, (small,), error = compress(left, right, [core], tol=1e-10)
    assert small.shape == (3, 3)
    assert error <= 1e-10
    np.testing.assert_allclose(left_basis.T @ left_basis, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(
        left_basis @ small @ right_basis.T, left @ core @ right.T, atol=1e-8
    )


def test_compress_serves_several_products_with_the_same_bases(rng):
    left, right = rng.standard_normal((60, 8)), rng.standard_normal((40, 8))
    cores = [np.diag([1.0, 1e-12, 0, 0, 0, 0, 0, 0]), np.diag(np.arange(8.0))]
    left_basis, right_basis, small, _ = compress(left, right, cores, tol=1e-9)
    for core, reduced in zip(cores, small, strict=True):
        np.testing.assert_allclose(
            left_basis @ reduced @ right_basis.T, left @ core @ right.T, atol=1e-7
        )

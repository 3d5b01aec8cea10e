"""Least absolute deviations: as good as HiGHS, certified, and never at a loss."""

import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from threadpoolctl import threadpool_info

from lad_problems import GAP, highs_objective, laplacian_root, objective
from linkspread.compiled import lad
from linkspread.compiled.lad import solve_many, solve_with_highs
from linkspread.datasets import load_wikipedia
from linkspread.graphs import nearest_neighbors
from linkspread.graphs.distances import mean_distance, pairwise_distances
from linkspread.ground.errors import LinkspreadError

N_ROWS, N_NEIGHBORS = 200, 90
METRICS = {"text": "hellinger", "image": "chi2"}
SHAPES = [(1, 1), (1, 7), (7, 1), (5, 5), (20, 20), (40, 20), (15, 45), (90, 90)]


def neighborhoods(rng, n, *, k, width, n_duplicates=0):
    """Return Gaussian kernel blocks (n, k, k) and targets (n, k) of random points."""
    points = rng.standard_normal((n, k + 1, 4))
    points[:, 1 : 1 + n_duplicates] = points[:, k - n_duplicates : k]
    kernels = [np.exp(-((cdist(X, X) / width) ** 2)) for X in points]
    return np.array(kernels)[:, 1:, 1:], np.array(kernels)[:, 0, 1:]


def constrained(rng, n, **options):
    """Stack kernel blocks on roots of Laplacians, with targets of 0 for these."""
    A, targets = neighborhoods(rng, n, **options)
    roots = [laplacian_root(rng.integers(-1, 3, A.shape[2])) for _ in range(n)]
    return np.concatenate([A, roots], axis=1), np.hstack([targets, 0 * targets])


def solve_arrays(A, targets, **options):
    return solve_many(lambda rows: (A[rows], targets[rows]), len(A), **options)


def solve_lad(A, b):
    """Return the code of one target, and its gap."""
    coefficients, gaps, _ = solve_arrays(np.asarray(A)[None], np.asarray(b)[None])
    return coefficients[0], gaps[0]


def assert_optimal(A, targets, **options):
    coefficients, gaps, report = solve_arrays(A, targets, **options)
    assert report.largest_gap == gaps.max() <= GAP
    for matrix, b, w in zip(A, targets, coefficients, strict=True):
        assert_allclose(objective(matrix, b, w), highs_objective(matrix, b), rtol=1e-7)
    return report


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_random_problems_match_highs(rng, shape, scale):
    A = scale * rng.standard_normal((5, *shape)) / np.sqrt(shape[0])
    assert_optimal(A, rng.standard_normal((5, shape[0])))


@given(
    hnp.arrays(
        float,
        st.tuples(st.integers(1, 8), st.integers(2, 9)),
        elements=st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.0, 0.5, 1.0, 3.0]),
    )
)
def test_ties_zeros_and_equal_columns_match_highs(table):
    A, b = table[:, 1:], table[:, 0]
    coefficients, gap = solve_lad(A, b)
    assert gap <= GAP
    assert_allclose(objective(A, b, coefficients), highs_objective(A, b), atol=1e-7)


@pytest.mark.parametrize("width", [4.0, 2.0, 1.0, 0.5])
@pytest.mark.parametrize("n_duplicates", [0, 4])
@pytest.mark.parametrize("make", [neighborhoods, constrained])
def test_kernel_neighborhoods_match_highs(rng, make, width, n_duplicates):
    A, targets = make(rng, 5, k=30, width=width, n_duplicates=n_duplicates)
    assert assert_optimal(A, targets).n_fallback == 0


@pytest.mark.parametrize("width", [0.3, 0.2, 0.1, 0.05])
@pytest.mark.parametrize("make", [neighborhoods, constrained])
def test_narrow_kernels_are_certified(rng, make, width):
    A, targets = make(rng, 20, k=30, width=width, n_duplicates=3)
    coefficients, gaps, _ = solve_arrays(A, targets)
    assert gaps.max() <= GAP
    assert np.isfinite(coefficients).all()


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1e-8, 1e8, 1e300])
def test_tiny_and_huge_targets_are_certified(rng, size):
    A = rng.standard_normal((20, 20))
    b = rng.standard_normal(20)
    coefficients, gap = solve_lad(A, size * b)
    assert gap <= GAP
    assert_allclose(coefficients / size, solve_lad(A, b)[0], atol=1e-9)


def test_targets_of_unlike_sizes_are_certified(rng):
    A, _ = neighborhoods(rng, 10, k=40, width=0.5)
    targets = np.exp(-60 * rng.random((10, 40)))
    assert solve_arrays(A, targets)[1].max() <= GAP


def test_a_target_in_the_dictionary_is_found(rng):
    A = 5 * rng.standard_normal((30, 10))
    coefficients, gap = solve_lad(A, A[:, 3])
    assert_allclose(coefficients, np.eye(10)[3], atol=1e-12)
    assert gap <= 1e-12


def test_a_zero_target_is_answered_by_zero(rng):
    A, targets = rng.standard_normal((3, 6, 4)), rng.standard_normal((3, 6))
    targets[1] = 0
    coefficients, gaps, _ = solve_arrays(A, targets)
    assert_array_equal(coefficients[1], 0)
    assert gaps[1] == 0


def test_zero_columns_get_no_weight(rng):
    A = rng.standard_normal((12, 6))
    A[:, [1, 4]] = 0
    coefficients, gap = solve_lad(A, rng.standard_normal(12))
    assert_array_equal(coefficients[[1, 4]], 0)
    assert gap <= GAP


@pytest.mark.parametrize("rank", [1, 2, 5])
def test_rank_deficient_dictionaries_match_highs(rng, rank):
    A = rng.standard_normal((4, 25, rank)) @ rng.standard_normal((4, rank, 20))
    assert_optimal(A, rng.standard_normal((4, 25)))


def test_one_number_follows_the_closed_form():
    # |w| + |b - a w| is least at b / a when |a| > 1, and at 0 when |a| < 1.
    assert solve_lad([[-4.0]], [2.0])[0].tolist() == [-0.5]
    assert solve_lad([[0.5]], [2.0])[0].tolist() == [0.0]


@pytest.mark.parametrize("make", [neighborhoods, constrained])
def test_a_batch_equals_one_by_one(rng, make):
    A, targets = make(rng, 70, k=20, width=1.0)
    coefficients, gaps, report = solve_arrays(A, targets)
    single = [solve_lad(*problem) for problem in zip(A, targets, strict=True)]
    assert_array_equal(coefficients, [w for w, _ in single])
    assert_allclose(gaps, [gap for _, gap in single], atol=1e-12)
    assert (report.n_rows, report.n_fallback) == (70, 0)


def test_permuted_columns_permute_the_answer(rng):
    A, b, order = rng.random((30, 20)), rng.random(30), rng.permutation(20)
    assert_allclose(solve_lad(A[:, order], b)[0], solve_lad(A, b)[0][order], atol=1e-10)


def test_scaling_the_target_scales_the_answer(rng):
    A, b = rng.random((30, 20)), rng.random(30)
    coefficients, _ = solve_lad(A, b)
    assert_array_equal(solve_lad(A, 2.0**-70 * b)[0], 2.0**-70 * coefficients)
    assert_allclose(solve_lad(A, -3 * b)[0], -3 * coefficients, atol=1e-9)


@pytest.mark.parametrize("n_jobs", [1, 2, 3, None])
def test_any_number_of_threads_gives_the_same_bits(rng, n_jobs):
    A, targets = constrained(rng, 200, k=12, width=1.0)
    expected = solve_arrays(A, targets, n_jobs=1)
    found = solve_arrays(A, targets, n_jobs=n_jobs)
    assert_array_equal(found[0], expected[0])
    assert_array_equal(found[1], expected[1])


def test_single_precision_and_any_memory_order_are_taken(rng):
    A, b = rng.random((8, 5), dtype=np.float32), rng.random(8, dtype=np.float32)
    before = A.copy()
    coefficients, gap = solve_lad(np.asfortranarray(A), b)
    assert_array_equal(coefficients, solve_lad(A.astype(float), b.astype(float))[0])
    assert coefficients.dtype == np.float64 and gap <= GAP
    assert_array_equal(A, before)


def test_a_walk_that_fails_is_walked_again(rng, monkeypatch):
    A, targets = neighborhoods(rng, 6, k=15, width=1.0)
    walk, walks = lad.solve_batch, []

    def fail_once(A, exact, moved, limit, coefficients, duals, n_pivots):
        walks.append(len(A))
        walk(A, exact, moved, limit, coefficients, duals, n_pivots)
        if len(walks) == 1:
            coefficients[2:4] = np.nan  # one lost, and one that is merely bad
            coefficients[3] = 1.0

    monkeypatch.setattr(lad, "solve_batch", fail_once)
    report = assert_optimal(A, targets)
    assert walks == [6, 2]
    assert (report.n_retried, report.n_fallback) == (2, 0)


def test_walks_without_steps_fall_back_to_highs(rng, monkeypatch):
    A, targets = neighborhoods(rng, 6, k=15, width=1.0)
    targets[0] = 0
    monkeypatch.setattr(lad, "PIVOTS_PER_VARIABLE", 0)
    report = assert_optimal(A, targets)
    assert (report.n_retried, report.n_fallback, report.n_pivots) == (5, 5, 0)


def test_a_fallback_that_fails_leaves_an_honest_gap(rng, monkeypatch):
    def give_up(A, target):
        return np.zeros((1, A.shape[1])), np.zeros((1, len(A)))

    monkeypatch.setattr(lad, "PIVOTS_PER_VARIABLE", 0)
    monkeypatch.setattr(lad, "solve_with_highs", give_up)
    A, b = 9 * np.eye(4), np.ones(4)
    coefficients, gap = solve_lad(A, b)
    minimum = 4 / 9
    excess = objective(A, b, coefficients) - minimum
    assert_array_equal(coefficients, 0)
    assert gap >= excess / objective(A, b, coefficients) > 0.5


def test_dictionaries_beyond_all_bounds_give_finite_answers():
    coefficients, gap = solve_lad([[1e300, 1.0], [1.0, -1e300]], [1.0, 1.0])
    assert np.isfinite(coefficients).all()
    assert 0 <= gap <= 1


def test_an_interrupt_leaves_the_threads_in_order(rng):
    A, targets = neighborhoods(rng, 300, k=10, width=1.0)
    before = [pool["num_threads"] for pool in threadpool_info()]

    def interrupted(rows):
        if rows.start >= 128:
            raise KeyboardInterrupt
        return A[rows], targets[rows]

    with pytest.raises(KeyboardInterrupt):
        solve_many(interrupted, 300, n_jobs=2)
    assert [pool["num_threads"] for pool in threadpool_info()] == before
    assert solve_arrays(A, targets, n_jobs=2)[1].max() <= GAP


def test_progress_is_shown_on_request(rng, caplog):
    A, targets = neighborhoods(rng, 3, k=5, width=1.0)
    with caplog.at_level("INFO", logger="linkspread"):
        solve_arrays(A, targets, verbose=True, label="codes of text")
    assert "codes of text: done" in caplog.text


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 1])
def test_affinities_that_are_not_finite_are_refused(value, place):
    problem = [np.eye(3), np.ones(3)]
    problem[place][-1] = value
    with pytest.raises(LinkspreadError, match="must be finite, got NaN or infinity"):
        solve_lad(*problem)


@pytest.mark.parametrize("tol", [0, -1e-7, np.nan, np.inf, "small"])
def test_a_bad_tolerance_is_refused(tol):
    with pytest.raises(LinkspreadError, match="`tol` must be a positive number"):
        solve_arrays(np.eye(2)[None], np.ones((1, 2)), tol=tol)


@pytest.fixture
def problem(rng):
    """Return a dictionary, a target, and the solution of HiGHS with its dual."""
    A, b = 2 * rng.random((12, 8)), rng.random(12)
    coefficients, duals = solve_with_highs(A, b)
    return A[None], b[None], coefficients, duals


def gaps_of(A, targets, coefficients, duals):
    values = lad.objectives(A, targets, coefficients)
    return lad.relative_gaps(values, lad.lower_bounds(A, targets, duals))


def test_an_optimum_has_no_gap(problem):
    assert gaps_of(*problem) <= 1e-9


def test_a_wrong_answer_has_a_large_gap(problem):
    A, b, coefficients, duals = problem
    assert gaps_of(A, b, coefficients + 0.1, duals) > 0.1
    assert gaps_of(A, b, np.zeros_like(coefficients), duals) > 0.1
    assert gaps_of(A, b, -coefficients, duals) > 0.1


def test_a_wrong_dual_has_a_large_gap(problem):
    A, b, coefficients, duals = problem
    assert gaps_of(A, b, coefficients, -duals) > 1
    assert_array_equal(gaps_of(A, b, coefficients, 0 * duals), 1)


def test_the_gap_is_never_smaller_than_the_error(problem, rng):
    A, b, coefficients, duals = problem
    minimum = highs_objective(A[0], b[0])
    for size in (1e-9, 1e-6, 1e-3, 1.0, 1e3):
        w = coefficients + size * rng.standard_normal(coefficients.shape)
        y = duals + size * rng.standard_normal(duals.shape)
        value = objective(A[0], b[0], w[0])
        assert gaps_of(A, b, w, y) >= (value - minimum) / value - 1e-12


def test_duals_outside_the_box_are_scaled_into_it(problem):
    A, b, coefficients, duals = problem
    expected = gaps_of(A, b, coefficients, duals)
    assert_allclose(gaps_of(A, b, coefficients, 7 * duals), expected, atol=1e-9)


def test_a_zero_problem_has_no_gap():
    zero = np.zeros((1, 2))
    assert_array_equal(gaps_of(np.ones((1, 2, 2)), zero, zero, zero), 0)


def test_gaps_do_not_depend_on_the_size_of_the_target(problem):
    A, b, coefficients, duals = problem
    wrong = coefficients + 0.1
    expected = gaps_of(A, b, wrong, duals)
    small = gaps_of(A, 1e-30 * b, 1e-30 * wrong, duals)
    assert_allclose(small, expected, rtol=1e-9)


def test_highs_gives_up_without_an_error():
    # Entries beyond 1e15 are infinite to HiGHS.
    coefficients, duals = solve_with_highs(np.full((2, 2), 1e30), np.ones(2))
    assert coefficients.shape == duals.shape == (1, 2)
    assert np.isfinite(coefficients).all() and np.isfinite(duals).all()


@pytest.fixture(scope="module")
def wikipedia(data_folder):
    if not (data_folder / "wikipedia").is_dir():
        pytest.skip("LINKSPREAD_DATA holds no folder wikipedia")
    return load_wikipedia(data_folder / "wikipedia")


@pytest.fixture(scope="module", params=METRICS)
def real_neighborhoods(request, wikipedia):
    """Return mean distance, all distances among some items and their neighbours."""
    X, metric = wikipedia.views[request.param], METRICS[request.param]
    rows = np.random.default_rng(0).permutation(len(X))[:N_ROWS]
    ids, _ = nearest_neighbors(X, n_neighbors=N_NEIGHBORS, metric=metric)
    groups = np.hstack([rows[:, None], ids[rows]])
    distances = [pairwise_distances(X[g], X[g], metric=metric) for g in groups]
    labels = np.full(len(X), -1)
    labels[wikipedia.train] = wikipedia.labels[wikipedia.train]
    roots = [laplacian_root(labels[group[1:]]) for group in groups]
    return mean_distance(X, metric=metric), np.array(distances), np.array(roots)


@pytest.mark.slow
@pytest.mark.parametrize("share", [1.0, 0.5, 0.25, 0.1])
@pytest.mark.parametrize("is_constrained", [False, True])
def test_real_neighborhoods_are_certified(real_neighborhoods, share, is_constrained):
    width, distances, roots = real_neighborhoods
    K = np.exp(-((distances / (share * width)) ** 2))
    A, targets = K[:, 1:, 1:], K[:, 0, 1:]
    if is_constrained:
        A = np.concatenate([A, roots], axis=1)
        targets = np.hstack([targets, 0 * targets])
    coefficients, gaps, report = solve_many(lambda r: (A[r], targets[r]), N_ROWS)
    assert gaps.max() <= GAP
    assert report.n_fallback == 0
    assert np.isfinite(coefficients).all()

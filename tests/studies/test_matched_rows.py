"""Baselines of matched pairs against a few dense lines each, and on UCI digits."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone

from linkspread import Links
from linkspread.graphs import NeighborGraph
from linkspread.ground.errors import FewLinksError, LinkspreadError, ViewError
from linkspread.studies.baselines import (
    AnchorSimilarity,
    CanonicalSimilarity,
    CorrelationMatching,
    CosineMatching,
    KernelSmoother,
    RidgeMap,
    RidgeToIdentity,
    SpectralMatching,
)
from linkspread.studies.baselines.matching import corrected_scores
from linkspread.studies.baselines.spreading import SpectralEmbedding

WAY = {"source": "text", "target": "image"}

SIZES = {"text": 60, "image": 45}
WIDTH = 8


def unit(A):
    return A / np.linalg.norm(A, axis=1, keepdims=True)


def dense_ridge(A, B, x, y, ridge):
    """Cosines of x, mapped from A to B, with y; all centred by the matched rows."""
    a, b = A - A.mean(0), B - B.mean(0)
    inner = a.T @ a
    shift = ridge * np.trace(inner) / len(inner) * np.eye(len(inner))
    W = np.linalg.pinv(inner + shift) @ a.T @ b
    return unit((x - A.mean(0)) @ W) @ unit(y - B.mean(0)).T


def dense_ridge_both(A, B, x, y, ridge):
    there, back = dense_ridge(A, B, x, y, ridge), dense_ridge(B, A, y, x, ridge)
    return (there + back.T) / 2


def dense_identity(A, B, x, y, ridge):
    inner = A.T @ A
    shift = ridge * np.trace(inner) / len(inner) * np.eye(len(inner))
    W = np.linalg.solve(inner + shift, A.T @ B + shift)
    return unit(x @ W) @ unit(y).T


def dense_identity_both(A, B, x, y, ridge):
    there, back = dense_identity(A, B, x, y, ridge), dense_identity(B, A, y, x, ridge)
    return (there + back.T) / 2


def whitening(C, reg):
    values, vectors = np.linalg.eigh(C + reg * np.trace(C) / len(C) * np.eye(len(C)))
    return vectors / np.sqrt(values)


def canonical(A, B, x, y, reg):
    """Return canonical components of x and y, and the correlations."""
    a, b, n = A - A.mean(0), B - B.mean(0), len(A)
    P, Q = whitening(a.T @ a / n, reg), whitening(b.T @ b / n, reg)
    U, rho, Vt = np.linalg.svd(P.T @ a.T @ b @ Q / n)
    r = np.sum(rho > 1e-12 * rho[0])
    left, right = (x - A.mean(0)) @ P @ U[:, :r], (y - B.mean(0)) @ Q @ Vt[:r].T
    return left, right, rho[:r]


def dense_cca(A, B, x, y, reg):
    left, right, _ = canonical(A, B, x, y, reg)
    return unit(left) @ unit(right).T


def dense_csa(A, B, x, y, reg, s=None):
    left, right, rho = canonical(A, B, x, y, reg)
    return (unit(left[:, :s]) * rho[:s]) @ unit(right[:, :s]).T


def described(A, x, k, power, mean):
    cosines = np.maximum(unit(x - mean) @ unit(A - mean).T, 0)
    for row in cosines:
        row[np.argsort(-row)[k:]] = 0
    return unit(cosines**power)


def dense_asif(A, B, x, y, k, power, *, centered):
    means = (A.mean(0), B.mean(0)) if centered else (0, 0)
    left = described(A, x, k, power, means[0])
    return left @ described(B, y, k, power, means[1]).T


def dense_csls(F, k, *, items=None):
    """Correct F; the columns' means are those of the fitted rows, `items`."""
    fitted = F if items is None else items
    rows, cols = np.sort(F, 1)[:, -k:].mean(1), np.sort(fitted, 0)[-k:].mean(0)
    return 2 * F - rows[:, None] - cols


CASES = {
    "ridge": (RidgeMap(ridge=0.3), lambda *v: dense_ridge_both(*v, 0.3)),
    "ridge into": (RidgeMap(ridge=0.3, space="image"), lambda *v: dense_ridge(*v, 0.3)),
    "least squares": (RidgeMap(ridge=0), lambda *v: dense_ridge_both(*v, 0)),
    "cca": (
        CorrelationMatching(reg=0.2, scaling="none"),
        lambda *v: dense_cca(*v, 0.2),
    ),
    "csa": (CanonicalSimilarity(reg=0.2), lambda *v: dense_csa(*v, 0.2)),
    "csa of 3": (
        CanonicalSimilarity(reg=0.2, n_components=3),
        lambda *v: dense_csa(*v, 0.2, 3),
    ),
    "asif": (
        AnchorSimilarity(n_neighbors=5, power=3),
        lambda *v: dense_asif(*v, 5, 3, centered=True),
    ),
    "asif of the paper": (
        AnchorSimilarity(n_neighbors=5, power=8, centered=False),
        lambda *v: dense_asif(*v, 5, 8, centered=False),
    ),
    "cosine": (CosineMatching(), lambda A, B, x, y: unit(x) @ unit(y).T),
    "identity": (RidgeToIdentity(ridge=0.3), lambda *v: dense_identity_both(*v, 0.3)),
    "identity into": (
        RidgeToIdentity(ridge=0.3, space="image"),
        lambda *v: dense_identity(*v, 0.3),
    ),
}
# Also those without five dense lines for new rows.
MODELS = {name: model for name, (model, _) in CASES.items()} | {
    "spectral": SpectralMatching(n_components=6, n_neighbors=5),
    "smoother": KernelSmoother(),
}


@pytest.fixture
def views(rng):
    mixing = rng.standard_normal((WIDTH, WIDTH)) / 2 + np.eye(WIDTH)
    hidden = rng.standard_normal((SIZES["text"], WIDTH))
    noise = rng.standard_normal((SIZES["image"], WIDTH)) / 5
    return {"text": hidden + 0.5, "image": hidden[: SIZES["image"]] @ mixing + noise}


@pytest.fixture
def pairs(rng):
    """Return rows of both views that match: the same positions, in any order."""
    return rng.permutation(SIZES["image"])[:20]


def matched(rows, cols):
    weights = np.ones(len(rows))
    return Links.from_pairs(
        np.column_stack([rows, cols, weights]), between=("text", "image")
    )


@pytest.mark.parametrize("name", CASES)
def test_scores_are_those_of_a_few_dense_lines(name, views, pairs, rng):
    model, dense = CASES[name]
    model = clone(model).fit(views, matched(pairs, pairs))
    X, Y = views["text"], views["image"]
    matching = X[pairs], Y[pairs]
    new = rng.standard_normal((7, WIDTH))
    expected = dense(*matching, X, Y)
    new_there, new_back = dense(*matching, new, Y), dense(*matching, X, new).T
    assert_allclose(corrected_scores(expected, 4), dense_csls(expected, 4))
    assert_allclose(model.scores("text", "image"), expected, atol=1e-8)
    assert_allclose(model.scores("image", "text"), expected.T, atol=1e-8)
    assert_allclose(model.scores("text", "image", rows=new), new_there, atol=1e-8)
    assert_allclose(model.scores("image", "text", rows=new), new_back, atol=1e-8)
    searching, found = model.embeddings("text", "image")
    assert_allclose(searching @ found.T, expected, atol=1e-8)
    at = rng.integers(0, SIZES["image"], (2, 9))
    assert_allclose(model.pair_scores("text", "image", *at), expected[*at], atol=1e-8)


def test_more_columns_than_pairs_are_solved_as_well(rng):
    X, Y = rng.standard_normal((50, 40)), rng.standard_normal((50, 30))
    links = Links.from_matched(("text", "image"), 12)
    for model, dense in [
        (RidgeMap(ridge=0.3), dense_ridge_both),
        (RidgeToIdentity(ridge=0.3), dense_identity_both),
    ]:
        Y = Y if isinstance(model, RidgeMap) else rng.standard_normal(X.shape)
        model.fit({"text": X, "image": Y}, links)
        expected = dense(X[:12], Y[:12], X, Y, 0.3)
        assert_allclose(model.scores("text", "image"), expected, atol=1e-8)


def test_links_given_twice_count_as_repeated_rows(views):
    rows, cols = [0, 0, 1, 2, 2, 2, 5], [1, 1, 0, 2, 2, 2, 7]
    links = matched(rows, cols)
    X, Y = views["text"], views["image"]
    for model, dense in [
        (RidgeMap(ridge=0.3), dense_ridge_both),
        (RidgeToIdentity(ridge=0.3), dense_identity_both),
    ]:
        expected = dense(X[rows], Y[cols], X, Y, 0.3)
        assert_allclose(model.fit(views, links).scores("text", "image"), expected)


def test_spectral_matching_is_correlation_of_eigenvectors(views, pairs, rng):
    model = SpectralMatching(n_components=6, n_neighbors=5, reg=0.2)
    model.fit(views, matched(pairs, pairs))
    graphs = {v: NeighborGraph(5).fit(X) for v, X in views.items()}
    values, embedded = {}, {}
    for v, graph in graphs.items():
        W = graph.affinity_.toarray()
        degrees = W.sum(1)
        own, vectors = np.linalg.eigh(W / np.sqrt(np.outer(degrees, degrees)))
        values[v] = own[::-1][:6]
        turned = vectors[:, ::-1][:, :6] / np.sqrt(degrees / degrees.mean())[:, None]
        embedded[v] = np.sqrt(len(W)) * turned
        assert_allclose(W @ embedded[v] / degrees[:, None], embedded[v] * values[v],
                        atol=1e-8)  # fmt: skip
    X, Y = embedded["text"], embedded["image"]
    expected = dense_cca(X[pairs], Y[pairs], X, Y, 0.2)
    assert_allclose(model.scores("text", "image"), expected, atol=1e-8)
    new = rng.standard_normal((7, WIDTH))
    near = graphs["text"].extend(new).toarray()
    x = near / near.sum(1, keepdims=True) @ X / values["text"]
    expected = dense_cca(X[pairs], Y[pairs], x, Y, 0.2)
    assert_allclose(model.scores("text", "image", rows=new), expected, atol=1e-8)


@pytest.mark.parametrize("n_parts", [1, 3, 8])
def test_iterations_find_the_leading_eigenvectors_of_all_parts(n_parts, rng):
    X = rng.standard_normal((300, 3)) + 100 * (np.arange(300) % n_parts)[:, None]
    few, many = (
        SpectralEmbedding(X, n_components=k, n_neighbors=8, metric="euclidean")
        for k in (6, 80)
    )
    assert_allclose(few.values, many.values[:6])
    if n_parts < 6:  # else any six of eight equal ones will do
        inside = np.linalg.lstsq(many.vectors[:, :6], few.vectors)[0]
        assert_allclose(many.vectors[:, :6] @ inside, few.vectors, atol=1e-8)
    assert_allclose(few.transform(X[:4]).shape, (4, 6))


@pytest.mark.parametrize("name", MODELS)
def test_permuting_items_permutes_the_scores(name, views, pairs, rng):
    order = rng.permutation(SIZES["text"])
    place = np.argsort(order)
    model, turned = clone(MODELS[name]), clone(MODELS[name])
    model.fit(views, matched(pairs, pairs))
    turned.fit(
        views | {"text": views["text"][order]},
        matched(place[pairs][::-1], pairs[::-1]),
    )
    expected = model.scores("text", "image")[order]
    assert_allclose(turned.scores("text", "image"), expected, atol=1e-8)


@pytest.mark.parametrize("name", MODELS)
def test_sparse_tables_score_as_dense_ones(name, views, pairs):
    views = {view: np.maximum(X, 0) for view, X in views.items()}
    model, dense = clone(MODELS[name]), clone(MODELS[name])
    tables = {view: sparse.csr_array(X) for view, X in views.items()}
    model.fit(tables, matched(pairs, pairs))
    expected = dense.fit(views, matched(pairs, pairs)).scores("text", "image")
    assert_allclose(model.scores("text", "image"), expected, atol=1e-8)
    new = views["text"][:3]
    assert_allclose(
        model.embed(sparse.csr_array(new), **WAY) @ model.embeddings(
            "text", "image")[1].T,
        dense.scores("text", "image", rows=new),
        atol=1e-8,
    )  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_baseline_searches_and_pickles(name, views):
    model = clone(MODELS[name])
    links = Links.from_matched(("text", "image"), 30)
    model.fit(views, links)
    again = pickle.loads(pickle.dumps(model))
    row = model.scores("text", "image", rows=[4])[0]
    ids, scores = again.search(4, source="text", target="image", n_results=5)
    assert ids.tolist() == np.argsort(-row, kind="stable")[:5].tolist()
    assert_allclose(scores, row[ids])


def test_hubs_are_found_less_often(rng):
    X = rng.standard_normal((80, 30))
    # Items 0 to 4 are near to everything: the mean of the queries, a little moved.
    views = {"text": X + 1, "image": X + 1 + rng.standard_normal((80, 30))}
    views["image"][:5] = 1 + 0.1 * X[:5]
    scores = CosineMatching().fit(views).scores("text", "image")
    plain, corrected = scores.argmax(1), corrected_scores(scores, 10).argmax(1)
    assert np.sum(corrected < 5) < np.sum(plain < 5) / 2
    assert np.sum(corrected == np.arange(80)) > np.sum(plain == np.arange(80))


def test_more_neighbours_than_items_take_all(views, pairs):
    plain = RidgeMap().fit(views, matched(pairs, pairs)).scores("text", "image")
    expected = 2 * plain - plain.mean(1)[:, None] - plain.mean(0)
    assert_allclose(corrected_scores(plain, 1000), expected, atol=1e-10)


def test_all_components_are_kept_unless_fewer_are_asked_for(rng):
    X = rng.standard_normal((150, 70))
    views = {"text": X, "image": X + rng.standard_normal(X.shape)}
    links = Links.from_matched(("text", "image"), 150)
    for model in (CorrelationMatching, CanonicalSimilarity):
        assert model().fit(views, links).embed(
            X[:1], source="text", target="image"
        ).shape == (1, 70)
        some = model(n_components=60).fit(views, links)
        assert some.embed(X[:1], **WAY).shape == (1, 60)


def test_a_large_ridge_to_the_identity_is_the_cosine(views, pairs):
    model = RidgeToIdentity(ridge=1e12).fit(views, matched(pairs, pairs))
    cosine = CosineMatching().fit(views).scores("text", "image")
    assert_allclose(model.scores("text", "image"), cosine, atol=1e-8)


def test_the_cosine_takes_any_links_and_leaves_out_what_they_judge(views, pairs):
    labels = {view: np.arange(n) % 3 for view, n in SIZES.items()}
    expected = CosineMatching().fit(views).scores("text", "image")
    for links in (labels, matched(pairs, pairs)):
        model = CosineMatching().fit(views, links)
        assert_allclose(model.scores("text", "image"), expected)
    model = CosineMatching().fit(views, matched([3], [3]))
    ids, _ = model.search(3, source="text", target="image", n_results=99, judged=False)
    assert len(ids) == SIZES["image"] - 1
    assert 3 not in ids


def test_views_that_share_no_space_are_refused_by_name(views, rng):
    other = views | {"sound": rng.standard_normal((40, 3))}
    model = CosineMatching().fit(other)
    with pytest.raises(ViewError, match="'text' and 'sound' must have the same"):
        model.scores("text", "sound")
    with pytest.raises(LinkspreadError, match="must be views of the fit"):
        model.scores("text", "smell")
    with pytest.raises(LinkspreadError, match="`source` and `target` must differ"):
        model.scores("text", "text")
    del other["image"]
    message = "'text' and 'sound' must have the same columns.* got 8 and 3.*RidgeMap"
    with pytest.raises(ViewError, match=message):
        CosineMatching().fit(other)
    links = Links.from_matched(("text", "sound"), 10)
    with pytest.raises(ViewError, match=message):
        RidgeToIdentity().fit(other, links)


@pytest.mark.parametrize("model", [RidgeMap(), RidgeToIdentity(), AnchorSimilarity()])
def test_those_that_need_matched_items_say_so(model, views):
    labels = {view: np.arange(n) % 3 for view, n in SIZES.items()}
    with pytest.raises(FewLinksError, match="must-links between single items"):
        model.fit(views, labels)


def test_one_pair_is_too_few_for_a_ridge_map(views):
    with pytest.raises(FewLinksError, match="view 'text' must vary over its matched"):
        RidgeMap().fit(views, matched([3], [3]))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RidgeMap(ridge=-1), "`ridge` must be a number of at least 0"),
        (RidgeMap(space="smell"), "`space` must be 'both' or a view"),
        (RidgeMap(scaling="log"), "'text': `scaling` must be one of"),
        (RidgeToIdentity(ridge=0), "`ridge` must be a positive number"),
        (RidgeToIdentity(space=3), "`space` must be 'both' or a view"),
        (CanonicalSimilarity(n_components=0), "`n_components` must be a positive"),
        (CanonicalSimilarity(reg=-1), "`reg` must be a number of at least 0"),
        (AnchorSimilarity(n_neighbors=0), "`n_neighbors` must be a positive"),
        (AnchorSimilarity(power=0), "`power` must be a positive number"),
        (SpectralMatching(n_components=0), "'text': `n_components` must be a posit"),
        (SpectralMatching(n_neighbors=99), "'text': `n_neighbors` must be"),
        (SpectralMatching(reg=-1), "`reg` must be a number of at least 0"),
    ],
)
def test_a_wrong_parameter_is_refused_in_one_sentence(model, message, views, pairs):
    with pytest.raises(LinkspreadError, match=message):
        model.fit(views, matched(pairs, pairs))


@pytest.fixture(scope="module")
def digits(data_folder):
    """Return two views of UCI digits, 100 matched rows and all others."""
    folder = data_folder / "digits"
    if not folder.is_dir():
        pytest.skip(f"{folder} is missing")
    read = {
        view: np.loadtxt(folder / f"mfeat-{view}.csv", delimiter=",", skiprows=1)
        for view in ("kar", "pix")
    }
    views = {view: table[:, :-1] for view, table in read.items()}  # not the class
    pairs = np.random.default_rng(0).choice(2000, 100, replace=False)
    return views, pairs, np.setdiff1d(np.arange(2000), pairs)


def recall_at_1(scores):
    """Return how often the partner comes first, there and back."""
    own = np.arange(len(scores))
    return np.mean(scores.argmax(1) == own), np.mean(scores.argmax(0) == own)


# Recall at 1 among the 1,900 rows without a match, plain and less hubs, of the dense
# lines above (.973 .966 | .977 .980 for the first), less .02.
ON_DIGITS = {
    "ridge": (RidgeMap(), 0.945, 0.955),
    "ridge into pixels": (RidgeMap(space="pix"), 0.94, 0.96),
    "cca": (CorrelationMatching(scaling="none"), 0.90, 0.925),
    "csa": (CanonicalSimilarity(), 0.915, 0.94),
    "asif": (AnchorSimilarity(), 0.91, 0.935),
    "spectral": (SpectralMatching(n_components=60), 0.2, 0.235),
}


@pytest.mark.parametrize("name", ON_DIGITS)
@pytest.mark.slow
def test_partners_among_all_digits(name, digits):
    views, pairs, others = digits
    model, plain, corrected = ON_DIGITS[name]
    links = Links.from_pairs(
        np.column_stack([pairs, pairs, np.ones(100)]), between=("kar", "pix")
    )
    scores = clone(model).fit(views, links).scores("kar", "pix")
    both = np.ix_(others, others)
    assert min(recall_at_1(scores[both])) > plain
    assert min(recall_at_1(corrected_scores(scores, 10)[both])) > corrected

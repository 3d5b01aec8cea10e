"""LinkSpreading that fits: dense oracles, new items, several views, choices."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from linkspread import Links, LinkSpreading
from linkspread.datasets import make_views as make_synthetic
from linkspread.exceptions import LinkspreadError
from linkspread.fitting.view_kernels import FeatureKernel
from linkspread.graphs import knn_graph, normalize
from linkspread.metrics import mean_average_precision
from small_views import KINDS, SIZES, make_links, make_views

FITTED = {"n_neighbors": 4, "alpha": 0.8, "objective": "ridge", "ridge": 0.5}


def kernel_of(X, alpha=0.8):
    """Return the graph kernel of a view, with a unit diagonal, whole."""
    S = normalize(knn_graph(X, n_neighbors=4)).toarray()
    P = np.linalg.inv(np.eye(len(S)) - alpha * S)
    return P / np.sqrt(np.outer(np.diag(P), np.diag(P)))


def fitted_values(K, memberships, ridge):
    """Return the values of all items from a dense solve of the labelled ones."""
    masses = memberships.sum(axis=1)
    rows = np.flatnonzero(masses)
    system = K[np.ix_(rows, rows)] + np.diag(ridge / masses[rows])
    targets = memberships[rows] / masses[rows][:, None]
    return K[:, rows] @ np.linalg.solve(system, targets)


def test_label_scores_are_products_of_dense_fits():
    views, links = make_views(), make_links("labels")
    model = LinkSpreading(**FITTED).fit(views, links)
    values = []
    for view, X in views.items():
        U = np.asarray(links.memberships(view).toarray())
        share = U.sum(axis=0) / U.sum()
        # Fitting memberships less their mean is the same as centring the fit.
        values.append(fitted_values(kernel_of(X), U, 0.5))
        values[-1] = values[-1] - np.outer(values[-1].sum(axis=1), share)
    assert_allclose(model.scores("text", "image"), values[0] @ values[1].T, atol=1e-8)


def test_pair_scores_are_the_dense_fit():
    views, links = make_views(), make_links("many pairs")
    model = LinkSpreading(**FITTED, balance="literal", tol=1e-9).fit(views, links)
    K_x, K_y = kernel_of(views["text"]), kernel_of(views["image"])
    Z = links.resolve(SIZES).between("text", "image", balance="literal").tocoo()
    i, j, z = Z.row, Z.col, Z.data
    H = K_x[np.ix_(i, i)] * K_y[np.ix_(j, j)]
    c = np.linalg.solve(H + 0.5 * np.diag(1 / np.abs(z)), np.sign(z))
    expected = K_x[:, i] @ np.diag(c) @ K_y[j]
    assert_allclose(model.scores("text", "image"), expected, atol=1e-7)
    assert set(model.loo_error_) == {("text", "image")}


@pytest.mark.parametrize("kind", ["labels", "many pairs"])
def test_a_large_ridge_ranks_as_spreading_does(kind):
    views, links = make_views(), make_links(kind)
    parameters = {**FITTED, "ridge": 1e6, "balance": "literal", "tol": 1e-9}
    model = LinkSpreading(**parameters, unit_diagonal=False).fit(views, links)
    # What is spread is every link by the product of both views' smoothing.
    smooth = []
    for view in ("text", "image"):
        S = normalize(knn_graph(views[view], n_neighbors=4)).toarray()
        smooth.append(0.2 * np.linalg.inv(np.eye(len(S)) - 0.8 * S))
    Z = links.resolve(SIZES).between("text", "image", balance="literal").toarray()
    spread = smooth[0] @ Z @ smooth[1]
    scores = model.scores("text", "image")
    scale = np.sum(scores * spread) / np.sum(scores**2)
    assert_allclose(scale * scores, spread, atol=1e-4 * np.abs(spread).max())


@pytest.mark.parametrize("objective", ["ridge", "auto"])
@pytest.mark.parametrize("kind", KINDS)
def test_new_rows_that_repeat_fitted_ones_are_ranked_alike(objective, kind):
    views, links = make_views(), make_links(kind)
    model = LinkSpreading(n_neighbors=6, objective=objective, alpha=0.6)
    model.fit(views, links)
    for source, target in (("text", "image"), ("image", "text")):
        old = model.scores(source, target)
        new = model.scores(source, target, rows=views[source])
        assert new.shape == old.shape
        likeness = [np.corrcoef(a, b)[0, 1] for a, b in zip(old, new, strict=True)]
        # A fitted item knows its own partner; a new one only those of its neighbours.
        assert np.median(likeness) > (0.65 if kind == "matched" else 0.75)
        ids, scores = model.search(views[source][:2], source=source, target=target)
        assert_allclose(scores[0], np.sort(new[0])[::-1][:10], atol=1e-8)


@pytest.mark.parametrize("mass", ["none", "length", "sum", "posterior"])
@pytest.mark.parametrize("kernel", ["graph", "affinity", "linear", "graph+affinity"])
def test_every_kernel_and_mass_learns_from_labels(kernel, mass):
    data = make_synthetic(120, n_classes=3, random_state=0)
    views, y = data.views(), data.labels
    known = {v: np.where(np.arange(120) < 40, own, -1) for v, own in y.items()}
    model = LinkSpreading(objective="ridge", kernel=kernel, mass=mass, alpha=0.8)
    block = model.fit(views, known).scores("text", "image")[40:, 40:]
    assert mean_average_precision(block, y["text"][40:], y["image"][40:]) > 0.6
    assert set(model.loo_error_) == {"text", "image"}
    if mass == "length":
        lengths = np.linalg.norm(model.spreads_["text", "image"].left, axis=1)
        assert_allclose(lengths, 1)


def test_rows_of_all_scores_have_length_one():
    model = LinkSpreading(**FITTED, mass="length", tol=1e-9)
    views, links = make_views(), make_links("many pairs")
    plain = LinkSpreading(**FITTED, tol=1e-9).fit(views, links).scores("text", "image")
    block = model.fit(views, links).scores("text", "image")
    rows, columns = (np.linalg.norm(plain, axis=a) for a in (1, 0))
    assert_allclose(block, plain / np.outer(rows, columns), atol=1e-6)


def test_auto_uses_labels_and_pairs_of_three_views():
    views = make_views("text", "image", "sound")
    links = make_links("mixture") + Links.from_pairs(
        [(k, k, 1.0 if k % 2 else -1.0) for k in range(10)], between=("image", "sound")
    )
    model = LinkSpreading.tuned(views, links)
    assert "labels of 'text' are fitted by" in model.choice_
    assert "pairs of 'image' and 'sound'" in model.choice_
    for source, target in [("text", "image"), ("sound", "image"), ("text", "text")]:
        ids, scores = model.search(0, source=source, target=target, n_results=3)
        assert ids.shape == (3,)
        assert np.isfinite(scores).all()


def test_a_single_label_of_each_class_is_used():
    data = make_synthetic(90, n_classes=3, noise=0.2, random_state=0)
    known = {}
    for view, y in data.labels.items():
        first = [int(np.flatnonzero(y == c)[0]) for c in range(3)]
        known[view] = np.full(90, -1)
        known[view][first] = y[first]
    model = LinkSpreading.tuned(data.views(), known)
    block = model.scores("text", "image")
    found = mean_average_precision(block, data.labels["text"], data.labels["image"])
    assert found > 0.6


def test_scores_above_zero_speak_for_belonging_together():
    data = make_synthetic(90, n_classes=3, noise=0.2, random_state=0)
    model = LinkSpreading.tuned(data.views(), data.labels)
    same = data.labels["text"][:, None] == data.labels["image"]
    block = model.scores("text", "image")
    assert block[same].mean() > 0.2
    assert block[~same].mean() < 0


def test_a_graph_that_was_given_is_the_only_kernel():
    views, links = make_views(), make_links("labels")
    graphs = {view: knn_graph(X, n_neighbors=4) for view, X in views.items()}
    model = LinkSpreading(objective="auto", graph=graphs).fit(views, links)
    assert "linear" not in model.choice_
    assert "graph, far" in model.choice_


def test_a_kernel_of_ones_own():
    views, links = make_views(), make_links("labels")

    def own(X):
        return FeatureKernel(X, embed=np.asarray)

    model = LinkSpreading(**FITTED, kernel=own).fit(views, links)
    linear = model.scores("text", "image")
    assert np.linalg.matrix_rank(linear) <= 3
    with pytest.raises(LinkspreadError, match="view 'text': .*ViewKernel of 40 items"):
        LinkSpreading(**FITTED, kernel=lambda X: X).fit(views, links)
    with pytest.raises(LinkspreadError, match="view 'text': `kernel` must be .*'tree'"):
        LinkSpreading(**FITTED, kernel="graph+tree").fit(views, links)
    with pytest.raises(LinkspreadError, match="view 'text': `kernel` must be .*3"):
        LinkSpreading(**FITTED, kernel=3).fit(views, links)


@pytest.mark.parametrize("objective", ["spread", "ridge", "auto"])
def test_unit_diagonal_is_true_or_false(objective):
    for value in ("yes", 1, None):
        model = LinkSpreading(objective=objective, unit_diagonal=value)
        sentence = f"`unit_diagonal` must be True or False, got {value!r}.*is True"
        with pytest.raises(LinkspreadError, match=sentence):
            model.fit(make_views(), make_links("labels"))


def test_a_boolean_of_numpy_is_a_boolean():
    def scores(value):
        model = LinkSpreading(**FITTED, unit_diagonal=value)
        return model.fit(make_views(), make_links("labels")).scores("text", "image")

    assert_allclose(scores(np.False_), scores(False))
    assert np.abs(scores(False) - scores(True)).max() > 1e-3


@pytest.mark.parametrize("kernel", ["graph", "affinity+graph"])
def test_a_graph_kernel_reaches_further_than_the_item_itself(kernel):
    views, links = make_views(), make_links("labels")
    alpha = {"text": 0.8, "image": 0}
    sentence = "view 'image': `alpha` must be above 0 for kernel='graph', got 0.*larger"
    with pytest.raises(LinkspreadError, match=sentence):
        LinkSpreading(**{**FITTED, "alpha": alpha}, kernel=kernel).fit(views, links)
    # The others do not reach over a graph.
    scores = [
        LinkSpreading(**{**FITTED, "alpha": own}, kernel="affinity+linear")
        .fit(views, links)
        .scores("text", "image")
        for own in (0, 0.8)
    ]
    assert_allclose(*scores)


@pytest.mark.parametrize("kernel", ["affinity", "linear", "graph+linear"])
def test_a_table_that_is_a_graph_has_no_other_kernel(kernel):
    views, links = make_views(), make_links("labels")
    W = knn_graph(views["image"], n_neighbors=4)
    own = {"text": "knn", "image": "precomputed"}
    sentence = (
        "view 'image': `kernel` must be 'graph' where the table is a graph, got "
        f"'{kernel.split('+')[-1]}'.*Give features"
    )
    tables = {"text": views["text"], "image": W}
    with pytest.raises(LinkspreadError, match=sentence):
        LinkSpreading(**FITTED, kernel=kernel, graph=own).fit(tables, links)
    # A view of features beside it may have any.
    both = {"text": kernel, "image": "graph"}
    model = LinkSpreading(**FITTED, kernel=both, graph=own).fit(tables, links)
    given = LinkSpreading(**FITTED, kernel=both, graph={"text": "knn", "image": W})
    expected = given.fit(views, links).scores("text", "image")
    assert_allclose(model.scores("text", "image"), expected)


def test_auto_is_near_the_best_of_single_fits():
    data = make_synthetic(200, n_classes=4, noise=0.8, random_state=1)
    y = data.labels
    known = {v: np.where(np.arange(200) < 60, own, -1) for v, own in y.items()}

    def found(model):
        block = model.fit(data.views(), known).scores("text", "image")[60:, 60:]
        return mean_average_precision(block, y["text"][60:], y["image"][60:])

    singles = [
        found(LinkSpreading(objective="ridge", kernel=kernel, mass="posterior"))
        for kernel in ("graph", "affinity", "linear")
    ]
    assert found(LinkSpreading(objective="auto")) > max(singles) - 0.03


@pytest.mark.parametrize("objective", ["spread", "ridge", "auto"])
def test_new_rows_of_a_graph_that_was_given_are_affinities(objective):
    views, links = make_views(), make_links("labels")
    graphs = {view: knn_graph(X, n_neighbors=4) for view, X in views.items()}
    model = LinkSpreading(graph=graphs, objective=objective, alpha=0.6)
    model.fit(views, links)
    block = model.scores("text", "image", rows=graphs["text"][:3])
    assert block.shape == (3, SIZES["image"])
    with pytest.raises(LinkspreadError, match=f"{SIZES['text']}"):
        model.scores("text", "image", rows=views["text"][:3])


def test_features_stay_the_rows_of_other_kernels_than_the_graph():
    views, links = make_views(), make_links("labels")
    graphs = {view: knn_graph(X, n_neighbors=4) for view, X in views.items()}
    model = LinkSpreading(graph=graphs, objective="ridge", kernel="linear")
    model.fit(views, links)
    new, old = (model.scores("text", "image", **rows) for rows in
                ({"rows": views["text"]}, {}))  # fmt: skip
    assert_allclose(new, old, atol=1e-7)

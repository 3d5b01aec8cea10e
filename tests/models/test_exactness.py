"""Scores are F* to `tol`, or the model says how far they are from it."""

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

import linkspread as ls
from linkspread import Links, LinkSpreading
from linkspread.ground.errors import LinkError
from linkspread.metrics import mean_average_precision
from linkspread.propagation import spread
from reference import exact_scores, filtered_links, relative_error
from small_views import PARAMETERS, make_links, make_views

BETWEEN = ("text", "image")
ASK = {"source": "text", "target": "image"}


@st.composite
def problems(draw):
    """Return views, links, parameters and links to be added later."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = {view: draw(st.integers(6, 40)) for view in BETWEEN}
    views = {view: rng.standard_normal((n, 3)) for view, n in sizes.items()}
    links = []
    if draw(st.booleans()):
        links.append(Links.from_labels({v: rng.integers(-1, 3, n) | (np.arange(n) < 2)
                                        for v, n in sizes.items()}))  # fmt: skip
    if draw(st.booleans()) or not links:
        links.append(draw_pairs(rng, sizes, draw(st.integers(1, 300))))
    parameters = {
        "n_neighbors": draw(st.integers(1, 5)),
        "alpha": draw(st.sampled_from([0.0, 0.1, 0.5, 0.9])),
        "beta": draw(st.sampled_from([0.0, 0.5, 0.95])),
        "balance": draw(st.sampled_from(["auto", "literal", 0.3])),
        "rank": draw(st.sampled_from([None, None, None, 3])),
    }
    more = draw_pairs(rng, sizes, draw(st.integers(1, 40)))
    return views, links, parameters, more


def draw_pairs(rng, sizes, n_pairs):
    """Return judged pairs of any sign."""
    i, j = (rng.integers(sizes[view], size=n_pairs) for view in BETWEEN)
    verdicts = rng.choice(["must", "cannot"], n_pairs).tolist()
    weights = rng.choice([1.0, 0.5, 2.0], n_pairs).tolist()
    table = list(zip(i.tolist(), j.tolist(), verdicts, weights, strict=True))
    return Links.from_pairs(table, between=BETWEEN)


def check_scores(model):
    """Compare scores and searches with F*."""
    wanted = filtered_links(model)
    if not np.linalg.norm(wanted):
        assert not model.scores(*BETWEEN).any()
        return
    scores, report = model.scores(*BETWEEN), model.report_.spreads[BETWEEN]
    tol = model.tol if report.rank is None else 2 * max(report.error, model.tol)
    assert relative_error(scores, wanted) <= tol
    # No single score is further off than all of them together.
    slack = tol * np.linalg.norm(wanted)
    ids, found = model.search(np.arange(len(wanted)), **ASK, n_results=5)
    picked = np.take_along_axis(wanted, ids, axis=1)
    assert np.abs(found - picked).max() <= slack
    best = -np.sort(-wanted, axis=1)[:, : ids.shape[1]]
    assert np.abs(picked - best).max() <= 2 * slack


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::linkspread.ground.errors.ConflictWarning")
@settings(
    max_examples=2000, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)
@given(problem=problems())
def test_any_problem_is_answered_to_the_tolerance(problem):
    views, links, parameters, more = problem
    known = links[0] if len(links) == 1 else links[0] + links[1]
    model = LinkSpreading(**parameters).fit(views, known)
    check_scores(model)
    searching, found = model.embeddings(*BETWEEN)
    slack = 10 * max(model.tol, 2 * model.report_.spreads[BETWEEN].error)
    wanted = filtered_links(model)
    miss = np.linalg.norm(searching @ found.T - wanted)
    assert miss <= slack * np.linalg.norm(wanted) + 1e-12
    check_scores(model.add_links(more))
    check_scores(model.remove_links(more))


def halves(X, y, n_pairs, seed):
    """Return halves of pictures, labels, and judged pairs, half of them must."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    parts = dict(zip(BETWEEN, np.array_split(order, 2), strict=True))
    middle = X.shape[1] // 2
    views = {"text": X[parts["text"], :middle], "image": X[parts["image"], middle:]}
    labels = {view: y[rows] for view, rows in parts.items()}
    same = labels["text"][:, None] == labels["image"][None, :]
    judged = [
        (*pair, weight)
        for weight in (1.0, -1.0)
        for pair in rng.permutation(np.argwhere(same == (weight > 0)))[
            : n_pairs // 2
        ].tolist()
    ]
    return views, labels, Links.from_pairs(judged, between=BETWEEN)


def measure(scores, y):
    """Return the mean average precision of both directions."""
    there = mean_average_precision(scores, y["text"], y["image"])
    back = np.ascontiguousarray(scores.T)
    return (there + mean_average_precision(back, y["image"], y["text"])) / 2


def check_growth(X, y, seed):
    """Compare with the closed form at each number of pairs; more must be better."""
    found = []
    for n_pairs in (40, 200, 2000, 20_000):
        views, labels, links = halves(X, y, n_pairs, seed)
        model = LinkSpreading().fit(views, links)
        found.append(measure(model.scores(*BETWEEN), labels))
        closed_form = measure(filtered_links(model), labels)
        assert found[-1] == pytest.approx(closed_form, abs=1e-3)
    assert np.all(np.diff(found) > 0.02), found
    return found


@pytest.mark.slow
def test_more_judgements_make_the_search_better():
    """Vectors of 256 dimensions had .415 with 40 pairs and .383 with 2,000."""
    check_growth(*load_digits(return_X_y=True), seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_more_judgements_of_published_digits_make_the_search_better(data_folder, seed):
    table = np.loadtxt(
        data_folder / "digits" / "mfeat-pix.csv", delimiter=",", skiprows=1
    )
    print(check_growth(table[:, :-1], table[:, -1].astype(int), seed))


@pytest.mark.slow
def test_vectors_that_memory_cuts_are_warned_of_with_their_error(monkeypatch):
    views, _, links = halves(*load_digits(return_X_y=True), 2000, seed=1)
    model = LinkSpreading().fit(views, links)
    monkeypatch.setattr(spread, "BASIS_BYTES", 8.0 * 100 * 1797)
    with pytest.warns(ConvergenceWarning, match="vectors of 100 dimensions .* `rank`"):
        searching, found = model.embeddings(*BETWEEN)
    assert searching.shape[1] == 100
    true = relative_error(searching @ found.T, exact_scores(model))
    stated = model.spreads_[BETWEEN].vectors().error
    assert true > 0.05
    assert 0.5 * true < stated < 2 * true
    # Searches stay exact.
    wanted = filtered_links(model)
    assert relative_error(model.scores(*BETWEEN), wanted) < 1e-6


def test_a_rank_that_was_asked_for_is_reported():
    views, links = make_views(), make_links("many pairs")
    exact = LinkSpreading(**PARAMETERS).fit(views, links)
    cut = LinkSpreading(**PARAMETERS, rank=2).fit(views, links)
    assert exact.report_.inexact(exact.tol) == []
    (sentence,) = cut.report_.inexact(cut.tol)
    error = cut.report_.spreads[BETWEEN].error
    assert "2 dimensions" in sentence and f"{error:.2g}" in sentence
    assert "exact rows" in str(exact.report_)


def test_a_live_link_costs_nothing_before_it_is_searched(monkeypatch):
    model = LinkSpreading(**PARAMETERS).fit(make_views(), make_links("many pairs"))

    def refuse(*given, **named):
        raise AssertionError("nothing is to be filtered")

    with monkeypatch.context() as patch:
        patch.setattr("linkspread.propagation.chebyshev.filtered_sums", refuse)
        model.add_links(Links.from_pairs([(3, 4, 1.0)], between=BETWEEN))
    assert relative_error(model.scores(*BETWEEN), filtered_links(model)) < 1e-6


THREE = {"text": 30, "image": 25, "audio": 35}


def three_views(n_pairs, **parameters):
    """Return a model of three views, of which two are linked to the first only."""
    data = ls.datasets.make_views(THREE, n_classes=3, random_state=0)
    rng = np.random.default_rng(0)
    links = []
    for other in ("image", "audio"):
        i, j = (rng.integers(THREE[view], size=n_pairs) for view in ("text", other))
        same = data.labels["text"][i] == data.labels[other][j]
        table = {(int(a), int(b)): 1.0 if s else -1.0
                 for a, b, s in zip(i, j, same, strict=True)}  # fmt: skip
        judged = [(*pair, weight) for pair, weight in table.items()]
        links.append(Links.from_pairs(judged, between=("text", other)))
    model = LinkSpreading(n_neighbors=5, **parameters)
    return data, model.fit(data.views(), links[0] + links[1])


@pytest.mark.parametrize("parameters", [{}, {"rank": 4}], ids=str)
@pytest.mark.parametrize("n_pairs", [3, 200])
def test_views_are_searched_through_a_view_between_them(n_pairs, parameters):
    data, model = three_views(n_pairs, **parameters)
    wanted = model.scores("audio", "text") @ model.scores("text", "image")
    got = model.scores("audio", "image")
    np.testing.assert_allclose(got, wanted, atol=1e-5 * np.abs(wanted).max())
    np.testing.assert_allclose(model.scores("image", "audio"), got.T, atol=1e-6)
    ids, scores = model.search(7, source="audio", target="image", n_results=4)
    np.testing.assert_allclose(scores, -np.sort(-got[7])[:4], atol=1e-6)
    rows = data.views()["audio"][:3] + 0.1
    onwards = model.scores("audio", "text", rows=rows) @ model.scores("text", "image")
    new = model.scores("audio", "image", rows=rows)
    np.testing.assert_allclose(new, onwards, atol=1e-5 * np.abs(onwards).max())
    searching, found = model.embeddings("audio", "image")
    np.testing.assert_allclose(searching @ found.T, got, atol=1e-5)
    within = model.scores("image", "image")
    back = model.scores("image", "text") @ model.scores("text", "image")
    np.testing.assert_allclose(within, back, atol=1e-5 * np.abs(back).max())


def test_a_chain_follows_links_that_are_added_to_its_steps():
    data, model = three_views(20)
    model.scores("audio", "image")
    model.add_links(Links.from_pairs([(0, 1, 1.0)], between=("text", "image")))
    wanted = model.scores("audio", "text") @ model.scores("text", "image")
    np.testing.assert_allclose(model.scores("audio", "image"), wanted, atol=1e-6)


def test_first_links_of_chained_views_are_warned_of():
    _, model = three_views(20)
    with pytest.warns(
        UserWarning, match="'audio' and 'image'.* no longer through 'text'"
    ):
        model.add_links(Links.from_pairs([(0, 1, 1.0)], between=("audio", "image")))


def test_views_that_nothing_joins_say_what_would():
    data = ls.datasets.make_views(THREE, n_classes=3, random_state=0)
    links = Links.from_pairs([(0, 1, 1.0)], between=BETWEEN)
    model = LinkSpreading(n_neighbors=5).fit(data.views(), links)
    with pytest.raises(LinkError, match="'audio' and 'image'.*third view"):
        model.search(0, source="audio", target="image")

"""Studies: splits, what is known to whom, and that nothing is tuned on test data."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks_in_small import small_collection
from linkspread import CrossViewSearch, Links, LinkSpreading
from linkspread.ground.errors import LinkspreadError
from linkspread.metrics import mean_average_precision
from linkspread.studies.budgets import run_budgets
from linkspread.studies.collections import (
    Split,
    label_links,
    load_benchmark,
    matched_links,
    random_links,
    resplit,
)
from linkspread.studies.methods import (
    PRINTED,
    Method,
    label_methods,
    link_methods,
    matched_methods,
    table_methods,
)
from linkspread.studies.report.study import Study
from linkspread.studies.running import choose, score_test
from linkspread.studies.tables import measure, run_table

METRICS = {"text": ("euclidean", "hellinger"), "image": ("euclidean", "chi2")}
ALLOWED = ("alpha", "C", "ridge", "width", "reg", "score")
WIDTHS = dict.fromkeys(METRICS, ("local", "0.5 mean"))
EMPTY = Study("A study", "", "", "small", {})


def quiet(text):
    """Tell nobody."""


@pytest.fixture(scope="module")
def collection():
    return small_collection()


@pytest.fixture(scope="module")
def split(collection):
    drawn = resplit(collection.labels, 110, seed=0)
    return Split("standard", drawn.train, drawn.test)


def quickly(methods):
    """Return methods with two choices of one parameter, and few neighbours."""
    fitting = []
    for method in methods:
        model = method.model
        if hasattr(model, "n_neighbors"):
            model = model.set_params(n_neighbors=12)
        choices = {n: v for g in method.grid for n, v in g.items() if n in ALLOWED}
        grid = [{n: _two(v)} for n, v in list(choices.items())[:1]]
        fitting.append(replace(method, model=model, grid=grid))
    return fitting


def _two(values):
    """Return two choices; where they are by view, those of the first view only."""
    if not isinstance(values, dict):
        return [values[0], values[-1]]
    first, *others = values
    return {first: _two(values[first]), **{v: values[v][:1] for v in others}}


def permuted(collection, split):
    """Return the collection with the labels of its test items exchanged."""
    labels = collection.labels.copy()
    labels[split.test] = np.random.default_rng(1).permutation(labels[split.test])
    assert not np.array_equal(labels, collection.labels)
    return replace(collection, labels=labels)


def test_a_resplit_has_all_rows_once_and_the_classes_in_shares(collection):
    split = resplit(collection.labels, 110, seed=3)
    assert np.array_equal(np.union1d(split.train, split.test), np.arange(150))
    assert len(split.train) == 110 and not set(split.train) & set(split.test)
    shares = np.bincount(collection.labels[split.train]) / 110
    assert np.allclose(shares, np.bincount(collection.labels) / 150, atol=0.02)
    other = resplit(collection.labels, 110, seed=4)
    assert not np.array_equal(other.train, split.train)
    assert other.name == "re-split 4"


def test_a_resplit_leaves_items_on_both_sides(collection):
    with pytest.raises(LinkspreadError, match="between 1 and 149, got 150"):
        resplit(collection.labels, 150, seed=0)


def test_links_know_training_rows_only(collection, split):
    views = list(collection.views)
    shown = label_links(collection.labels, split.train, views, matched=True)
    shown = shown.resolve({"text": 150, "image": 150})
    assert not shown.memberships("text")[split.test].sum()
    matched = shown.judged("text", "image").toarray()
    assert np.array_equal(np.flatnonzero(np.diag(matched)), split.train)
    assert matched.sum() == len(split.train)
    drawn = random_links(collection.labels, split.train, views, 500, seed=0)
    drawn = drawn.resolve({"text": 150, "image": 150}).judged("text", "image").tocoo()
    assert drawn.nnz == 500
    assert set(drawn.row) | set(drawn.col) <= set(split.train)
    same = collection.labels[drawn.row] == collection.labels[drawn.col]
    assert np.array_equal(drawn.data > 0, same)


@pytest.mark.parametrize("protocol", ["transductive", "inductive"])
@pytest.mark.slow
def test_permuted_test_labels_change_no_score_that_is_chosen_by(
    collection, split, protocol
):
    blind = permuted(collection, split)
    for method in quickly(table_methods(METRICS, WIDTHS, quick=True)):
        (run, tuning, _), (other, blind_tuning, _) = (
            measure(method, data, split, protocol=protocol, n_splits=2)
            for data in (collection, blind)
        )
        assert run.parameters == other.parameters
        # The same scores, measured against other labels.
        assert run.details != other.details
        if tuning is not None:
            assert np.array_equal(tuning.fold_scores, blind_tuning.fold_scores)


@pytest.fixture
def quick_budgets(monkeypatch):
    """Let the budgets have few choices."""
    for make in (label_methods, link_methods, matched_methods):
        monkeypatch.setattr(
            f"linkspread.studies.budgets.{make.__name__}",
            lambda metrics, make=make: quickly(make(metrics)),
        )


@pytest.mark.slow
def test_permuted_test_labels_change_no_choice_of_the_budgets(
    collection, split, quick_budgets
):
    def run(data):
        return run_budgets(
            EMPTY,
            data,
            [replace(split, name="re-split 1")],
            metrics={v: m[-1:] for v, m in METRICS.items()},
            labels=(3,),
            links=(200,),
            n_splits=2,
            step=quiet,
        )

    studies = [run(data) for data in (collection, permuted(collection, split))]
    for honest, blind in zip(*(study.cells for study in studies), strict=True):
        (one,), (two,) = honest.runs, blind.runs
        assert one.parameters == two.parameters
        assert one.score != two.score


@pytest.mark.parametrize("kind", ["labels", "links", "matched"])
def test_permuted_test_labels_change_nothing_that_the_learner_chooses(
    collection, split, kind
):
    views = list(collection.views)
    make = {
        "labels": lambda y: label_links(y, split.train, views),
        "links": lambda y: random_links(y, split.train, views, 200, seed=0),
        "matched": lambda y: matched_links(split.train, views),
    }[kind]
    honest, blind = (
        CrossViewSearch().fit(data.views, make(data.labels))
        for data in (collection, permuted(collection, split))
    )
    assert honest.choices_ == blind.choices_
    assert np.array_equal(honest.scores(*views), blind.scores(*views))


def test_a_method_that_learns_nothing_from_so_few_scores_as_chance_does(
    collection, split, monkeypatch
):
    ours, cca = (m for m in link_methods(METRICS) if m.name in ("LinkSpreading", "CCA"))
    monkeypatch.setattr(
        "linkspread.studies.budgets.link_methods",
        lambda metrics: [replace(ours, grid=[]), cca],
    )
    words = {"metrics": METRICS, "labels": (), "matched": False, "step": quiet}
    study = run_budgets(
        EMPTY, collection, [split], links=(1, 2, 300), n_splits=2, **words
    )
    none, few, many = (c.runs[0].score for c in study.cells if c.method == "CCA")
    y = collection.labels[split.test]
    alike = mean_average_precision(np.zeros((len(y), len(y))), y, y)
    assert none == few == alike
    drawn = np.random.default_rng(0).random((len(y), len(y)))
    assert alike == pytest.approx(mean_average_precision(drawn, y, y), abs=0.05)
    assert many > alike + 0.1


def test_budgets_that_were_cut_short_go_on_where_they_stopped(
    collection, split, quick_budgets
):
    other = resplit(collection.labels, len(split.train), seed=5)
    words = {"metrics": {v: m[-1:] for v, m in METRICS.items()}, "step": quiet}
    words |= {"labels": (3,), "links": (), "matched": False, "n_splits": 2}
    whole = run_budgets(EMPTY, collection, [split, other], **words)
    kept = []
    run_budgets(EMPTY, collection, [split], keep=kept.append, **words)
    assert [len(study.cells) for study in kept] == list(range(1, 7))
    resumed = run_budgets(EMPTY, collection, [split, other], before=kept[2], **words)
    assert scores_of(resumed) == scores_of(whole)
    assert all(len(cell.runs) == 2 for cell in resumed.cells)
    # What a smaller plan does not ask for is kept all the same.
    words |= {"labels": ()}
    smaller = run_budgets(EMPTY, collection, [split], before=whole, **words)
    assert smaller.cells == whole.cells
    strange = replace(whole, collection="x")
    with pytest.raises(LinkspreadError, match="on its own collection"):
        run_budgets(EMPTY, collection, [split], before=strange, **words)


def scores_of(study):
    """Return the scores of each cell."""
    return [(c.method, [run.score for run in c.runs]) for c in study.cells]


def test_every_method_beats_chance_and_says_what_was_chosen(collection, split):
    methods = quickly(table_methods(METRICS, WIDTHS, quick=True))
    study = run_table(EMPTY, collection, methods, [split], n_splits=2, step=quiet)
    for cell in study.cells:
        run = cell.standard
        assert run.score > 0.45, cell.method  # chance is .35
        assert set(run.per_class["image to text"]) == {"art", "sport", "war"}
        assert set(run.seconds) == {"choose", "fit and score"}
    assert study.printed.keys() == PRINTED.keys()
    assert study.printed["Inter-CP (CSR)"]["average"] == 0.306
    assert {curve.parameter for curve in study.curves} == {"alpha text"}


def test_methods_start_from_what_was_chosen_before(collection, split):
    grid = [{"n_neighbors": [5, 12]}]
    first = Method("first", "paper", LinkSpreading(n_neighbors=5), grid)
    second = Method(
        "second",
        "paper",
        LinkSpreading(graph="cwa", beta=0.5),
        [{"beta": [0.5]}],
        after="first",
        inherited=("n_neighbors",),
    )

    kept = []
    words = {"n_splits": 2, "step": quiet, "keep": kept.append}
    study = run_table(EMPTY, collection, [first, second], [split], **words)
    assert [len(part.methods) for part in kept] == [1, 2]
    chosen = [cell.runs[0].parameters for cell in study.cells]
    assert chosen[0]["n_neighbors"] in (5, 12)
    assert chosen[1] == {"n_neighbors": chosen[0]["n_neighbors"], "beta": 0.5}
    alone = replace(second, after="")
    other = run_table(EMPTY, collection, [alone], [split], **words)
    assert other.cells[0].runs[0].score != study.cells[1].runs[0].score


def test_inductive_scores_are_those_of_queries_new_to_the_fit(collection, split):
    links = label_links(collection.labels, split.train, ["text", "image"])
    model = LinkSpreading(n_neighbors=12)
    blocks = score_test(
        model, collection.views, links, split.test, protocol="inductive"
    )
    known = {
        "text": collection.labels[split.train],
        "image": np.where(np.isin(np.arange(150), split.train), collection.labels, -1),
    }
    views = collection.views
    seen = {"text": views["text"][split.train], "image": views["image"]}
    fitted = LinkSpreading(n_neighbors=12).fit(seen, known)
    expected = fitted.scores(
        "text", "image", rows=views["text"][split.test], cols=split.test
    )
    assert np.allclose(blocks["text to image"], expected)
    other = score_test(model, views, links, split.test, protocol="transductive")
    assert not np.allclose(blocks["text to image"], other["text to image"])


def test_inductive_choices_use_no_test_row(collection, split):
    views = {v: X.copy() for v, X in collection.views.items()}
    for X in views.values():
        X[split.test] = X[split.test[::-1]]
    other = replace(collection, views=views)
    method = quickly(label_methods(METRICS, quick=True))[0]

    def chosen_by(data, protocol):
        return measure(method, data, split, protocol=protocol, n_splits=2)[1]

    blind = [chosen_by(d, "inductive").fold_scores for d in (collection, other)]
    seen = [chosen_by(d, "transductive").fold_scores for d in (collection, other)]
    assert np.array_equal(*blind)
    # Exchanged rows only, so that the graph is the same: this one must not change.
    assert np.allclose(*seen)


def test_one_label_a_class_keeps_the_defaults(collection, split):
    known = [np.flatnonzero(collection.labels == c)[0] for c in range(3)]
    links = label_links(collection.labels, np.array(known), ["text", "image"])
    method = quickly(label_methods(METRICS))[0]
    model, tuning = choose(method, collection.views, links)
    assert tuning is None
    assert model.get_params() == method.model.get_params()


def test_a_fold_with_one_must_link_keeps_the_defaults(collection, split):
    rows = split.train[:20]
    pairs = [(int(i), int(i), 1.0 if k < 2 else -1.0) for k, i in enumerate(rows)]
    links = Links.from_pairs(pairs, between=("text", "image"))
    method = next(m for m in link_methods(METRICS) if m.name == "CCA")
    model, tuning = choose(method, collection.views, links, n_splits=2)
    assert tuning is None
    assert model.get_params() == method.model.get_params()


def test_matched_rows_teach_something(collection, split):
    links = matched_links(split.train, ["text", "image"])
    y = collection.labels[split.test]
    for method in matched_methods(METRICS):
        model = method.model
        if hasattr(model, "n_neighbors"):
            model.set_params(n_neighbors=12, alpha=0.9)
        blocks = score_test(
            model, collection.views, links, split.test, protocol="transductive"
        )
        value = mean_average_precision(blocks["text to image"], y, y)
        assert value > 0.4, method.name


def test_link_methods_are_ours_first():
    for methods in (link_methods(METRICS), label_methods(METRICS)):
        assert methods[0].name == "LinkSpreading"
        names = [method.name for method in methods]
        assert len(set(names)) == len(names)


def test_an_unknown_collection_is_refused():
    with pytest.raises(LinkspreadError, match="one of .*'wikipedia'.*got 'flickr'"):
        load_benchmark("flickr")

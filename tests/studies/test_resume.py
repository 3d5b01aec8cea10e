"""Tables that are cut short go on where they stopped, and come to the same."""

import json
from dataclasses import replace

import pytest

from benchmarks_in_small import small_collection
from linkspread import LinkSpreading
from linkspread.ground.errors import LinkspreadError
from linkspread.selection.tune import expand_grid, flatten, unflatten
from linkspread.studies import tables
from linkspread.studies.baselines import SemanticMatching
from linkspread.studies.collections import WIDTHS, Split, resplit
from linkspread.studies.methods import (
    Method,
    label_methods,
    link_methods,
    matched_methods,
    table_methods,
)
from linkspread.studies.report.study import Study, read_study, write_study
from linkspread.studies.tables import run_table

METRICS = {"text": ("euclidean", "hellinger"), "image": ("euclidean", "chi2")}
NEAR = {"text": [6, 12], "image": [6, 12]}
SAME = ("metric", "n_neighbors", "bandwidth")

# Parameters by view, inherited ones, a dict that is not by view, and none at all.
METHODS = [
    Method(
        "k-NN",
        "paper",
        LinkSpreading(metric="euclidean", n_neighbors=3),
        [{"metric": METRICS, "alpha": [0.2]}, {"n_neighbors": NEAR, "beta": [0.5]}],
    ),
    Method(
        "CWA",
        "paper",
        LinkSpreading(graph="cwa", n_neighbors=20),
        [{"adjustment": [{"alpha": a, "beta": 0.9} for a in (0.1, 0.5)]}],
        after="k-NN",
        inherited=SAME,
    ),
    Method("plain", "baselines", SemanticMatching()),
    Method(
        "CSR",
        "paper",
        LinkSpreading(graph="csr", bandwidth="0.5 mean"),
        [{"alpha": {"text": [0.1, 0.6], "image": [0.3]}}],
        after="CWA",
        inherited=("metric", "n_neighbors"),
    ),
]
ALL = [(method.name, name) for method in METHODS for name in ("standard", "re-split 1")]


@pytest.fixture(scope="module")
def collection():
    return small_collection(90)


@pytest.fixture(scope="module")
def splits(collection):
    drawn = resplit(collection.labels, 60, seed=0)
    other = resplit(collection.labels, 60, seed=1)
    return [Split("standard", drawn.train, drawn.test), other]


OTHER = "Labels are known. Queries are new."
EMPTY = Study(
    "A table", "Labels are known. Queries are in the graphs.", "", "small", {}
)


def run(collection, splits, methods=METHODS, study=EMPTY, **changed):
    """Measure the methods on the splits."""
    words = {"n_splits": 2, "step": lambda text: None}
    return run_table(study, collection, methods, splits, **words | changed)


@pytest.fixture(scope="module")
def whole(collection, splits):
    """Return the study of a table that was not cut short, and all that it kept."""
    kept = []
    return run(collection, splits, keep=kept.append), kept


@pytest.fixture
def measured(monkeypatch):
    """Return a list that gets the name of each method and split measured."""
    real, names = tables.measure, []

    def measure(method, collection, split, *arguments, **keywords):
        names.append((method.name, split.name))
        return real(method, collection, split, *arguments, **keywords)

    monkeypatch.setattr(tables, "measure", measure)
    return names


def timeless(study):
    """Return a study without its seconds."""
    return replace(
        study,
        cells=tuple(
            replace(c, runs=tuple(replace(r, seconds={}) for r in c.runs))
            for c in study.cells
        ),
    )


def stored(study, folder):
    """Return a study as it comes back from its file."""
    return read_study(write_study(folder / "study.json", study))


def keys(study):
    """Return the names of the methods and splits that a study measured."""
    return [(c.method, r.split) for c in study.cells for r in c.runs]


def test_every_measurement_is_kept(whole):
    study, kept = whole
    assert [keys(part) for part in kept] == [ALL[: k + 1] for k in range(len(ALL))]
    assert timeless(replace(study, examples=())) == timeless(kept[-1])
    # Curves come with the first split, and what is inherited is no default.
    assert {curve.method for curve in kept[0].curves} == {"k-NN"}
    chosen = {c.method: c.standard.parameters for c in study.cells}
    assert chosen["CWA"]["n_neighbors text"] == chosen["k-NN"]["n_neighbors text"]
    assert chosen["CSR"]["metric image"] == chosen["k-NN"]["metric image"] == "chi2"
    assert chosen["plain"] == {}


@pytest.mark.parametrize("n_measured", range(len(ALL) + 1))
def test_a_table_cut_short_anywhere_comes_to_the_same(
    n_measured, collection, splits, whole, measured, tmp_path
):
    study, kept = whole
    before = stored(kept[n_measured - 1], tmp_path) if n_measured else None
    kept_now = []
    resumed = run(collection, splits, before=before, keep=kept_now.append)
    assert measured == ALL[n_measured:]
    assert timeless(resumed) == timeless(study)
    assert len(resumed.examples) == 6
    assert [keys(part) for part in kept_now] == [keys(p) for p in kept[n_measured:]]
    # What was taken over has its own seconds.
    taken = [r for c in resumed.cells for r in c.runs][:n_measured]
    assert taken == [r for c in study.cells for r in c.runs][:n_measured]


def test_stored_parameters_make_the_model_that_the_search_chose(
    collection, splits, monkeypatch, tmp_path
):
    real, chosen = tables.measure, {}

    def measure(method, *arguments, **keywords):
        run, tuning, blocks = real(method, *arguments, **keywords)
        chosen[method.name] = method.model if tuning is None else tuning.model
        return run, tuning, blocks

    monkeypatch.setattr(tables, "measure", measure)
    study = stored(run(collection, splits[:1]), tmp_path)
    runs = {(c.method, "standard"): c.standard for c in study.cells}
    for method in METHODS:
        started = tables._inheriting(method, METHODS, runs, splits[0])
        again = tables._chosen(started, runs[method.name, "standard"])
        assert again.get_params() == chosen[method.name].get_params()
    # A study that is continued fits the best of ours again for the same examples.
    assert run(collection, splits[:1], before=study).examples == study.examples


def test_more_splits_can_be_asked_for_and_nothing_is_lost_meanwhile(
    collection, splits, whole, measured, tmp_path
):
    before = stored(run(collection, splits[:1]), tmp_path)
    measured.clear()
    kept = []
    resumed = run(collection, splits, before=before, keep=kept.append)
    assert measured == [key for key in ALL if key[1] != "standard"]
    assert timeless(resumed) == timeless(whole[0])
    assert all(set(keys(before)) < set(keys(part)) for part in kept)
    assert all(part.curves == before.curves for part in kept)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {"study": replace(EMPTY, collection="x")},
            "on its own collection, 'small', got 'x'",
        ),
        (
            {
                "study": replace(
                    EMPTY, introduction="Labels are known. Queries are new."
                )
            },
            "as it was begun, 'Labels are known.*', got 'Labels are known. Q",
        ),
        ({"methods": METHODS[1:]}, "all its methods.*'k-NN', 're-split 1'"),
    ],
)
def test_another_table_is_not_gone_on_with(
    changed, sentence, collection, splits, whole, measured
):
    with pytest.raises(LinkspreadError, match=sentence):
        run(collection, splits, before=whole[0], **changed)
    assert not measured


def test_fewer_splits_are_refused_as_methods_would_be_measured_unequally(
    collection, splits, whole
):
    with pytest.raises(LinkspreadError, match="all its .* 're-split 1'.. Give"):
        run(collection, splits[:1], before=whole[1][1])


def all_settings():
    """Return every setting of all grids of the studies, and each method's own."""
    widths = dict.fromkeys(METRICS, WIDTHS)
    methods = [
        *METHODS,
        *table_methods(METRICS, widths),
        *table_methods(METRICS, widths, quick=True),
        *label_methods(METRICS),
        *link_methods(METRICS),
        *matched_methods(METRICS),
    ]
    for method in methods:
        yield method.model.get_params(deep=False)
        for stage in method.grid:
            yield from expand_grid(stage)


def test_unflatten_is_the_inverse_of_flatten_for_all_grids_in_use():
    settings = list(all_settings())
    assert len(settings) > 1_000
    for setting in settings:
        flat = flatten(setting)
        assert unflatten(flat) == setting
        # Files keep the values, and the order is that of the setting.
        assert unflatten(json.loads(json.dumps(flat))) == setting
        assert list(unflatten(flat)) == list(setting)


def test_names_of_views_may_have_spaces():
    setting = {"alpha": {"short text": 0.1, "image": 0.2}, "rank": None}
    assert unflatten(flatten(setting)) == setting

"""CrossViewSearch saved and loaded: the same scores, changes and new items."""

import copy
import json
import pickle
from dataclasses import fields

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import linkspread as ls
from linkspread.ground.errors import LinkspreadError, ModelError
from linkspread.learning import Choice, Setting, ViewMap, maps
from linkspread.learning.cores import LabelModel
from linkspread.models.persistence import REGISTRY
from model_folders import copy_folder
from search_models import KINDS, PAIR, class_views, model
from spoilt_files import flip


def saved(search, folder):
    search.save(folder)
    return ls.load(folder)


def some_link(search):
    ids = [search.items_[view].ids for view in PAIR]
    return ls.Links.from_pairs([(ids[0][50], ids[1][50], 1.0)], between=PAIR)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_a_loaded_search_has_the_same_scores(kind, tmp_path):
    search = model(kind)
    again = saved(search, tmp_path / "model")
    for source, target in ((*PAIR,), PAIR[::-1], ("text", "text")):
        scores = search.scores(source, target)
        assert_array_equal(again.scores(source, target), scores)
    assert again.choices_ == search.choices_
    assert again.summary_ == search.summary_
    assert again.get_params()["metric"] == search.metric
    for one, other in zip(again.embeddings(*PAIR), search.embeddings(*PAIR),
                          strict=True):  # fmt: skip
        assert_array_equal(one, other)


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_search_learns_and_forgets_as_before(kind, tmp_path):
    search = model(kind)
    again = saved(search, tmp_path / "model")
    more = some_link(search)
    for own in (search, again):
        own.add_links(more)
    assert_array_equal(again.scores(*PAIR), search.scores(*PAIR))
    twice = saved(again, tmp_path / "more")
    assert_array_equal(twice.scores(*PAIR), search.scores(*PAIR))
    for own in (search, twice):
        own.remove_links(more)
    assert_array_equal(twice.scores(*PAIR), search.scores(*PAIR))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "given"])
def test_new_items_search_a_loaded_model(kind, tmp_path):
    search = model(kind)
    again = saved(search, tmp_path / "model")
    rows = search._tables["text"][:5] * 1.01
    found = again.scores(*PAIR, rows=rows)
    assert_array_equal(found, search.scores(*PAIR, rows=rows))
    near = search.search(rows, source="text", target="image", n_results=3)
    assert_array_equal(
        again.search(rows, source="text", target="image", n_results=3)[0], near[0]
    )


def test_frames_and_their_columns_come_back(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    frames = {
        view: pd.DataFrame(rng.normal(size=(40, 3)), columns=list("abc")).assign(
            id=[f"{view}{k}" for k in range(40)]
        )
        for view in PAIR
    }
    search = ls.CrossViewSearch().fit(frames)
    again = saved(search, tmp_path / "model")
    shuffled = frames["text"][["c", "id", "b", "a"]][:3]
    assert_allclose(again.scores(*PAIR, rows=shuffled), again.scores(*PAIR)[:3],
                    atol=1e-6)  # fmt: skip


def test_every_field_is_stored():
    """A field that nobody stores would be another after a load."""
    by_name = REGISTRY.by_name
    for own in (Setting, Choice, LabelModel, ViewMap, maps._Linear, maps._Gaussian):
        stored = by_name[own.__name__].tests
        assert set(stored) == {field.name for field in fields(own)}
    stored = {*by_name["_Graph"].tests, "fitted"}
    assert stored == {field.name for field in fields(maps._Graph)}


def test_what_the_graph_says_is_stored_once(tmp_path):
    search = model("judged")
    search.save(tmp_path / "model")
    arrays = copy_folder(tmp_path / "model", tmp_path / "copy").arrays()
    n_bytes = sum(own.nbytes for own in arrays.values())
    values = sum(own.values.nbytes for own in search._maps.values())
    graph = search._maps["text"].blocks["graph"].values
    assert n_bytes < 3 * values
    # Cholesky factors of the landmarks have this shape, in double precision.
    again = [own for own in arrays.values() if own.dtype == graph.dtype]
    assert not any(own.shape == graph.shape for own in again)


@pytest.mark.slow
def test_a_search_is_copied_pickled_and_cloned(tmp_path):
    search = model("every")
    scores = search.scores(*PAIR)
    search.embeddings(*PAIR)
    joblib.dump(search, tmp_path / "model.joblib")
    for own in (
        copy.deepcopy(search),
        pickle.loads(pickle.dumps(search)),
        joblib.load(tmp_path / "model.joblib"),
    ):
        assert_array_equal(own.scores(*PAIR), scores)
        assert_array_equal(own.add_links(some_link(own)).scores(*PAIR),
                           search.snapshot().add_links(some_link(own)).scores(*PAIR)
                           )  # fmt: skip
    bare = clone(search)
    assert bare.get_params() == search.get_params()
    assert not hasattr(bare, "items_")
    views, known = class_views()
    assert bare.fit(views, ls.Links.from_labels(known)).scores(*PAIR).shape == (120, 90)


def spoil(folder, change):
    """Change the tree of a folder, with checksums made anew."""
    change(folder.manifest["content"])
    folder.write_manifest()


def named(tree, name):
    return [node["fields"] for node in tree["objects"] if node["class"] == name]


def state(tree):
    return named(tree, "CrossViewSearch")[0]


def swap(entries):
    entries[0][1], entries[1][1] = entries[1][1], entries[0][1]


SPOILT = {
    "another model": lambda t: t["objects"][-1].update({"class": "Oracle"}),
    "no model": lambda t: t.update(root={"object": 0}),
    "no maps": lambda t: state(t).pop("_maps"),
    "a term of no kind": lambda t: named(t, "Setting")[0].update(kind="magic"),
    "a term of labels": lambda t: named(t, "Setting")[0].update(kind="labels"),
    "a term of no space": lambda t: named(t, "Setting")[0].update(kind="prior"),
    "a kernel of no kind": lambda t: named(t, "Setting")[0].update(mixture="fire"),
    "no width": lambda t: named(t, "_Gaussian")[0].update(width=0),
    "other blocks": lambda t: named(t, "ViewMap")[0].update(n_features=3),
    "a map of another view": lambda t: swap(state(t)["_maps"]["dict"]),
    "no scales": lambda t: state(t)["_factors"]["dict"][0][1]["tuple"].pop(),
    "fewer choices": lambda t: state(t)["choices_"]["dict"].clear(),
    "a table for another": lambda t: state(t)["_tables"]["dict"].pop(),
    "strange parameters": lambda t: state(t)["parameters"]["dict"].append(["a", 1]),
    "a metric as prior": lambda t: state(t)["parameters"]["dict"].append(["b", "x"]),
    "a model without its map": lambda t: named(t, "_Graph")[0].pop("graph"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_spoilt_folder_is_refused_with_a_sentence(name, tmp_path):
    model("judged").save(tmp_path / "model")
    folder = copy_folder(tmp_path / "model", tmp_path / "copy")
    spoil(folder, SPOILT[name])
    with pytest.raises(ModelError, match=r"^manifest\.json: ") as raised:
        ls.load(tmp_path / "copy")
    assert len(str(raised.value)) < 600


@pytest.mark.parametrize("seed", range(5))
def test_without_checksums_damage_never_crashes(seed, tmp_path):
    model("labels").save(tmp_path / "model")
    folder = copy_folder(tmp_path / "model", tmp_path / "copy")
    for k in range(3):
        flip(folder.arrays_path, 100 * seed + k)
    with pytest.raises(LinkspreadError):
        ls.load(tmp_path / "copy")
    try:
        again = ls.load(tmp_path / "copy", verify=False)
    except LinkspreadError:
        return
    with np.errstate(all="ignore"):
        assert again.scores(*PAIR).shape == (120, 90)


def test_the_manifest_says_what_it_is(tmp_path):
    model("judged").save(tmp_path / "model")
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_text("utf-8"))
    assert manifest["about"]["model"] == "CrossViewSearch"

"""Features as a folder: the same again, and strangers' folders refused."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

import linkspread as ls
from linkspread.features import TagFeatures
from linkspread.ground.errors import LinkspreadError, ModelError, ViewError
from linkspread.manifests import (
    FeatureSet,
    ItemCollection,
    ViewItems,
    featurize,
    load_features,
    read_collection,
)
from linkspread.manifests.rows import RowFile, Texts, pack_rows
from manifest_collections import small_pictures, write_items, write_table
from model_folders import Folder


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    """Return features that tests may look at but not change."""
    folder = tmp_path_factory.mktemp("items")
    rows = [(*row, f"class {i % 2}") for i, row in enumerate(write_items(folder, 6))]
    rows[2] = ("item2", "", "2.jpg", "")
    header = ("id", "text", "image", "label")
    collection = read_collection(write_table(folder / "t.csv", rows, header))
    return featurize(collection, transformers={"image": small_pictures()}, n_jobs=1)


def dense(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X)


def test_features_are_the_same_again(features, tmp_path):
    features.save(tmp_path / "features")
    again = load_features(tmp_path / "features")
    assert isinstance(again, FeatureSet) and list(again.views) == ["text", "image"]
    for view, X in features.views.items():
        assert (
            type(again.views[view]) is type(X) and again.views[view].dtype == np.float32
        )
        assert np.array_equal(dense(again.views[view]), dense(X))
        assert again.ids[view].tolist() == features.ids[view].tolist()
        assert again.labels[view].tolist() == features.labels[view].tolist()
        assert list(again.contents[view]) == list(features.contents[view])
    assert again.ids["text"].tolist() == [f"item{i}" for i in (0, 1, 3, 4, 5)]
    assert again.labels["image"].tolist()[1:4] == ["class 1", "", "class 1"]
    assert again.metrics == {"text": "cosine", "image": "hellinger"}
    assert again.kinds == {"text": "text", "image": "picture"}
    assert again.root == features.root and again.root.is_absolute()
    assert again.contents["image"][0] == "0.jpg"


def test_rows_lie_in_files_and_not_in_memory(features):
    parts = [features.views["image"], *(features.views["text"].data,)]
    for own in (*parts, features.contents["text"].data):
        while own.base is not None and not isinstance(own, np.memmap):
            own = own.base
        assert isinstance(own, np.memmap)


def test_new_items_are_described_as_the_old_ones_were(features, tmp_path):
    features.save(tmp_path / "features")
    again = load_features(tmp_path / "features")
    rows = again.transform(
        "image", [again.root / own for own in again.contents["image"]]
    )
    assert rows.dtype == np.float32 and np.array_equal(rows, features.views["image"])
    rows = again.transform("text", again.contents["text"])
    assert (rows != features.views["text"]).nnz == 0
    with pytest.raises(
        ViewError, match="`view` must be one of 'text', 'image', got 'x'"
    ):
        again.transform("x", ["a"])
    with pytest.raises(LinkspreadError, match="view 'image': "):
        again.transform("image", ["gone.jpg"])


def test_saving_again_replaces_and_other_folders_are_refused(features, tmp_path):
    target = tmp_path / "features"
    features.save(target)
    names = sorted(own.name for own in target.iterdir())
    features.save(target)
    assert sorted(own.name for own in target.iterdir()) == names
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(ModelError, match="holds other files"):
        features.save(tmp_path / "mine")
    data = ls.datasets.make_views(60, n_classes=3, random_state=0)
    model = ls.LinkSpreading(n_neighbors=5).fit(data.views(), data.labels)
    model.save(tmp_path / "model")
    other = "must have `format` 'linkspread {}', got 'linkspread {}'. Give another"
    with pytest.raises(ModelError, match=other.format("features", "model")):
        features.save(tmp_path / "model")
    kept = ls.load(tmp_path / "model").scores("text", "image")
    assert np.array_equal(kept, model.scores("text", "image"))
    # Features that took hours are not replaced by a model, either.
    with pytest.raises(ModelError, match=other.format("model", "features")):
        model.save(target)
    assert list(load_features(target).views) == list(features.views)
    with pytest.raises(
        ModelError, match="must hold features as `linkspread featurize`"
    ):
        load_features(tmp_path / "model")
    with pytest.raises(ModelError, match=other.format("model", "features")):
        ls.load(target)


@pytest.mark.parametrize("is_new", [True, False])
def test_a_save_that_is_cut_short_leaves_what_was_there(
    features, tmp_path, monkeypatch, is_new
):
    target = tmp_path / "features"
    if not is_new:
        features.save(target)

    def interrupted(file, arrays):
        raise KeyboardInterrupt

    monkeypatch.setattr("linkspread.storage.folder.write_tensors", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replace(features, root=tmp_path).save(target)
    if is_new:
        assert list(tmp_path.iterdir()) == []
    else:
        assert load_features(target).root == features.root


def test_long_texts_are_kept_by_their_beginning(tmp_path):
    items = ViewItems("text", np.array(["a"]), ["天" * 5000])
    made = featurize(ItemCollection({"text": items}, tmp_path))
    made.save(tmp_path / "features")
    assert load_features(tmp_path / "features").contents["text"][0] == "天" * 2000


def test_nothing_is_not_saved(tmp_path):
    items = ViewItems("text", np.array(["a"]), [" "])
    made = featurize(ItemCollection({"text": items}, tmp_path))
    with pytest.raises(ModelError, match="must have at least one view"):
        made.save(tmp_path / "features")
    assert not (tmp_path / "features").exists()


def spoiled(features):
    """Yield features that `save` writes as they are, and what is wrong with them."""
    n = len(features.ids["image"])
    two = features.ids["image"][[0, 0, 1, 2, 3, 4]]
    ids = features.ids
    contents = features.contents
    yield replace(features, ids=ids | {"image": two}), "ids of features must be"
    yield replace(features, ids=ids | {"image": two[:3]}), "ids of features must be"
    yield replace(features, ids=ids | {"image": np.arange(n)}), "ids of features"
    yield replace(features, labels={"image": two[:2]}), "labels of features"
    yield replace(features, labels={"other": two}), "labels of features"
    yield replace(features, kinds={"image": "picture"}), "kinds of features"
    yield replace(features, kinds={"image": "x", "text": "text"}), "kinds of features"
    yield replace(features, metrics={}), "metrics of features"
    yield replace(features, contents={"text": contents["text"]}), "contents of features"
    yield replace(features, digests={}), "digests of features"
    short = features.digests["image"][:, :31]
    yield replace(features, digests={"image": short}), "digests of features"
    for path in ("../../b.jpg", "etc/passwd", "a\0.jpg"):
        paths = Texts.from_strings([path] * n)
        wrong = contents | {"image": paths}
        yield replace(features, contents=wrong), "paths of pictures of features"
    own = features.transformers
    yield replace(features, transformers={"text": own["text"]}), "transformers of"


@pytest.mark.parametrize("number", range(15))
def test_folders_of_strangers_are_refused(features, tmp_path, number):
    wrong, message = list(spoiled(features))[number]
    wrong.save(tmp_path / "features")
    with pytest.raises(ModelError, match=message) as caught:
        load_features(tmp_path / "features")
    assert "must hold features as `linkspread featurize` writes them" in str(
        caught.value
    )


def test_a_stranger_cannot_have_another_picture_shown(features, tmp_path):
    private = tmp_path / "private"
    private.mkdir()
    for name in features.contents["image"]:
        (private / name).write_bytes((features.root / "5.jpg").read_bytes())
    replace(features, root=private).save(tmp_path / "features")
    forged = load_features(tmp_path / "features")
    assert forged.picture("image", 5).size == features.picture("image", 5).size
    with pytest.raises(LinkspreadError, match="'0.jpg' must be as when its features"):
        forged.picture("image", 0)


def arrays_named(folder, part):
    return [name for name in folder.arrays() if part in name]


@pytest.mark.parametrize("seed", range(12))
def test_changed_bits_are_refused(features, tmp_path, seed):
    features.save(tmp_path / "features")
    rng = np.random.default_rng(seed)
    paths = sorted((tmp_path / "features").iterdir())
    path = paths[seed % len(paths)]
    data = bytearray(path.read_bytes())
    data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    path.write_bytes(data)
    with pytest.raises(ModelError, match="must hold features"):
        load_features(tmp_path / "features")


MADE_UP = {
    "offsets": lambda own: own[::-1].copy(),
    "data": lambda own: np.full_like(own, 0xFF),
    "indices": lambda own: np.full_like(own, 1 << 20),
    "idf_": lambda own: own[:-1],
    "codebook_": lambda own: own[:, :-1],
}


@pytest.mark.parametrize("part", MADE_UP)
def test_arrays_made_up_with_right_checksums_are_refused(features, tmp_path, part):
    features.save(tmp_path / "features")
    folder = Folder(tmp_path / "features")
    arrays = {name: own.copy() for name, own in folder.arrays().items()}
    for name in arrays_named(folder, part):
        arrays[name] = MADE_UP[part](arrays[name])
    folder.write_arrays(arrays)
    with pytest.raises(ModelError, match="must hold features"):
        load_features(tmp_path / "features")


def test_transformers_of_other_classes_are_not_saved(tmp_path):
    items = ViewItems("text", np.array(["a"]), ["one fish"])
    collection = ItemCollection({"text": items}, tmp_path)
    fitted = TagFeatures().fit(["one fish"])

    class Bare(BaseEstimator):
        metric_ = "cosine"

        def transform(self, texts):
            return fitted.transform(texts)

        def __sklearn_is_fitted__(self):
            return True

        def fit(self, texts):
            return self

    class Homemade(TagFeatures):
        pass

    for own in (Bare(), Homemade()):
        made = featurize(collection, transformers={"text": own})
        assert made.views["text"].shape == (1, 2)
        message = f"`transformers.text` is of class '{type(own).__name__}'"
        with pytest.raises(ModelError, match=message):
            made.save(tmp_path / "features")


def test_seeds_that_cannot_be_saved_are_refused_at_once(tmp_path):
    write_items(tmp_path, 3)
    chosen = small_pictures().set_params(random_state=np.random.RandomState(0))
    with pytest.raises(
        LinkspreadError, match="`random_state` of a transformer must be"
    ):
        featurize(read_collection(tmp_path), transformers={"image": chosen})
    with pytest.raises(ViewError, match="`transformers` must be for views"):
        featurize(read_collection(tmp_path), transformers={"x": chosen})
    with pytest.raises(LinkspreadError, match="`n_jobs` must be None or an integer"):
        featurize(read_collection(tmp_path), n_jobs=0)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_rows_in_a_file_are_the_rows(rng, tmp_path, is_sparse):
    X = rng.random((9, 5)).astype(np.float32) * (rng.random((9, 5)) < 0.5)
    X[4] = 0
    given = sparse.csr_array(X) if is_sparse else X
    with RowFile(tmp_path) as rows:
        for row in pack_rows(given):
            rows.append(row, "")
        found, _ = rows.finish()
    assert sparse.issparse(found) == is_sparse
    assert np.array_equal(dense(found), X)
    assert list(tmp_path.iterdir()) == []


def test_rows_that_do_not_fit_are_refused(rng):
    with RowFile() as rows:
        rows.append(next(pack_rows(np.ones((1, 3)))), "")
        for wrong in (np.ones((1, 4)), np.full((1, 3), np.nan), sparse.eye_array(3)):
            with pytest.raises(LinkspreadError, match="finite and of 3 features"):
                rows.append(next(pack_rows(wrong)), "")


def test_texts_in_a_file_are_the_texts(tmp_path):
    texts = ["", "天气", "a\nb", "🌊" * 3, ""]
    with RowFile(tmp_path) as file:
        for own in texts:
            file.append(next(pack_rows(np.ones((1, 1)))), own)
        _, found = file.finish()
    assert list(found) == list(Texts.from_strings(texts)) == texts
    assert list(Texts.from_strings([])) == []
    assert found[-2] == texts[-2] and found[1:3] == texts[1:3] and len(found) == 5
    with pytest.raises(IndexError):
        found[5]

"""A thousand damaged model folders: refused with a sentence, or harmless."""

import traceback

import numpy as np
import pytest

import linkspread as ls
from linkspread.ground.errors import LinkspreadError, ModelError
from model_folders import Folder, copy_folder

BETWEEN = ("text", "image")
N_EACH = 250  # of each kind of damage and each of two models


@pytest.fixture(scope="module")
def models():
    data = ls.datasets.make_views({"text": 14, "image": 12}, random_state=0)
    views = {view: X[:, :3] for view, X in data.views().items()}
    pairs = [(f"t{i}", 5 * i % 12, 1.0 if i % 3 else -1.0) for i in range(8)]
    links = ls.Links.from_pairs(pairs, between=BETWEEN)
    ids = {"text": [f"t{i}" for i in range(14)]}
    return {
        "spreading": ls.LinkSpreading(n_neighbors=3).fit(views, links, ids=ids),
        "search": ls.CrossViewSearch().fit(views, links, ids=ids),
    }


def change_a_value(array, rng):
    """Return an array with one value replaced, two exchanged, or a part missing."""
    array = array.copy()
    flat = array.reshape(-1)
    kind = rng.integers(5)
    if kind == 0 or not len(flat):
        return array[: len(array) // 2]
    i, j = rng.integers(len(flat), size=2)
    if kind == 1:
        flat[i], flat[j] = flat[j], flat[i]
    elif array.dtype.kind == "f":
        extremes = [np.nan, np.inf, -1.0, 0.0, 1e30, -1e-30, flat[i] * 1.5, -flat[i]]
        flat[i] = rng.choice(extremes)
    elif array.dtype.kind == "i":
        info = np.iinfo(array.dtype)
        flat[i] = rng.choice([-1, 10**6, 0, info.max, info.min, flat[j]])
    else:
        flat[i] = flat[i] ^ 1 if array.dtype.kind == "b" else rng.integers(256)
    return array


def change_the_tree(node, rng):
    """Change one value somewhere in a JSON tree, in place."""
    while True:
        keys = list(node) if isinstance(node, dict) else range(len(node))
        if not len(keys):
            return
        key = keys[rng.integers(len(keys))]
        if isinstance(node[key], dict | list) and node[key] and rng.random() < 0.9:
            node = node[key]
            continue
        values = [None, -1, 0, 3, 1e300, 10**18, "", "x", [], {}, True, [["x"]]]
        node[key] = values[rng.integers(len(values))]
        return


def damage_with_checksums(folder, rng):
    if rng.random() < 0.5:
        change_the_tree(folder.manifest["content"], rng)
        folder.write_manifest()
        return
    arrays = folder.arrays()
    name = sorted(arrays)[rng.integers(len(arrays))]
    arrays[name] = change_a_value(arrays[name], rng)
    folder.write_arrays(arrays)


def damage_bytes(folder, rng):
    path = folder.path / "manifest.json" if rng.random() < 0.3 else folder.arrays_path
    data = bytearray(path.read_bytes())
    place = int(rng.integers(len(data)))
    kind = rng.integers(3)
    if kind == 0:
        del data[place:]
    elif kind == 1:
        data[place] ^= 1 << int(rng.integers(8))
    else:
        data[place : place + 8] = rng.bytes(8)
    path.write_bytes(bytes(data))


def ask_everything(model):
    """Use a loaded model; what it answers must be finite."""
    for source, target in (BETWEEN, BETWEEN[::-1]):
        assert np.isfinite(model.scores(source, target)).all()
        one = model.items_[source].ids[:1]
        assert np.isfinite(model.search(one, source=source, target=target)[1]).all()
    model.explain(model.items_["text"].ids[0].item(), 1, source="text", target="image")
    some = model.items_["text"].ids[9].item(), model.items_["image"].ids[9].item()
    model.add_links(ls.Links.from_pairs([(*some, 1.0)], between=BETWEEN))


@pytest.mark.parametrize(
    "damage",
    [pytest.param(damage_with_checksums, marks=pytest.mark.slow), damage_bytes],
)
@pytest.mark.parametrize("kind", ["spreading", "search"])
def test_a_damaged_folder_is_refused_or_harmless(models, damage, kind, tmp_path):
    models[kind].save(tmp_path / "sound")
    original = {own.name: own.read_bytes() for own in (tmp_path / "sound").iterdir()}
    path, n_refused, failures = tmp_path / "model", 0, []
    path.mkdir()
    for seed in range(N_EACH):
        for own in path.iterdir():
            own.unlink()
        for name, data in original.items():
            (path / name).write_bytes(data)
        damage(Folder(path), np.random.default_rng(seed))
        try:
            ask_everything(ls.load(path))
        except LinkspreadError as error:
            n_refused += 1
            assert 20 < len(str(error)) < 700
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-3:]
            failures.append(
                (
                    seed,
                    repr(error)[:200],
                    [(own.filename[-30:], own.line) for own in last],
                )
            )
    assert not failures, str(failures)
    print(
        f"{N_EACH} folders, {damage.__name__}: {n_refused} refused, the rest harmless"
    )
    assert n_refused > N_EACH // 4


def make_negative(W):
    W.data[:] *= -1


def make_huge(W):
    W.data[:] = 1e30


@pytest.mark.parametrize("spoil", [make_negative, make_huge])
@pytest.mark.parametrize("kind", ["spreading", "search"])
def test_a_graph_that_is_none_is_refused(models, kind, spoil, tmp_path):
    models[kind].save(tmp_path / "model")
    folder = copy_folder(tmp_path / "model", tmp_path / "spoilt")
    arrays = {name: own.copy() for name, own in folder.arrays().items()}
    (name, *_) = [own[:-5] for own in arrays if own.endswith("affinity.data")]

    class W:
        data, indices, indptr = (
            arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr")
        )

    spoil(W)
    folder.write_arrays(arrays)
    ls.load(tmp_path / "model")
    with pytest.raises(ModelError, match="edges of a graph must be|must be at most"):
        ls.load(tmp_path / "spoilt")
    with pytest.raises(ModelError):
        ls.load(tmp_path / "spoilt", verify=False)

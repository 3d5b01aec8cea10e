"""Shards written by workers are searched as the model of one machine is."""

import json
import resource
import shutil

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import linkspread as ls
from cluster_cases import problem
from example_files import command, made_data, write_pairs, write_views
from linkspread import cluster
from linkspread.cluster.shards import ShardIndex, VectorShards, write_shard
from linkspread.ground.errors import LinkspreadError, ModelError, ViewError
from linkspread.search import ItemIndex
from linkspread.storage.tensors import checksum

pytestmark = pytest.mark.slow

BETWEEN = {"source": "text", "target": "image"}


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """Return views as files, the same in memory, and labels."""
    folder = tmp_path_factory.mktemp("tables")
    tables, labels = problem()
    for view, X in tables.items():
        np.save(folder / f"{view}.npy", X)
    return {view: folder / f"{view}.npy" for view in tables}, tables, labels


def model(**parameters):
    return ls.LinkSpreading(**{"n_neighbors": 10, **parameters})


@pytest.fixture(scope="module")
def both(client, case, tmp_path_factory):
    """Return the model of one machine, that of the shards, and their folder."""
    views, tables, labels = case
    folder = tmp_path_factory.mktemp("shards")
    one = model().fit(tables, labels)
    shards = cluster.fit_shards(model(), views, labels, client=client, output=folder)
    return one, shards, folder


def assert_same_answers(one, other, queries, **asked):
    for found, expected in zip(
        other.search(queries, **BETWEEN, **asked),
        one.search(queries, **BETWEEN, **asked),
        strict=True,
    ):
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-12)


def test_fitted_items_find_what_they_find_on_one_machine(both):
    one, shards, _ = both
    assert len(shards.pairs_["text", "image"].left.files) > 1
    assert_same_answers(one, shards, [7, 0, 329], n_results=25)
    assert_same_answers(one, shards, 7, n_results=1000)
    assert_allclose(shards.scores("image", "text"), one.scores("image", "text"), 1e-6)


def test_new_items_find_what_they_find_on_one_machine(both, case):
    one, shards, _ = both
    assert_same_answers(one, shards, case[1]["text"][:5] + 0.01, n_results=7)


def test_what_may_be_found_is_what_may_be_found_on_one_machine(both):
    one, shards, _ = both
    assert_same_answers(one, shards, [3, 4], only=np.arange(190, 205), n_results=9)
    assert_same_answers(one, shards, [3, 4], exclude=np.arange(5, 200), n_results=99)


def test_shards_are_opened_without_workers_and_need_the_table_for_new_items(both, case):
    one, _, folder = both
    again = cluster.open_shards(folder)
    assert_same_answers(one, again, [1, 2], n_results=5)
    with pytest.raises(LinkspreadError, match="table of view 'text' must be given"):
        again.search(case[1]["text"][:2], **BETWEEN)
    again = cluster.open_shards(folder, views=case[0])
    assert_same_answers(one, again, case[1]["text"][:2], n_results=5)
    with pytest.raises(ViewError, match="table of the fit"):
        cluster.open_shards(folder, views={"text": case[0]["image"]})
    with pytest.raises(ViewError, match="must be those of the shards"):
        cluster.open_shards(folder, views={"sound": case[0]["image"]})


@pytest.mark.slow
@pytest.mark.parametrize("parameters", [{"graph": "cwa"}, {"bandwidth": "0.5 mean"}])
def test_other_graphs_place_new_items_as_on_one_machine(
    client, case, tmp_path, parameters
):
    views, tables, labels = case
    one = model(**parameters).fit(tables, labels)
    shards = cluster.fit_shards(
        model(**parameters), views, labels, client=client, output=tmp_path
    )
    assert_same_answers(one, shards, tables["text"][:4] + 0.01, n_results=20)


@pytest.mark.slow
def test_codes_are_searched_with_ids_and_refuse_new_items(client, case, tmp_path):
    views, tables, labels = case
    one = model(graph="sr").fit(tables, labels)
    shards = cluster.fit_shards(
        model(graph="sr"), views, labels, client=client, output=tmp_path
    )
    assert_same_answers(one, shards, [7], n_results=20)
    with pytest.raises(LinkspreadError, match="must have graph knn or cwa.*got 'sr'"):
        shards.search(tables["text"][:2], **BETWEEN)


@pytest.mark.slow
def test_wide_links_of_tables_in_memory_with_ids(client, case, tmp_path):
    _, tables, _ = case
    rng = np.random.default_rng(0)
    ids = {view: [f"{view[0]}{i}" for i in range(len(X))] for view, X in tables.items()}
    pairs = [
        (ids["text"][i], ids["image"][j], float(rng.choice([-1, 1])))
        for i, j in zip(
            rng.permutation(210)[:90], rng.permutation(210)[:90], strict=True
        )
    ]
    links = ls.Links.from_pairs(pairs, between=("text", "image"))
    one = model(alpha=0.2).fit(tables, links, ids=ids)
    shards = cluster.fit_shards(
        model(alpha=0.2), tables, links, client=client, ids=ids, output=tmp_path
    )
    asked = {**BETWEEN, "n_results": 5, "judged": False}
    found, expected = (own.search(pairs[0][0], **asked) for own in (shards, one))
    assert_array_equal(found[0], expected[0])
    assert_allclose(found[1], expected[1], rtol=1e-5)
    assert pairs[0][1] not in found[0]


@pytest.mark.parametrize("sizes", [(4, 3, 5), (12,)])
def test_an_index_of_shards_finds_what_an_index_of_all_finds(tmp_path, rng, sizes):
    # Rounded, so that ties show whether the order of the items is kept.
    items = rng.integers(-2, 3, (12, 2)).astype(float)
    queries = rng.integers(-2, 3, (6, 2)).astype(float)
    edges = np.cumsum([0, *sizes])
    files = [
        write_shard(items[a:b], str(tmp_path))
        for a, b in zip(edges[:-1], edges[1:], strict=True)
    ]
    index = ShardIndex(VectorShards(tuple(files), 2, "float64"), tmp_path)
    barred = sparse.csr_array(rng.random((6, 12)) < 0.4)
    for asked in (
        {"n_results": 4},
        {"n_results": 40},
        {"n_results": 4, "only": np.array([0, 3, 4, 11])},
        {"n_results": 3, "barred": barred},
        {"n_results": 0},
    ):
        found = index.search(queries, **asked)
        expected = ItemIndex(items, method="exact").search(queries, **asked)
        for own, other in zip(found, expected, strict=True):
            assert_array_equal(own, other)


@pytest.fixture
def copied(both, tmp_path):
    """Return a copy of the folder of shards."""
    return shutil.copytree(both[2], tmp_path / "copied")


@pytest.mark.parametrize("helped", [False, True], ids=["here", "by workers"])
def test_a_flipped_bit_anywhere_is_refused(client, copied, helped):
    rng = np.random.default_rng(0)
    files = sorted(path for path in copied.rglob("*") if path.is_file())
    # In every file, then more often in large ones.
    sizes = np.array([path.stat().st_size for path in files])
    more = rng.choice(len(files), 30 - len(files), p=sizes / sizes.sum())
    places = [*files, *(files[i] for i in more)]
    for path in rng.permutation(places)[:4] if helped else places:
        whole = path.read_bytes()
        place, bit = rng.integers(len(whole)), rng.integers(8)
        flipped = whole[place] ^ (1 << bit)
        path.write_bytes(whole[:place] + bytes([flipped]) + whole[place + 1 :])
        with pytest.raises(ModelError):
            cluster.open_shards(copied, client=client if helped else None)
        path.write_bytes(whole)
    cluster.open_shards(copied)


def test_damaged_shards_are_refused_with_the_file(both, copied):
    name = both[1].pairs_["text", "image"].left.files[0].name
    path = copied / "vectors" / name
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    cluster.open_shards(copied, verify=False)  # the size is the same
    with pytest.raises(ModelError, match=f"{name}.*size and checksum"):
        cluster.open_shards(copied)
    path.write_bytes(whole[:-8])
    with pytest.raises(ModelError, match=f"{name}.*whole .npy file"):
        cluster.open_shards(copied, verify=False)
    path.unlink()
    with pytest.raises(ModelError, match=f"{name}.*whole .npy file"):
        cluster.open_shards(copied)
    elsewhere = copied.with_name("elsewhere.npy")
    elsewhere.write_bytes(whole)
    path.symlink_to(elsewhere)
    with pytest.raises(ModelError, match="symbolic link"):
        cluster.open_shards(copied)


def test_a_manifest_cannot_name_files_elsewhere(copied):
    # The checksum of the manifest itself is mended, as a stranger would.
    manifest = copied / "head" / "manifest.json"
    text = manifest.read_text()
    name = next((copied / "vectors").iterdir()).name
    document = json.loads(text.replace(name, "../../" + name))
    document["sha256"] = checksum({k: v for k, v in document.items() if k != "sha256"})
    manifest.write_text(json.dumps(document))
    with pytest.raises(ModelError, match="parts of a VectorShards must fit"):
        cluster.open_shards(copied)


@pytest.mark.parametrize("write", ["file", "other"])
def test_nothing_else_is_written_over(client, case, tmp_path, write):
    views, _, labels = case
    output = tmp_path / "there"
    if write == "file":
        output.write_text("mine")
    else:
        output.mkdir()
        (output / "notes.txt").write_text("mine")
    with pytest.raises(ModelError, match="`output` must be a new folder"):
        cluster.fit_shards(model(), views, labels, client=client, output=output)


def manhattan(Q, X):
    return np.abs(Q[:, None] - X).sum(axis=2)


def test_a_metric_of_ones_own_is_refused_before_anything_is_built(
    client, case, tmp_path
):
    views, _, labels = case
    output = tmp_path / "shards"
    with pytest.raises(LinkspreadError, match="view 'text': `metric` must be one of"):
        cluster.fit_shards(
            model(metric=manhattan), views, labels, client=client, output=output
        )
    assert not output.exists()


def _limit_files(n_bytes):
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))


def test_a_full_disk_is_one_sentence_and_leaves_the_model_that_was_there(
    client, case, tmp_path
):
    views, tables, labels = case
    cluster.fit_shards(model(), views, labels, client=client, output=tmp_path)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    try:
        client.run(_limit_files, 1000)
        with pytest.raises(LinkspreadError, match="`output` must be .* with room for"):
            cluster.fit_shards(
                model(alpha=0.4), views, labels, client=client, output=tmp_path
            )
    finally:
        client.run(_limit_files, resource.RLIM_INFINITY)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    one = model().fit(tables, labels)
    assert_same_answers(one, cluster.open_shards(tmp_path), [5])
    cluster.fit_shards(model(alpha=0.4), views, labels, client=client, output=tmp_path)
    n_files = len(list((tmp_path / "vectors").iterdir()))
    assert n_files == len([name for name in before if name.startswith("vectors-")])


def test_the_command_writes_shards_and_searches_in_them(
    client, tmp_path, monkeypatch, capsys
):
    data = made_data()
    write_views(tmp_path, data)
    write_pairs(tmp_path, data)
    line = (
        "fit --view text=text.parquet --view image=image.parquet --links pairs.csv "
        "--model spreading --n-neighbors 5 --output "
    )
    made = f"{line}made --shards --scheduler {client.scheduler.address}"
    assert command(monkeypatch, tmp_path, line + "plain") == 0
    assert command(monkeypatch, tmp_path, made) == 0
    capsys.readouterr()
    item = ls.load(tmp_path / "plain").items_["text"].ids[3]
    answers = []
    for name in ("plain", "made"):
        asked = f"search {name} --source text --target image --id {item} --json"
        assert command(monkeypatch, tmp_path, asked) == 0
        answers.append(json.loads(capsys.readouterr().out)["queries"][0]["results"])
    one, other = answers
    assert [own["id"] for own in one] == [own["id"] for own in other]
    assert command(monkeypatch, tmp_path, made) == 2
    assert "holds shards. Add --overwrite" in capsys.readouterr().err
    assert command(monkeypatch, tmp_path, made + " --overwrite") == 0
    capsys.readouterr()
    assert command(monkeypatch, tmp_path, line + "other --shards") == 2
    assert "no `--scheduler` was given" in capsys.readouterr().err


def test_info_tells_what_shards_hold(both, monkeypatch, capsys):
    _, shards, folder = both
    assert command(monkeypatch, folder, "info . --json") == 0
    document = json.loads(capsys.readouterr().out)
    pair = shards.pairs_["text", "image"]
    assert document["kind"] == "shards"
    assert document["views"]["text"] == {"items": 330, "first_id": 0}
    assert document["files"] == {
        "text and image": len(pair.left.files) + len(pair.right.files)
    }
    assert document["bytes"] > sum(file.n_bytes for file in pair.left.files)
    assert command(monkeypatch, folder, "info .") == 0
    told = capsys.readouterr().out
    assert f"vectors of {pair.left.width} numbers in" in told
    assert "labels of text" in told


@pytest.mark.parametrize(
    "line", ["serve .", "links list .", "export . --output out.npz"]
)
def test_commands_that_need_a_whole_model_say_so(both, line, monkeypatch, capsys):
    assert command(monkeypatch, both[2], line) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "holds shards. Use `linkspread search` or `linkspread info`" in told

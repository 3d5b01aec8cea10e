"""Rows are made once, also by several, and a damaged cache is never believed."""

import sqlite3
import sys
import threading
import time

import numpy as np
import pytest

from linkspread.features import PictureFeatures, TextFeatures
from linkspread.ground.errors import LinkspreadError
from linkspread.manifests import featurize, read_collection
from linkspread.manifests.cache import RowCache, default_cache
from linkspread.manifests.featurizing import BATCH
from linkspread.manifests.transformers import fingerprint, pack, unpack
from manifest_collections import picture, small_pictures, write_items

N = 12


@pytest.fixture
def made(monkeypatch):
    """Return the names of the pictures that rows are made of, and of those learnt."""
    done = {"rows": [], "learnt": []}
    for name, key in (("transform", "rows"), ("fit", "learnt")):
        before = getattr(PictureFeatures, name)

        def counted(self, pictures, *more, before=before, key=key):
            done[key] += [path.name for path in pictures]
            return before(self, pictures, *more)

        monkeypatch.setattr(PictureFeatures, name, counted)
    return done


@pytest.fixture
def folder(tmp_path):
    write_items(tmp_path / "items", N)
    return tmp_path / "items"


def run(source, cache, **options):
    options = {"transformers": {"image": small_pictures()}} | options
    return featurize(read_collection(source), cache=cache, n_jobs=1, **options)


def test_unchanged_files_are_neither_learnt_from_nor_described_again(
    folder, tmp_path, made
):
    first = run(folder, tmp_path / "rows.sqlite")
    assert len(made["rows"]) == len(made["learnt"]) == N
    second = run(folder, tmp_path / "rows.sqlite")
    assert len(made["rows"]) == len(made["learnt"]) == N
    assert np.array_equal(first.views["image"], second.views["image"])
    assert (first.views["text"] != second.views["text"]).nnz == 0


def test_a_changed_file_redoes_its_own_row_where_the_codebook_is_kept(
    folder, tmp_path, made
):
    first = run(folder, tmp_path / "rows.sqlite")
    (folder / "5.jpg").write_bytes(picture(77))
    (folder / "new.jpg").write_bytes(picture(78))
    made["rows"].clear()
    second = run(folder, tmp_path / "rows.sqlite", transformers=first.transformers)
    assert made["rows"] == ["5.jpg", "new.jpg"]
    same = [i for i, own in enumerate(first.ids["image"]) if own != "5"]
    X, Y = first.views["image"], second.views["image"][:N]
    assert np.array_equal(X[same], Y[same])
    assert not np.array_equal(X, Y)
    expected = first.transform("image", [folder / "5.jpg"])
    assert np.array_equal(Y[second.ids["image"][:N] == "5"], expected)


def test_a_moved_file_is_the_same_content(folder, tmp_path, made):
    first = run(folder, tmp_path / "rows.sqlite")
    (folder / "5.jpg").rename(folder / "0b.jpg")
    made["rows"].clear()
    second = run(folder, tmp_path / "rows.sqlite", transformers=first.transformers)
    assert made["rows"] == []
    X, Y = first.views["image"], second.views["image"]
    assert np.array_equal(X[first.ids["image"] == "5"], Y[second.ids["image"] == "0b"])


def test_rows_of_another_transformer_are_never_taken(folder, tmp_path):
    run(folder, tmp_path / "rows.sqlite")
    other = PictureFeatures(n_words=8, size=96, random_state=0)
    plain = run(folder, None, transformers={"image": other})
    cached = run(folder, tmp_path / "rows.sqlite", transformers={"image": other})
    assert np.array_equal(plain.views["image"], cached.views["image"])


def test_fingerprints_tell_parameters_and_what_was_learnt():
    texts = [["one fish", "two fish"], ["one fish", "two cats"]]
    fitted = [TextFeatures().fit(own) for own in (*texts, texts[0])]
    fitted += [TextFeatures(max_features=9).fit(texts[0])]
    found = [fingerprint(own) for own in fitted]
    assert found[0] == found[2] == fingerprint(unpack(pack(fitted[0])))
    assert len(set(found)) == 3
    pictures = [np.full((40, 40), 9, np.uint8)]
    loud = PictureFeatures(2, size=64, random_state=0, n_jobs=1, verbose=True)
    quiet = PictureFeatures(2, size=64, random_state=0)
    assert fingerprint(loud.fit(pictures)) == fingerprint(quiet.fit(pictures))


def test_an_interrupt_keeps_the_rows_made_so_far(folder, tmp_path, made, monkeypatch):
    monkeypatch.setitem(BATCH, "picture", 5)
    before = PictureFeatures.transform

    def interrupted(self, pictures):
        if len(made["rows"]) >= 5:
            raise KeyboardInterrupt
        return before(self, pictures)

    with monkeypatch.context() as patch:
        patch.setattr(PictureFeatures, "transform", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(folder, tmp_path / "rows.sqlite", folder=tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left <= {"items", "rows.sqlite", "rows.sqlite-wal", "rows.sqlite-shm"}
    made["rows"].clear()
    run(folder, tmp_path / "rows.sqlite")
    assert len(made["rows"]) == N - 5 and len(made["learnt"]) == N


def spoil_header(data):
    return b"no database at all" + data[18:]


def spoil_middle(data):
    return data[: len(data) // 2] + bytes(2000) + data[len(data) // 2 + 2000 :]


def spoil_end(data):
    return data[: len(data) // 3]


@pytest.mark.parametrize("spoil", [spoil_header, spoil_middle, spoil_end])
def test_a_damaged_cache_is_thrown_away(folder, tmp_path, spoil):
    path = tmp_path / "rows.sqlite"
    first = run(folder, path)
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.warns(UserWarning, match="damaged.* It was deleted"):
        second = run(folder, path)
    assert np.array_equal(first.views["image"], second.views["image"])
    with RowCache(path) as cache:
        cache.put({b"key": b"value"})
        assert cache.get([b"key"]) == {b"key": b"value"}


def test_an_entry_with_another_checksum_is_not_believed(tmp_path):
    path = tmp_path / "rows.sqlite"
    with RowCache(path) as cache:
        cache.put({b"a": b"one", b"b": b"two"})
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE entry SET value = x'00' WHERE key = x'62'")
    connection.close()
    with RowCache(path) as cache:
        assert cache.get([b"a"]) == {b"a": b"one"}
        with pytest.warns(UserWarning, match="another checksum"):
            assert cache.get([b"b"]) == {}
        assert cache.get([b"a"]) == {}


def test_an_older_layout_is_thrown_away(tmp_path):
    path = tmp_path / "rows.sqlite"
    with RowCache(path) as cache:
        cache.put({b"a": b"one"})
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version=99")
    connection.close()
    with pytest.warns(UserWarning, match="layout 99"), RowCache(path) as cache:
        assert cache.get([b"a"]) == {}


def test_files_of_others_are_never_thrown_away(tmp_path):
    (tmp_path / "notes.txt").write_text("my notes, not yours" * 100)
    with sqlite3.connect(tmp_path / "mine.db") as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()
    for name in ("notes.txt", "mine.db"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(
            LinkspreadError, match="`cache` must be a file that linkspread"
        ):
            RowCache(tmp_path / name)
        if name == "notes.txt":
            assert (tmp_path / name).read_bytes() == before


def test_a_cache_that_cannot_be_written_is_done_without(folder, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.warns(UserWarning, match="This run does not use it"):
        features = run(folder, tmp_path / "file" / "rows.sqlite")
    assert features.views["image"].shape[0] == N


@pytest.mark.parametrize("attempt", range(10))
def test_several_may_write_at_the_same_time(tmp_path, attempt):
    path = tmp_path / "rows.sqlite"
    failed = []
    together = threading.Barrier(4)

    def work(number):
        try:
            together.wait()
            with RowCache(path) as cache:
                for i in range(5):
                    cache.put({f"{number} {i}".encode(): bytes(1000)})
                    cache.get([f"{other} {i}".encode() for other in range(4)])
                assert cache.n_added == 5
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    with RowCache(path) as cache:
        keys = [f"{number} {i}".encode() for number in range(4) for i in range(5)]
        assert len(cache.get(keys)) == 20


def test_the_usual_place_is_the_users_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = default_cache()
    assert path.name == "rows.sqlite" and "linkspread" in path.parts
    if sys.platform == "linux":
        assert path.is_relative_to(tmp_path)


@pytest.mark.slow
def test_a_second_run_is_twenty_times_faster(tmp_path):
    write_items(tmp_path / "items", 300)
    collection = read_collection(tmp_path / "items")
    seconds = []
    for _ in range(3):
        start = time.process_time()
        featurize(collection, cache=tmp_path / "rows.sqlite", n_jobs=1)
        seconds.append(time.process_time() - start)
    print(f"{seconds[0]:.2f} s, then {seconds[1]:.2f} s and {seconds[2]:.2f} s")
    assert min(seconds[1:]) * 20 < seconds[0]

"""A folder with planted damage: counted by kind, and no other row is any different."""

from collections import Counter

import numpy as np
import pytest

from linkspread.features import PictureFeatures, TextFeatures
from linkspread.manifests import featurize, load_features, read_collection
from linkspread.manifests.featurizing import ViewWork
from manifest_collections import (
    damaged_pictures,
    damaged_texts,
    pick,
    picture,
    small_pictures,
    text,
    write_items,
    write_table,
)

# With the damaged files 300 in all.
N_GOOD = 137


class Damaged:
    """A table of 300 files, what is damaged of them, and the features of the others."""

    def __init__(self, folder):
        self.folder = folder
        self.good = write_items(folder, N_GOOD)
        pictures, texts = damaged_pictures(folder), damaged_texts(folder)
        self.kinds = {f"bad {n}": kind for n, kind in (pictures | texts).items()}
        rows = [(f"bad {name}", "", name) for name in pictures]
        rows += [(f"bad {name}", name, "") for name in texts]
        # Among the good ones, so that positions of these shift.
        pairs = ((own, *rows[i : i + 1]) for i, own in enumerate(self.good))
        table = write_table(folder / "items.csv", [row for own in pairs for row in own])
        self.collection = read_collection(table)
        self.features = run(self.collection)

    def clean(self):
        return read_collection(write_table(self.folder / "clean.csv", self.good))


def run(collection, **options):
    chosen = {"image": small_pictures()}
    return featurize(collection, transformers=chosen, n_jobs=1, **options)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory):
    return Damaged(tmp_path_factory.mktemp("damaged"))


@pytest.mark.slow
def test_every_kind_of_damage_is_told(damaged):
    problems, kinds = damaged.features.problems, damaged.kinds
    n_files = sum(len(items.ids) for items in damaged.collection.views.values())
    assert n_files == 300 and len(kinds) >= 20
    assert {problem.id: problem.kind for problem in problems} == kinds
    assert damaged.features.count_problems() == dict(Counter(kinds.values()))
    assert all(p.sentence.endswith(".") and "must" in p.sentence for p in problems)
    assert {p.view for p in problems if p.id.endswith(".txt")} == {"text"}


@pytest.mark.slow
def test_rows_of_good_files_are_those_of_the_library(damaged):
    features = damaged.features
    paths = [damaged.folder / name for _, _, name in damaged.good]
    assert features.ids["image"].tolist() == [own for own, _, _ in damaged.good]
    X = small_pictures().fit_transform(paths)
    assert np.array_equal(features.views["image"], X)
    texts = [text(i) for i in range(N_GOOD)]
    T = TextFeatures().fit_transform(texts).astype(np.float32)
    assert abs(features.views["text"] - T).max() == 0


@pytest.mark.slow
def test_a_cache_changes_neither_rows_nor_problems(damaged, tmp_path):
    for _ in range(2):
        features = run(damaged.collection, cache=tmp_path / "rows.sqlite")
        X, wanted = features.views["image"], damaged.features.views["image"]
        assert np.array_equal(X, wanted)
        assert sorted(features.problems) == sorted(damaged.features.problems)


@pytest.mark.slow
def test_looking_at_few_files_at_a_time_makes_no_difference(damaged, monkeypatch):
    monkeypatch.setattr("linkspread.manifests.featurizing.N_TOGETHER", 7)
    for view, items in damaged.collection.views.items():
        work = ViewWork(view, items, n_threads=2)
        work.hash_contents()
        bad = [problem.id for problem in work.problems]
        kept = items.ids[list(work.seen)].tolist()
        assert sorted(bad + kept) == sorted(items.ids)
        assert set(bad) <= set(damaged.kinds) and list(work.seen) == sorted(work.seen)


@pytest.mark.slow
def test_a_sample_of_pictures_does_not_depend_on_damage(damaged, monkeypatch):
    monkeypatch.setattr("linkspread.manifests.featurizing.N_LEARNT", 40)
    clean, features = run(damaged.clean()), run(damaged.collection)
    assert np.array_equal(features.views["image"], clean.views["image"])
    assert clean.problems == []
    of_all = damaged.features.transformers["image"].codebook_
    assert not np.array_equal(features.transformers["image"].codebook_, of_all)


def test_problems_are_kept_in_the_folder(damaged, tmp_path):
    damaged.features.save(tmp_path / "features")
    problems = load_features(tmp_path / "features").problems
    assert problems == damaged.features.problems


def test_a_collection_of_nothing_but_damage_has_no_view(damaged):
    collection = damaged.collection
    ids = collection.views["image"].ids
    bad = pick(collection, "image", np.flatnonzero(np.char.startswith(ids, "bad")))
    features = run(bad)
    assert features.views == {}
    n_bad = sum(not own.endswith(".txt") for own in damaged.kinds)
    assert len(features.problems) == n_bad


def test_a_file_that_changes_meanwhile_is_left_out(tmp_path, monkeypatch):
    write_items(tmp_path, 6)
    collection = read_collection(tmp_path)

    class Meddling(PictureFeatures):
        def transform(self, pictures):
            (tmp_path / "3.jpg").write_bytes(picture(99) + b" ")
            return super().transform(pictures)

    transformer = Meddling(n_words=8, size=64, random_state=0)
    features = featurize(collection, transformers={"image": transformer})
    assert [(p.id, p.kind) for p in features.problems] == [("3", "changed")]
    assert "3" not in features.ids["image"]


def test_byte_order_marks_and_utf_16_make_no_difference(tmp_path):
    text = "天气很好, café"
    for name, encoding in (("a", "utf-8"), ("b", "utf-8-sig"), ("c", "utf-16")):
        (tmp_path / f"{name}.txt").write_text(text, encoding=encoding)
    features = featurize(read_collection(tmp_path))
    assert list(features.contents["text"]) == [text] * 3
    assert np.ptp(features.views["text"].toarray(), axis=0).max() == 0

"""Collections are recognised by looking, and refused in a sentence."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from linkspread.datasets import load_corel5k
from linkspread.ground.errors import LinkspreadError, ViewError
from linkspread.manifests import ViewItems, featurize, read_collection
from manifest_collections import picture, write_items, write_table


def put(folder, *names, data=b"x"):
    """Write files, and the folders they are in."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def ids(collection, view):
    return collection.views[view].ids.tolist()


def labels(collection, view):
    own = collection.views[view].labels
    return None if own is None else own.tolist()


def names(collection, view):
    return [
        own.relative_to(collection.root).as_posix()
        for own in collection.views[view].contents
    ]


def test_a_table_with_texts_and_pictures(tmp_path):
    rows = [
        ("a", "red, fish", "p/1.JPG", "x", "1999"),
        ("b", "", "p/2.png", "", "2001"),
        ("c", "blue\nfish", "", "y", ""),
    ]
    header = ("id", "title", "photo", "label", "year")
    collection = read_collection(write_table(tmp_path / "t.csv", rows, header))
    assert ids(collection, "title") == ["a", "c"]
    assert collection.views["title"].contents == ["red, fish", "blue\nfish"]
    assert ids(collection, "photo") == ["a", "b"]
    assert names(collection, "photo") == ["p/1.JPG", "p/2.png"]
    assert labels(collection, "title") == ["x", "y"]
    assert labels(collection, "photo") == ["x", ""]
    kinds = {view: own.kind for view, own in collection.views.items()}
    assert kinds == {"title": "text", "photo": "picture"}
    assert collection.skipped == ("column 'year' (numbers)",)
    assert collection.root == tmp_path


def test_parquet_and_csv_say_the_same(tmp_path):
    columns = {"id": [1, 2, 3], "text": ["a b", None, "c.txt is a file"]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    rows = [(1, "a b"), (2, ""), (3, "c.txt is a file")]
    write_table(tmp_path / "t.csv", rows, ("id", "text"))
    found = [read_collection(tmp_path / name) for name in ("t.parquet", "t.csv")]
    assert ids(found[0], "text") == ids(found[1], "text") == ["1", "3"]
    assert found[0].views["text"].contents == found[1].views["text"].contents


def test_a_column_of_text_files_is_read_from_them(tmp_path):
    rows = write_items(tmp_path, 3)
    collection = read_collection(write_table(tmp_path / "t.csv", rows))
    assert names(collection, "text") == ["0.txt", "1.txt", "2.txt"]
    assert collection.views["text"].kind == "text"


def test_long_cells_are_texts_and_the_limit_is_put_back(tmp_path):
    import csv

    before = csv.field_size_limit()
    long = "fish " * 50_000 + "a.jpg"
    table = write_table(tmp_path / "t.csv", [("a", long)], ("id", "text"))
    assert read_collection(table).views["text"].contents == [long]
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    ("rows", "header", "message"),
    [
        ([("a", "x")], ("name", "text"), "must have a column named 'id', got 'name'"),
        ([("a", "x"), ("a", "y")], ("id", "text"), "got 'a' again in row 2"),
        ([("a", "x"), (" ", "y")], ("id", "text"), "got an empty one in row 2"),
        ([], ("id", "text"), "must have at least one row, got none"),
        ([("a", "3")], ("id", "year"), "a column with texts or paths beside `id`"),
        ([("a",)], ("id",), "beside `id`, got none"),
        ([("a", "x", "y")], ("id", "t", "t"), "unique names, got 'id', 't', 't'"),
        ([("a", "x", "y")], ("id", "t"), "line 2 of 't.csv' must have 2 values"),
        ([("a", "1.jpg"), ("b", "some text")], ("id", "t"),
         "column 't' of 't.csv' must hold either texts or paths, got 50% paths, but "
         "also 'some text'"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_used(tmp_path, rows, header, message):
    table = write_table(tmp_path / "t.csv", rows, header)
    with pytest.raises(LinkspreadError, match=message):
        read_collection(table)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("t.csv", b"", "must begin with a line of column names"),
        ("t.csv", b"id,text\n\xff,b", "must be UTF-8"),
        ("t.parquet", b"PAR1 no", "must be a parquet file"),
        ("t.docx", b"x", r"must be a file that ends in .*t\.docx'"),
    ],
)
def test_files_that_are_no_tables(tmp_path, name, data, message):
    put(tmp_path, name, data=data)
    with pytest.raises(LinkspreadError, match=message):
        read_collection(tmp_path / name)


OUTSIDE = "files of a collection must lie in its folder .* which leads outside"


@pytest.mark.parametrize(
    "name", ["../b.jpg", "/etc/b.jpg", "in/../../b.jpg", "link/b.jpg", "b.jpg"]
)
def test_no_path_of_a_table_leads_outside(tmp_path, name):
    folder = put(tmp_path / "items", "in/a.jpg")
    put(tmp_path, "b.jpg", "other/b.jpg")
    os.symlink(tmp_path / "other", folder / "link")
    os.symlink(tmp_path / "b.jpg", folder / "b.jpg")
    table = write_table(folder / "t.csv", [("a", name)], ("id", "image"))
    with pytest.raises(LinkspreadError, match=OUTSIDE):
        read_collection(table)
    allowed = read_collection(table, allow_outside=True)
    assert ids(allowed, "image") == ["a"]


def test_links_within_the_folder_are_followed(tmp_path):
    put(tmp_path, "in/a.jpg")
    os.symlink(tmp_path / "in", tmp_path / "link")
    table = write_table(tmp_path / "t.csv", [("a", "link/a.jpg")], ("id", "image"))
    assert names(read_collection(table), "image") == ["link/a.jpg"]


@pytest.mark.parametrize("name", ["b.jpg", "cat/b.jpg", "dogs"])
def test_no_link_of_a_folder_leads_outside(tmp_path, name):
    folder = put(
        tmp_path / "items", "cat/a.jpg" if "/" in name or name == "dogs" else "a.jpg"
    )
    put(tmp_path, "other/b.jpg")
    target = tmp_path / "other" if name == "dogs" else tmp_path / "other" / "b.jpg"
    os.symlink(target, folder / name)
    with pytest.raises(LinkspreadError, match=OUTSIDE):
        read_collection(folder)
    assert len(ids(read_collection(folder, allow_outside=True), "image")) == 2


def test_a_folder_for_each_class(tmp_path):
    put(
        tmp_path,
        "cat/2.jpg",
        "cat/1.png",
        "dog/1.jpg",
        "dog/.hidden.jpg",
        "dog/Thumbs.db",
    )
    collection = read_collection(tmp_path)
    assert ids(collection, "image") == ["cat/1", "cat/2", "dog/1"]
    assert labels(collection, "image") == ["cat", "cat", "dog"]
    assert names(collection, "image") == ["cat/1.png", "cat/2.jpg", "dog/1.jpg"]
    assert "text" not in collection.views
    assert collection.skipped == ("1 files that are neither pictures nor .txt",)


def test_texts_beside_pictures(tmp_path):
    put(tmp_path, "a.jpg", "a.txt", "b.jpg", "c.txt", "d.jpg", "d.png")
    collection = read_collection(tmp_path)
    assert ids(collection, "image") == ["a", "b", "d.jpg", "d.png"]
    assert ids(collection, "text") == ["a", "c"]
    assert labels(collection, "image") is None


def test_a_folder_of_texts_only(tmp_path):
    put(tmp_path, "sport/1.txt", "arts/1.txt")
    collection = read_collection(tmp_path)
    assert list(collection.views) == ["text"]
    assert labels(collection, "text") == ["arts", "sport"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "must have at least one picture or text"),
        (["a.pdf"], "must have at least one picture or text"),
        (["a.jpg", "cat/b.jpg"], "all in folders of classes, got 1 and 1"),
        (["a/b/c.jpg"], "got the inner folder 'a/b'"),
        (["images/a.jpg", "texts/a.txt"], "texts must lie beside their pictures"),
        (["a.jpg", "a.png", "a.txt"], "got a.jpg, a.png for 'a.txt'"),
    ],
)  # fmt: skip
def test_folders_that_cannot_be_used(tmp_path, files, message):
    put(tmp_path, *files)
    with pytest.raises(LinkspreadError, match=message):
        read_collection(tmp_path)


def test_nothing_at_all(tmp_path):
    with pytest.raises(LinkspreadError, match="which is neither"):
        read_collection(tmp_path / "gone")


def make_wikipedia(folder, suffix=".xml"):
    put(folder, "categories.list", data=b"art\nbiology\n")
    put(folder, "trainset_txt_img_cat.list", data=b"t-1.5\tp1\t2\nt2\tp2\t1\n")
    put(folder, "testset_txt_img_cat.list", data=b"t3\tp1\t2\n")
    article = b"<?xml version='1.0'?><a><title>Owls</title><text>x &amp; y</text></a>"
    put(folder, *(f"texts/{t}{suffix}" for t in ("t-1.5", "t2", "t3")), data=article)
    put(folder, "images/biology/p1.jpg", "images/art/p2.jpg", data=picture(0))
    return folder


@pytest.mark.parametrize("suffix", [".xml", ".txt"])
def test_the_layout_of_wikipedia(tmp_path, suffix):
    collection = read_collection(make_wikipedia(tmp_path, suffix))
    assert ids(collection, "text") == ids(collection, "image") == ["t-1.5", "t2", "t3"]
    assert labels(collection, "text") == ["biology", "art", "biology"]
    assert names(collection, "text")[0] == f"texts/t-1.5{suffix}"
    assert names(collection, "image")[2] == "images/biology/p1.jpg"


def test_tags_of_xml_are_no_words(tmp_path):
    collection = read_collection(make_wikipedia(tmp_path))
    del collection.views["image"]
    features = featurize(collection)
    assert features.contents["text"][0].split() == ["Owls", "x", "&", "y"]
    assert features.transformers["text"].vocabulary_.tolist() == ["owls", "x", "y"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            b"t\tp",
            "testset_txt_img_cat.list must have a text id, an image id .* on line 1",
        ),
        (b"t\tp\t3", "a category between 1 and 2"),
        (b"t2\tp\t1", "must name each item once, got 't2' twice"),
        (b"../../t\tp\t1", OUTSIDE),
        (b"\xff", "must be plain text in UTF-8"),
    ],
)
def test_lists_of_wikipedia_that_are_wrong(tmp_path, line, message):
    put(make_wikipedia(tmp_path), "testset_txt_img_cat.list", data=line)
    with pytest.raises(LinkspreadError, match=message):
        read_collection(tmp_path)


def make_corel5k(folder):
    put(folder, "labels/words", data=b"sky\nnew york\nsea\n")
    put(folder, "labels/training_label", data=b"1000 1 2  \n2003 3\n")
    put(folder, "labels/test_label", data=b"1001 3 1\n")
    put(folder, "train_jpeg/1000.jpeg", "train_jpeg/2003.jpeg", "test_jpeg/1001.jpeg")
    return folder


def test_the_layout_of_corel5k(tmp_path):
    collection = read_collection(make_corel5k(tmp_path))
    assert (
        ids(collection, "text") == ids(collection, "image") == ["1000", "2003", "1001"]
    )
    assert collection.views["text"].contents == ["sky, new york", "sea", "sea, sky"]
    assert labels(collection, "image") == ["1000", "2000", "1000"]
    assert names(collection, "image")[2] == "test_jpeg/1001.jpeg"


def test_lists_of_corel5k_that_are_wrong(tmp_path):
    put(make_corel5k(tmp_path), "labels/test_label", data=b"1001 4\n")
    with pytest.raises(LinkspreadError, match="word numbers from 1 to 3, got '1001 4'"):
        read_collection(tmp_path)


def test_two_layouts_in_one_folder(tmp_path):
    make_corel5k(make_wikipedia(tmp_path))
    with pytest.raises(LinkspreadError, match="with those of Wikipedia and Corel5k"):
        read_collection(tmp_path)


@pytest.mark.slow
def test_corel5k_is_what_its_loader_reads(data_folder):
    collection = read_collection(data_folder / "corel5k")
    loaded = load_corel5k(data_folder / "corel5k")
    image = collection.views["image"]
    assert image.ids.tolist() == loaded.ids.tolist()
    assert tuple(image.contents) == loaded.pictures
    assert image.labels.tolist() == [loaded.label_names[own] for own in loaded.labels]
    table = loaded.views["text"]
    first = [loaded.words[column] for column in table[[0]].indices]
    assert sorted(collection.views["text"].contents[0].split(", ")) == sorted(first)


def test_views_are_checked():
    with pytest.raises(ViewError, match="a view must be of pictures or texts"):
        ViewItems("text", np.array(["a"]), ["x", "y"])
    with pytest.raises(ViewError, match="ids must be unique within a view"):
        ViewItems("text", np.array(["a", "a"]), ["x", "y"])

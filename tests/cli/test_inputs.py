"""Views, links and labels of the command line, and what is said of mistakes in them."""

import numpy as np
import pandas
import pytest

from example_files import made_data, write_pairs, write_views
from linkspread import Links
from linkspread.cli.inputs import Judged, read_inputs
from linkspread.cli.options import parse_place
from linkspread.ground.errors import LinkspreadError
from linkspread.links import Items, reading
from linkspread.links.collection import count_links

ITEMS = {v: Items([f"{v[0]}{i}" for i in range(4)], view=v) for v in ("text", "image")}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with the tables and pairs of two views, and work in it."""
    monkeypatch.chdir(tmp_path)
    write_views(tmp_path, made_data())
    write_pairs(tmp_path, made_data())
    return tmp_path


def read(**options):
    """Read inputs of both tables and the pairs, unless options say otherwise."""
    usual = {"view": ["text=text.parquet", "image=image.parquet"],
             "links": ["pairs.csv"]}  # fmt: skip
    return read_inputs(usual | options)


@pytest.mark.parametrize("text", ["text=a.npy", "text=a.npz:key", "a b=C:\\x.csv:p,q"])
def test_a_view_is_written_as_it_was_typed(text):
    assert str(parse_place(text, "view")) == text


def test_a_colon_parts_columns_only_after_the_name_of_a_file():
    assert parse_place(r"C:\pairs.csv", "links").columns == ()
    assert parse_place(r"C:\pairs.csv:l,r", "links").columns == ("l", "r")
    place = parse_place("text,image=pairs.csv:left,right,verdict", "links")
    assert place.views == ("text", "image")
    assert place.columns == ("left", "right", "verdict")
    # The sign belongs to the name of the file where no two views stand before it.
    assert parse_place("a=1.csv", "links").path.name == "a=1.csv"
    assert parse_place("features", "labels").views == ()


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("view", "text.npy", "`--view` must be a name and a file, .* got 'text.npy'"),
        ("view", "text=", "`--view` must be a name and a file, .* got 'text='"),
        ("labels", "a.csv", "`--labels` must be a view and a table"),
        ("links", "text,=a.csv", "`--links` must be a table of pairs"),
        ("links", 7, "`--links` must be a table of pairs.* got 7"),
    ],
)
def test_places_that_cannot_be_read(option, text, message):
    with pytest.raises(LinkspreadError, match=message):
        parse_place(text, option)


def test_tables_and_pairs_are_those_of_the_library(folder):
    inputs = read()
    table = pandas.read_parquet("text.parquet")
    expected = table.filter(regex="^x").to_numpy()
    np.testing.assert_array_equal(inputs.views["text"], expected)
    np.testing.assert_array_equal(inputs.tables["text"].ids, table["id"])
    pairs = pandas.read_csv("pairs.csv")
    pairs["verdict"] = pairs["verdict"].map({"must": 1.0, "cannot": -1.0})
    library = Links.from_pairs(pairs, between=("text", "image")).resolve(inputs.items)
    ours = inputs.links.resolve(inputs.items)
    difference = ours.judged("text", "image") - library.judged("text", "image")
    assert difference.nnz == 0
    assert str(inputs.tables["text"]) == "8 features: x0 to x7; left out: label"
    assert inputs.notes == []


def test_ids_of_a_csv_file_are_kept_as_they_are_typed(folder):
    (folder / "n.csv").write_text("id,x\n007,1\n08,2\n")
    np.testing.assert_array_equal(
        read(view=["a=n.csv"], links=[]).tables["a"].ids, ["007", "08"]
    )


def write_table(folder, text):
    """Write a table with a mistake in it."""
    (folder / "t.csv").write_text(text)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("id,x\na,1\nb,oh\n", {}, r"t\.csv: column 'x' must hold numbers throughout, "
         r"got 'oh' in row 2"),
        ("id,x\na,1\na,2\n", {}, "ids of a view must be distinct, but view 'v' "
         "has 'a' more than once"),
        ("id,x\na,1\n", {"id_column": "sku"}, "must have the column 'sku' for the ids, "
         "and has 'id', 'x'"),
        ("id,x\na,1\n", {"columns": ["v=y"]}, "must have the column 'y' for the "
         "features, and has 'id', 'x'"),
        ("id,w\na,b\n", {}, "must have numeric columns or one column of lists, got no "
         "numeric column. It has 'id'"),
        ("id,w\na,b\n", {"columns": ["v=w"]}, "column 'w' must hold numbers, got "
         "String such as 'b'"),
        ("id,x,y\na,1,2\n", {"columns": ["v=x,-y"]}, "all to take or all to leave out, "
         "got 'x' and '-y'"),
        ("id,x\na,1\n", {"columns": ["w=x"]}, "`--columns` must name one of the views "
         "'v', got 'w'"),
        ("id,x\na,1\n", {"columns": ["x"]}, "`--columns` must be a view and its columns"
         ", got 'x'. Write"),
        ("id,x\na,1\n", {"view": ["v=t.csv:x"]}, "a colon must separate an .npz file "
         "from its array.*got 'x'.*Choose columns with --columns v=x"),
        ("id,x\na,1\n", {"label_column": "kind"}, "`--label-column` must be a column "
         "of a view's table, and none of 'v' has 'kind'"),
        ("id,x\na,1\n", {"view": ["v=t.csv", "v=t.csv"]}, "each view must be given "
         "once, got 'v' more than once"),
        ("id,x\na,1\n", {"view": []}, "each view must be given once, got none"),
        ("id,x\na,1\n", {"view": ["v=u.csv"]}, "the file of a table must exist, and "
     "there is none at 'u.csv'"),
        ("id,x\na,1\n", {"view": ["v=t.txt"]}, r"must be a file that ends in \.npy"),
    ],
)  # fmt: skip
def test_mistakes_in_a_table_are_named(folder, text, options, message):
    write_table(folder, text)
    with pytest.raises(LinkspreadError, match=message):
        read(**({"view": ["v=t.csv"], "links": []} | options))


def test_an_archive_must_tell_which_array_is_meant(folder):
    np.savez("m.npz", a=np.eye(2), b=np.eye(2))
    with pytest.raises(LinkspreadError, match="got 2 arrays. It has 'a', 'b'"):
        read(view=["X=m.npz"], links=[])
    with pytest.raises(LinkspreadError, match="must be chosen, got 'c'"):
        read(view=["X=m.npz:c"], links=[])
    with pytest.raises(LinkspreadError, match="'a' after 'image.npy'. Leave"):
        read(view=["X=image.npy:a"], links=[])
    for name in ("image.npy", "m.npz"):
        with pytest.raises(LinkspreadError, match="`columns` must be of a file with"):
            read(view=[f"X={name}"], columns=["X=a"], links=[])


def judged(tmp_path, text, *, columns=(), views=()):
    """Return the pairs of a table."""
    path = tmp_path / "p.csv"
    path.write_text(text)
    return Judged(*reading.read_judged(path, ITEMS, columns=columns, views=views)[:2])


def test_columns_are_found_by_view_by_place_or_by_name(tmp_path):
    expected = [("t0", "i1", -1.0)]
    assert judged(tmp_path, "image,text,weight\ni1,t0,-1\n").pairs == expected
    assert judged(tmp_path, "a,b,c\nt0,i1,no\n").pairs == expected
    table = judged(tmp_path, "n,b,a,c\n5,i1,t0,no\n", columns=("a", "b", "c"))
    assert table.pairs == expected
    assert judged(tmp_path, "a,b\nt0,i1\n").pairs == [("t0", "i1", 1.0)]
    turned = judged(tmp_path, "a,b\ni1,t0\n", views=("image", "text"))
    assert turned.pairs == [("i1", "t0", 1.0)]


@pytest.mark.parametrize(
    ("text", "given", "message"),
    [
        ("text,image\nt9,i1\nt0,i1\nt8,i1\n", {}, "must name items of view 'text', "
         "which does not have 't8', 't9', 2 of 3 in all.*--skip-unknown"),
        ("text,image,v\nt0,i1,maybe\n", {}, "must, cannot or unsure, .* got 'maybe' in "
         "row 1 of column 'v'"),
        ("text,image,w\nt0,i1,-1\nt1,i1,0\n", {}, "from -1 to 0 in column 'w'.*unsure "
         "for neither"),
        ("text,image,w\nt0,i1,5\nt1,i1,1\n", {}, "from 1 to 5 in column 'w'.*"
         "--must-above 3"),
        ("text,image,v\nt0,i1,unsure\n", {}, "at least one pair .*, got 1 unsure"),
        ("text,image\nt0,i1\n", {"columns": ("text", "pic")}, "got 'text', 'pic' of a "
         "table of 'text', 'image'"),
        ("text,image\nt0,i1\n", {"columns": ("text",)}, "must be two of ids and "
         "optionally one of verdicts and one of weights, got 'text'"),
        ("pic,text\ni1,t0\n", {}, "must have a column named 'text' and one named "
         "'image', or these ids"),
        ("a,b\nt0,i1\n", {"views": ("text", "sound")}, "must name two of the views "
         "'text', 'image', got 'text', 'sound'"),
    ],
)  # fmt: skip
def test_mistakes_in_pairs_are_named(tmp_path, text, given, message):
    with pytest.raises(LinkspreadError, match=message):
        judged(tmp_path, text, **given)


def test_of_three_views_the_pairs_must_say_which_they_join(folder):
    views = ["text=text.parquet", "image=image.parquet", "other=image.npy"]
    assert read(view=views).judged[0].between == ("text", "image")
    (folder / "q.csv").write_text("a,b\nt0,i1\n")
    with pytest.raises(LinkspreadError, match="must name two of the views 'text'"):
        read(view=views, links=["q.csv"])
    assert read(view=views, links=["text,image=q.csv"]).judged[0].table.n_unsure == 0


def test_contradictions_and_unsure_rows_become_notes(folder):
    (folder / "q.csv").write_text(
        "text,image,v\nt0,i1,must\nt0,i1,cannot\nt1,i1,?\nt2,i2,yes\n"
    )
    notes = read(links=["q.csv"]).notes
    assert "1 row is unsure and not counted." in notes
    assert any("1 pair is both must-link and cannot-link, such as" in n for n in notes)


def test_labels_come_from_tables_and_from_columns(folder):
    by_column = read(links=[], label_column="label")
    places = ["text=text-labels.csv", "image=image-labels.csv:id,label"]
    by_table = read(links=[], labels=places)
    for view in ("text", "image"):
        one, other = (
            i.links.memberships(view).toarray() for i in (by_column, by_table)
        )
        np.testing.assert_array_equal(one, other)
    assert by_column.notes == []
    counts = count_links(by_table.links)
    assert [str(c) for c in counts] == [
        "text: 60 labels of 3 classes",
        "image: 40 labels of 3 classes",
    ]


def test_pairs_and_labels_may_be_parted_by_semicolons_or_tabs(folder):
    """A semicolon file was read as one column, and the remedy was to name columns."""
    for name, sign in (("pairs", ";"), ("text-labels", "\t"), ("image-labels", ";")):
        path = folder / f"{name}.csv"
        (folder / f"other-{name}.csv").write_text(path.read_text().replace(",", sign))
    assert read(links=["other-pairs.csv"]).judged[0].pairs == read().judged[0].pairs
    usual, other = (
        read(links=[], labels=[f"{v}={start}{v}-labels.csv" for v in ("text", "image")])
        for start in ("", "other-")
    )
    assert repr(usual.links) == repr(other.links)


def test_ratings_are_read_with_the_line_between_them(folder):
    (folder / "q.csv").write_text("text,image,stars\nt0,i1,5\nt1,i1,1\nt2,i2,3\n")
    inputs = read(links=["q.csv"], must_above=3)
    assert inputs.judged[0].pairs == [("t0", "i1", 1.0), ("t1", "i1", -1.0)]
    assert "1 row is unsure and not counted." in inputs.notes


def test_pairs_and_labels_of_unknown_items_are_skipped_if_asked(folder):
    (folder / "q.csv").write_text("text,image\nt0,i1\nt99,i1\nt1,x\n")
    (folder / "l.csv").write_text("id,label\nt0,a\nt98,b\nt99,a\n")
    given = {"links": ["q.csv"], "labels": ["text=l.csv"]}
    with pytest.raises(LinkspreadError, match="--skip-unknown"):
        read(**given)
    with pytest.raises(LinkspreadError, match="--skip-unknown"):
        read(**given | {"links": []})
    inputs = read(**given, skip_unknown=True)
    assert inputs.judged[0].pairs == [("t0", "i1", 1.0)]
    assert (
        "q.csv: 2 of 3 pairs name items that no view has and were skipped: "
        "text 't99', image 'x'." in inputs.notes
    )
    assert (
        "l.csv: 2 of 3 labels are of items that view 'text' does not have and were "
        "skipped: 't98', 't99'." in inputs.notes
    )
    assert inputs.known[0].memberships("text").sum() == 1
    (folder / "q.csv").write_text("text,image\nt98,i1\nt99,i1\n")
    with pytest.raises(LinkspreadError, match="q.csv: .*all 2 name items that no view"):
        read(links=["q.csv"], skip_unknown=True)
    (folder / "l.csv").write_text("id,label\nt98,b\nt99,a\n")
    with pytest.raises(LinkspreadError, match="l.csv: labels must name items of view"):
        read(links=[], labels=["text=l.csv"], skip_unknown=True)


def test_labels_of_tables_are_unknown_as_in_python(folder):
    """The unknown items of both views, -1, were taken for one class."""
    for view in ("text", "image"):
        (folder / f"{view}.csv").write_text(
            f"id,label\n{view[0]}0,-1\n{view[0]}1,3.0\n{view[0]}2,\n{view[0]}3,b\n"
        )
    places = ["text=text.csv", "image=image.csv"]
    links = read(links=[], labels=places).links
    block = links.between("text", "image", balance="literal").toarray()[:4, :4]
    assert block.tolist() == [[0] * 4, [0, 1, 0, -1], [0] * 4, [0, -1, 0, 1]]


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("id,label\nt0,a\nt0,b\n", "text=l.csv", "'t0' of view 'text' is 'a' and 'b'"),
        ("id,label\nzz,a\n", "text=l.csv", "l.csv: labels must name items of view "
         "'text', which does not have 'zz', 1 of 1"),
        ("id,label\nt0,a\n", "text=l.csv:id,kind", "one of labels, got 'id', "
         "'kind' of 'id', 'label'"),
        ("id\nt0\n", "text=l.csv", "must have a column of ids and one of labels"),
        ("id,label\nt0,a\n", "sound=l.csv", "`--labels` must name one"),
        ("id,label\nt0,a\n", "text=l.csv:id", "one of labels, got 'id' of"),
    ],
)  # fmt: skip
def test_mistakes_in_labels_are_named(folder, text, place, message):
    (folder / "l.csv").write_text(text)
    with pytest.raises(LinkspreadError, match=message):
        read(links=[], labels=[place])


def test_matched_items_have_the_same_id_or_row(folder):
    np.save("a.npy", np.eye(4))
    np.save("b.npy", np.ones((4, 2)))
    links = read(view=["a=a.npy", "b=b.npy"], links=[], matched=True).links
    block = links.resolve({"a": 4, "b": 4}).judged("a", "b")
    np.testing.assert_array_equal(block.toarray(), np.eye(4))
    (folder / "c.csv").write_text("id,x\nu,1\nv,2\n")
    (folder / "d.csv").write_text("id,x\nw,1\nv,2\n")
    inputs = read(view=["c=c.csv", "d=d.csv"], links=[], matched=True)
    block = inputs.links.resolve(inputs.items).judged("c", "d")
    np.testing.assert_array_equal(block.toarray(), [[0, 0], [0, 1]])


@pytest.mark.parametrize(
    ("views", "message"),
    [
        (["a=a.npy", "c=c.csv"], "all with ids or all without, got ids for 'c' of"),
        (["a=a.npy", "b=b.npy"], "same number of rows in each view, got a 4, b 3"),
        (["c=c.csv", "text=text.parquet"], "needs ids that two views share"),
    ],
)
def test_what_cannot_be_matched(folder, views, message):
    np.save("a.npy", np.eye(4))
    np.save("b.npy", np.eye(3))
    (folder / "c.csv").write_text("id,x\nu,1\nv,2\n")
    with pytest.raises(LinkspreadError, match=message):
        read(view=views, links=[], matched=True)


def test_something_must_be_known(folder):
    with pytest.raises(LinkspreadError, match="links, labels or matched"):
        _ = read(links=[]).some_links
    assert read(links=[]).links.views == ()

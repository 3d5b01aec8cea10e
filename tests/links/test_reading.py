"""Judged pairs in every form, and what verdicts say."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

from linkspread import Links
from linkspread.ground.errors import LinkError, ViewError
from linkspread.links import Items
from linkspread.links.pairs import PairTable
from linkspread.links.reading import read_file, read_judged, read_pairs, read_verdicts
from linkspread.storage import PairColumns

BETWEEN = ("text", "image")
PAIRS = [("t1", "i1", 1.0), ("t2", "i1", -0.5), ("t1", "i2", 3.0)]
COLUMNS = {
    "text": ["t1", "t2", "t1"],
    "image": ["i1", "i1", "i2"],
    "weight": [1.0, -0.5, 3.0],
}
FRAMES = [pd.DataFrame, pl.DataFrame, pa.table]


def rows(table):
    """Return a table of pairs as tuples."""
    columns = table.left.tolist(), table.right.tolist(), table.weights.tolist()
    return list(zip(*columns, strict=True))


def read(pairs, between=BETWEEN):
    """Return judged pairs as tuples."""
    return rows(read_pairs(pairs, between=between))


@pytest.mark.parametrize(
    "pairs",
    [
        PAIRS,
        tuple(PAIRS),
        iter(PAIRS),
        [list(pair) for pair in PAIRS],
        np.array(PAIRS, dtype=object),
        np.array(PAIRS),
    ],
    ids=["list", "tuple", "iterator", "lists", "objects", "strings"],
)
def test_rows_of_any_form(pairs):
    assert read(pairs) == PAIRS


def test_two_values_are_a_must_link():
    assert read([("t1", "i1"), ("t2", "i1", -2)]) == [
        ("t1", "i1", 1.0),
        ("t2", "i1", -2.0),
    ]
    assert read(np.array([[0, 5], [1, 6]])) == [(0, 5, 1.0), (1, 6, 1.0)]


def test_arrays_of_numbers_have_positions():
    table = read_pairs(np.array([[0, 5, -0.5], [1, 6, 2]]), between=BETWEEN)
    assert rows(table) == [(0, 5, -0.5), (1, 6, 2.0)]
    assert table.left.dtype == table.right.dtype == np.int64


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize(
    "names",
    [
        ("text", "image", "weight"),
        ("weight", "image", "text"),
        ("image", "text", "weight"),
    ],
)
def test_columns_named_after_the_views_in_any_order(frame, names):
    assert read(frame({name: COLUMNS[name] for name in names})) == PAIRS


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize(
    "names", [("left", "right", "score"), ("text", "picture", "3"), ("a", "image", "b")]
)
def test_columns_in_order(frame, names):
    columns = dict(zip(names, COLUMNS.values(), strict=True))
    assert read(frame(columns)) == PAIRS


def test_columns_without_names():
    """Their names are numbers, which were taken for rows."""
    assert read(pd.DataFrame(PAIRS)) == PAIRS


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([["t1", "t2"]], columns=["text", "text"]),
        pa.Table.from_arrays([["t1"], ["t2"]], names=["text", "text"]),
    ],
    ids=["pandas", "pyarrow"],
)
def test_columns_of_the_same_name(frame):
    with pytest.raises(
        LinkError,
        match=r"different names, got \['text', 'text'\]\. Rename the repeated",
    ):
        read(frame, ("text", "text"))


def test_the_weight_is_found_by_name_before_place():
    columns = {"judge": [9, 9, 9], **COLUMNS}
    assert read(pd.DataFrame(columns)) == PAIRS
    unnamed = {"weight": COLUMNS["weight"], "l": COLUMNS["text"], "r": COLUMNS["image"]}
    assert read(pd.DataFrame(unnamed)) == PAIRS


def test_the_verdict_is_the_first_other_column():
    columns = {"image": ["i1"], "votes": [4], "text": ["t1"], "note": ["fine"]}
    assert read(pd.DataFrame(columns)) == [("t1", "i1", 4.0)]
    assert read(pd.DataFrame({"text": ["t1"], "image": ["i1"]})) == [("t1", "i1", 1.0)]


@pytest.mark.parametrize("names", [("verdict", "weight"), ("Judgement", "Weight")])
def test_weights_beside_verdicts_say_how_much_they_count(names):
    columns = {name: COLUMNS[name] for name in ("text", "image")}
    said = {names[1]: [2, 0.5, 3], names[0]: ["yes", "no", "unsure"]}
    expected = [("t1", "i1", 2.0), ("t2", "i1", -0.5)]
    assert read(pd.DataFrame(columns | said)) == expected
    assert read([("t1", "i1", "yes", 2), ("t2", "i1", "no", 0.5)]) == expected


@pytest.mark.parametrize("weight", [-1, 0, np.nan, np.inf])
def test_weights_beside_verdicts_are_above_0(weight):
    with pytest.raises(LinkError, match="above 0, got .* in row 2 of column 'weight'"):
        read([("t1", "i1", "no", 1), ("t2", "i1", "no", weight)])
    assert len(read([("t1", "i1", "no", 1), ("t2", "i1", "unsure", weight)])) == 1
    with pytest.raises(LinkError, match="column 'weight' must be numbers"):
        read([("t1", "i1", "no", "much")])


def test_a_saved_index_is_no_verdict_and_no_id():
    """An index of 0 and 1 read as no and yes, one of more rows as weights."""
    columns = {"Unnamed: 0": [0, 1], "text": ["t1", "t2"], "image": ["i1", "i1"]}
    assert [w for *_, w in read(pd.DataFrame(columns))] == [1.0, 1.0]
    said = {"": [0, 1], "l": ["t1", "t2"], "r": ["i1", "i1"], "same": [1, 0]}
    assert read(pd.DataFrame(said)) == [("t1", "i1", 1.0), ("t2", "i1", -1.0)]


def test_views_may_be_called_like_a_side():
    """Tuples were turned round where the first view is called right."""
    table = read_pairs([("r1", "l1")], between=("right", "left"))
    assert rows(table) == [("r1", "l1", 1.0)]


def test_columns_of_a_store_are_weights():
    """Must-links of different weights from a link store are no ratings."""
    columns = PairColumns(np.array(["t1", "t2"]), np.array([5, 6]), np.array([1.0, 2]))
    assert read(columns) == [("t1", 5, 1.0), ("t2", 6, 2.0)]
    none = PairColumns(*(np.array([]) for _ in range(3)))
    with pytest.raises(LinkError, match="at least one pair between 'text' and 'image'"):
        read(none)


def test_links_within_a_view_take_the_first_two_columns():
    columns = {"other": ["t1"], "text": ["t2"], "weight": [-1]}
    assert read(pd.DataFrame(columns), ("text", "text")) == [("t1", "t2", -1.0)]


@pytest.mark.parametrize("form", [str, lambda path: path])
def test_files(tmp_path, form):
    path = tmp_path / "pairs.csv"
    path.write_text("weight,image,text\n1,i1,t1\n-0.5,i1,t2\n3,i2,t1\n")
    assert read(form(path)) == PAIRS
    pl.DataFrame(COLUMNS).write_parquet(tmp_path / "pairs.parquet")
    assert read(form(tmp_path / "pairs.parquet")) == PAIRS


def test_a_file_of_one_view_may_name_it_twice(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("text\ttext\tweight\nt1\tt2\tcannot\n")
    assert read(path, ("text", "text")) == [("t1", "t2", -1.0)]


@pytest.mark.parametrize("words", [["must", "cannot"], [" MUST", "Cannot "]])
def test_words_for_weights(words):
    pairs = [("t1", "i1", words[0]), ("t2", "i1", words[1])]
    assert [weight for *_, weight in read(pairs)] == [1.0, -1.0]
    assert [w for *_, w in read(pl.DataFrame(pairs, orient="row"))] == [1.0, -1.0]


def test_turned_tables_exchange_everything():
    where = np.array([0, 1]), np.array([2, 3])
    table = PairTable(
        np.array(["a", "b"]), np.array([5, 6]), [1, -1], where, by_row=True
    )
    turned = table.swapped()
    assert rows(turned) == [(5, "a", 1.0), (6, "b", -1.0)]
    assert_array_equal(turned.positions, where[::-1])
    assert turned.by_row
    assert len(turned) == 2


@pytest.mark.parametrize(
    ("weights", "got"),
    [
        ([1, 0, 0], r"0\.0 in 2 of 3"),
        ([1, np.nan, -1], r"nan in 1 of 3"),
        ([np.inf, 1, 1], r"inf in 1 of 3"),
        ([1, 1e300, -1e-300], r"1e\+300 in 2 of 3"),
    ],
)
def test_weights_that_decide_nothing(weights, got):
    with pytest.raises(
        LinkError,
        match=rf"between 1e-06 and 1e\+06 in size, got {got}\. Write 1 for must",
    ):
        PairTable(np.arange(3), np.arange(3), weights)


@pytest.mark.parametrize("frame", FRAMES)
def test_missing_verdicts_of_a_frame_are_left_out_and_counted(frame):
    columns = {"text": [1, 2], "image": [1, 2], "weight": [1.0, None]}
    table = read_pairs(frame(columns), between=BETWEEN)
    assert rows(table) == [(1, 1, 1.0)]
    assert table.n_unsure == 1


def test_a_pair_that_is_unsure_needs_no_id():
    assert read([("t1", "i1", "yes"), ("t2", None, "unsure")]) == [("t1", "i1", 1.0)]
    with pytest.raises(LinkError, match="at least one pair .*, got 1 unsure"):
        read([("t1", "i1", None)])


@pytest.mark.parametrize(
    ("pairs", "got"),
    [
        ([("t1",)], "1"),
        ([("t1", "i1"), ("a", "b", 1, 2, 3), ()], "0, 2, 5"),
        (["ab", "cd"], "1"),
        ({"ab": 1}, "1"),
    ],
)
def test_rows_of_wrong_width(pairs, got):
    with pytest.raises(
        LinkError,
        match=rf"two ids and optionally a verdict .* got rows of {got} values\. Write "
        r"\(left, right, ",
    ):
        read(pairs)


@pytest.mark.parametrize("shape", [(), (4,), (4, 1), (4, 5), (3, 3, 3)])
def test_arrays_of_wrong_shape(shape):
    text = str(shape).replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(
        LinkError,
        match=f"two columns of ids .*, got shape {text}. Give one row per pair",
    ):
        read(np.ones(shape))


@pytest.mark.parametrize("pairs", [None, 5, [1, 2]])
def test_what_is_no_list_of_pairs(pairs):
    with pytest.raises(
        LinkError,
        match=r"must be a list of tuples, .* got (None|5|\[1, 2\])\. Write \[\(left",
    ):
        read(pairs)


@pytest.mark.parametrize("names", [["text"], ["text", "weight"], []])
def test_too_few_columns(names):
    with pytest.raises(
        LinkError,
        match="a column named 'text' and one named 'image', .*Name the columns after",
    ):
        read(pd.DataFrame({name: [1] for name in names}))


@pytest.mark.parametrize(
    "names", [["image", "txt", "weight"], ["id", "text", "picture"], ["a", "b", "text"]]
)
def test_one_view_named_in_the_place_of_the_other(names):
    """The columns were taken in order, so that images passed for texts."""
    with pytest.raises(
        LinkError,
        match="a column named 'text' and one named 'image', .*Name the columns after",
    ):
        read(pd.DataFrame({name: [1] for name in names}))


@pytest.mark.parametrize("frame", FRAMES)
def test_a_missing_id_names_its_view(frame):
    with pytest.raises(
        LinkError, match="ids of view 'image' .* got (None|nan) in 1 row"
    ):
        read(frame({"text": ["t1", "t2"], "image": ["i1", None]}))


def test_ids_that_are_lists():
    with pytest.raises(ViewError, match="ids of view 'text' must be one flat list"):
        read([(("t", 1), "i1"), (("t", 2), "i1")])


def test_inputs_are_not_modified():
    array = np.array([[0, 5, -0.5], [1, 6, 2]])
    frame = pd.DataFrame(COLUMNS)
    array_copy, frame_copy = array.copy(), frame.copy()
    read(array)
    read(frame)
    assert_array_equal(array, array_copy)
    pd.testing.assert_frame_equal(frame, frame_copy)


@pytest.mark.parametrize(
    ("text", "got"),
    [
        ("", "an empty file"),
        ("\n\n", "an empty file"),
        ("t1,i1,-1\nt2,i2,1\n", "'t1,i1,-1'"),
        ("t1,i1,must\n", "'t1,i1,must'"),
        ("t1,i1,same\nt2,i2,different\n", "'t1,i1,same'"),
        ("t1;i1;yes\nt2;i2;no\n", "'t1;i1;yes'"),
        ("0,5\n1,6\n", "'0,5'"),
    ],
)
def test_no_header(tmp_path, text, got):
    with pytest.raises(
        LinkError,
        match=rf"'p\.csv' must begin with a line of column names, got {got}\. Add one",
    ):
        (tmp_path / "p.csv").write_text(text)
        read_file(tmp_path / "p.csv")


SIDES = ("text", "image")
NOTHING = float("nan")
ITEMS = {view: Items([f"{view}{i}" for i in range(9)], view=view) for view in SIDES}


def from_python(verdicts, form=list, **options):
    """Return the weights that `Links.from_pairs` reads, and how many are unsure."""
    pairs = [(f"text{i}", f"image{i}", own) for i, own in enumerate(verdicts)]
    if form is not list:
        names = [*SIDES, "said"]
        pairs = form(dict(zip(names, zip(*pairs, strict=True), strict=True)))
    links = Links.from_pairs(pairs, between=SIDES, **options)
    ((_, table),) = links.pair_tables
    return table.weights.tolist(), table.n_unsure


def from_file(tmp_path, verdicts, **options):
    """Return the weights that the command line reads, and how many are unsure."""
    lines = [f"text{i},image{i},{'' if v is None else v}"
             for i, v in enumerate(verdicts)]  # fmt: skip
    (tmp_path / "p.csv").write_text("\n".join(["text,image,said", *lines]))
    _, table, _ = read_judged(tmp_path / "p.csv", ITEMS, **options)
    return table.weights.tolist(), table.n_unsure


SAID = [
    (["must", "cannot", "unsure"], [1, -1]),
    (["Yes", " no", "?"], [1, -1]),
    (["y", "N", ""], [1, -1]),
    (["same", "different", None], [1, -1]),
    ([True, False, True], [1, -1, 1]),
    ([1, 0, 1], [1, -1, 1]),
    ([1.0, 0.0, float("nan")], [1, -1]),
    ([0, 0], [-1, -1]),
    ([1, -1], [1, -1]),
    ([0.5, -2, 3], [0.5, -2, 3]),
    ([2.0, 2.0], [2, 2]),
    ([-1, -1], [-1, -1]),
    (["must", 0.5, "no"], [1, 0.5, -1]),
]


@pytest.mark.parametrize(("verdicts", "weights"), SAID)
@pytest.mark.parametrize("form", [list, pd.DataFrame, np.array])
def test_verdicts_of_python(verdicts, weights, form):
    if form is np.array:
        array = np.array(verdicts, dtype=None if None not in verdicts else object)
        found = read_verdicts(array, column="said")
        assert found[~np.isnan(found)].tolist() == weights
        return
    assert from_python(verdicts, form) == (weights, len(verdicts) - len(weights))


@pytest.mark.parametrize(("verdicts", "weights"), SAID)
def test_verdicts_of_a_file_are_those_of_python(tmp_path, verdicts, weights):
    expected = weights, len(verdicts) - len(weights)
    assert from_file(tmp_path, verdicts) == expected


def test_verdicts_of_polars_may_be_boolean_and_missing():
    assert from_python([True, None, False], pl.DataFrame) == ([1, -1], 1)


RATINGS = [
    ([5, 1, 5], "1 to 5", "3"),
    ([0.9, 0.1], "0.1 to 0.9", "0.5"),
    ([0, 0.5, 1], "0 to 1", "0.5"),
    ([0, 2], "0 to 2", "1"),
    ([1, 2], "1 to 2", "1.5"),
    ([-0.1, -3.1], "-3.1 to -0.1", "-1.6"),
    (["must", 5, 4], "4 to 5", "4.5"),
]


@pytest.mark.parametrize(("verdicts", "numbers", "line"), RATINGS)
def test_ratings_and_probabilities_are_refused(tmp_path, verdicts, numbers, line):
    """Stars of 5 and 1, or .9 and .1, gave must-links only."""
    message = rf"from {numbers} in .*`must_above={line}` \(--must-above {line} on"
    with pytest.raises(LinkError, match=message):
        from_python(verdicts)
    with pytest.raises(LinkError, match=f"p.csv: .*{message}"):
        from_file(tmp_path, verdicts)


@pytest.mark.parametrize(
    ("verdicts", "line", "weights"),
    [
        ([5, 1, 3, 4], 3, [1, -1, 1]),
        ([0.9, 0.1], 0.5, [1, -1]),
        ([-1, 0, 1], 0, [-1, 1]),
        ([2, 3], 0, [1, 1]),
        (["yes", 2, "unsure", 4], 3, [1, -1, 1]),
    ],
)
def test_a_line_parts_must_from_cannot(tmp_path, verdicts, line, weights):
    expected = weights, len(verdicts) - len(weights)
    assert from_python(verdicts, must_above=line) == expected
    assert from_python(np.array(verdicts).tolist(), must_above=float(line)) == expected
    assert from_file(tmp_path, verdicts, must_above=line) == expected


def test_the_number_of_unsure_pairs_is_shown():
    pairs = [("a", "b", 5), ("a", "c", 1), ("b", "c", 3)]
    links = Links.from_pairs(pairs, between=SIDES, must_above=3)
    assert repr(links) == (
        "Links(1 must and 1 cannot between text and image, 1 unsure left out)"
    )
    assert "2 unsure left out" in repr(links + links)
    resolved = links.resolve({"text": ["a", "b"], "image": ["b", "c"]})
    assert repr(resolved) == repr(links)


@pytest.mark.parametrize("verdicts", [[-1, 0, 1], [-1, 0], [2.5, 0, -1]])
def test_0_beside_weights_of_both_signs_is_refused(verdicts):
    with pytest.raises(LinkError, match="verdict of 0 must occur with 1 only.* uns"):
        from_python(verdicts)


@pytest.mark.parametrize("wrong", ["maybe", [1], "1,5"])
def test_words_that_say_nothing_are_named_by_row(wrong):
    with pytest.raises(LinkError, match="got .* in row 2 of column 'verdict'"):
        from_python(["must", wrong])


def test_verdicts_are_finite():
    for wrong in (np.inf, "-inf"):
        with pytest.raises(LinkError, match="must be finite, got -?inf in row 2"):
            from_python([1, wrong])


@pytest.mark.parametrize("line", ["3", True, np.nan, np.inf, [3]])
def test_the_line_is_a_number(line):
    with pytest.raises(LinkError, match="`must_above` must be a finite number, got"):
        from_python([1, 5], must_above=line)

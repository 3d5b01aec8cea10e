"""Verdicts in every spelling, and numbers that do not say which pairs they mean."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from linkspread import Links
from linkspread.cli.input_links import read_judged
from linkspread.cli.input_places import Place
from linkspread.ground.errors import LinkError
from linkspread.links import Items
from linkspread.links.verdicts import read_verdicts

BETWEEN = ("text", "image")
NOTHING = float("nan")
ITEMS = {view: Items([f"{view}{i}" for i in range(9)], view=view) for view in BETWEEN}


def from_python(verdicts, form=list, **options):
    """Return the weights that `Links.from_pairs` reads, and how many are unsure."""
    pairs = [(f"text{i}", f"image{i}", own) for i, own in enumerate(verdicts)]
    if form is not list:
        names = [*BETWEEN, "said"]
        pairs = form(dict(zip(names, zip(*pairs, strict=True), strict=True)))
    links = Links.from_pairs(pairs, between=BETWEEN, **options)
    ((_, table),) = links.pair_tables
    return table.weights.tolist(), table.n_unsure


def from_file(tmp_path, verdicts, **options):
    """Return the weights that the command line reads, and how many are unsure."""
    lines = [f"text{i},image{i},{'' if v is None else v}"
             for i, v in enumerate(verdicts)]  # fmt: skip
    (tmp_path / "p.csv").write_text("\n".join(["text,image,said", *lines]))
    table = read_judged(Place((), tmp_path / "p.csv"), ITEMS, **options)
    return [weight for *_, weight in table.pairs], table.n_unsure


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


def test_the_links_tell_how_many_are_unsure():
    pairs = [("a", "b", 5), ("a", "c", 1), ("b", "c", 3)]
    links = Links.from_pairs(pairs, between=BETWEEN, must_above=3)
    assert repr(links) == (
        "Links(1 must and 1 cannot between text and image, 1 unsure left out)"
    )
    assert "2 unsure left out" in repr(links + links)
    resolved = links.resolve({"text": ["a", "b"], "image": ["b", "c"]})
    assert repr(resolved) == repr(links)


@pytest.mark.parametrize("verdicts", [[-1, 0, 1], [-1, 0], [2.5, 0, -1]])
def test_0_beside_weights_of_both_signs_is_refused(verdicts):
    with pytest.raises(LinkError, match="verdict of 0 must stand beside 1 alone.* uns"):
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

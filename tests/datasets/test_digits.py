import numpy as np
import pytest
from numpy.testing import assert_array_equal

from linkspread.datasets import load_digits_views
from linkspread.ground.errors import LinkspreadError

VIEWS = ("fac", "fou", "kar", "mor", "pix", "zer")
WIDTHS = (216, 76, 64, 6, 240, 47)


def write_folder(folder, **changes):
    """Write three digits in six views of one to six features."""
    for width, view in enumerate(VIEWS, start=1):
        header = ",".join(map(str, [*range(width), 0]))
        rows = [
            [f"{10 * row + column}.5" for column in range(width)] + [str(row)]
            for row in range(3)
        ]
        text = "\n".join([header, *map(",".join, rows)]) + "\n"
        (folder / f"mfeat-{view}.csv").write_text(changes.get(view, text))
    return folder


def test_rows_are_matched_and_the_last_column_is_the_digit(tmp_path):
    data = load_digits_views(write_folder(tmp_path))
    assert tuple(data.views) == VIEWS
    assert_array_equal(data.views["fou"], [[0.5, 1.5], [10.5, 11.5], [20.5, 21.5]])
    assert [X.shape[1] for X in data.views.values()] == [1, 2, 3, 4, 5, 6]
    assert_array_equal(data.labels, [0, 1, 2])
    assert_array_equal(data.pairs, [[0, 0], [1, 1], [2, 2]])
    assert data.ids["zer"].tolist() == ["0", "1", "2"]
    assert not data.shared_space and set(data.metrics) == set(VIEWS)


def test_the_environment_variable_names_the_parent_folder(tmp_path, monkeypatch):
    (tmp_path / "digits").mkdir()
    write_folder(tmp_path / "digits")
    monkeypatch.setenv("LINKSPREAD_DATA", str(tmp_path))
    assert len(load_digits_views().labels) == 3


def test_no_folder_and_no_variable(monkeypatch):
    monkeypatch.delenv("LINKSPREAD_DATA", raising=False)
    with pytest.raises(LinkspreadError, match="`data` must name.*UCI"):
        load_digits_views()


@pytest.mark.parametrize("view", VIEWS)
def test_missing_file_is_named(tmp_path, view):
    (write_folder(tmp_path) / f"mfeat-{view}.csv").unlink()
    with pytest.raises(LinkspreadError, match=f"mfeat-{view}.csv must exist.*UCI"):
        load_digits_views(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0,1,0\n1,2,0\n3,4,1\n5,6\n", "must have 3 numbers.*got 2 on line 4"),
        ("0,1,0\n1,2,0\n3,4,1\n", "must have the digits of mfeat-fac.*in its 2 rows"),
        ("0,1,0\n1,2,0\n3,4,1\n5,6,7\n", "must have the digits of mfeat-fac"),
        ("0,1,0\n1,two,0\n3,4,1\n5,6,2\n", "must hold numbers, got .*'two'"),
        ("0,1,0\n1,nan,0\n3,4,1\n5,6,2\n", "must hold finite numbers"),
        ("0,1,0\n1,2,0\n3,4,1\n5,6,12\n", "must have a digit from 0 to 9 .*, got 12"),
        ("0,1,0\n", "must have rows"),
        ("", "must have at least one line"),
    ],
)
def test_damaged_files_give_one_sentence(tmp_path, text, message):
    write_folder(tmp_path, fou=text)
    with pytest.raises(LinkspreadError, match=f"mfeat-fou.csv {message}.*Unpack.*UCI"):
        load_digits_views(tmp_path)


def test_the_published_digits(data_folder):
    if not (data_folder / "digits").is_dir():
        pytest.skip("LINKSPREAD_DATA holds no folder digits")
    data = load_digits_views()
    assert tuple(X.shape for X in data.views.values()) == tuple(
        (2000, w) for w in WIDTHS
    )
    assert_array_equal(np.bincount(data.labels), [200] * 10)
    assert_array_equal(data.pairs, np.column_stack([np.arange(2000)] * 2))

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from linkspread.datasets import load_corel5k
from linkspread.ground.errors import LinkspreadError, ViewError


@pytest.fixture
def folder(tmp_path):
    """Write five pictures of two series in the published form."""
    for name in ("labels", "train_jpeg", "test_jpeg"):
        (tmp_path / name).mkdir()
    (tmp_path / "labels" / "words").write_bytes(b"sky\r\nsea\r\nsun\r\n")
    (tmp_path / "labels" / "training_label").write_bytes(
        b"21001 1 3  \r\n1000 2\r\n1003 3 3 1 \r\n"
    )
    (tmp_path / "labels" / "test_label").write_text("1002 2 1 \n21000 1\n")
    for number in (21001, 1000, 1003):
        (tmp_path / "train_jpeg" / f"{number}.jpeg").touch()
    for number in (1002, 21000):
        (tmp_path / "test_jpeg" / f"{number}.jpeg").touch()
    return tmp_path


class NameLengths:
    """Describe a picture by the length of its name, and remember the fit."""

    def fit(self, pictures):
        self.fitted = pictures
        return self

    def transform(self, pictures):
        return np.array([[len(picture.stem), 1.0] for picture in pictures])


def test_training_rows_come_first(folder):
    data = load_corel5k(folder)
    text = [[1, 0, 1], [0, 1, 0], [1, 0, 1], [1, 1, 0], [1, 0, 0]]
    assert_array_equal(data.views["text"].toarray(), text)
    assert data.ids.tolist() == ["21001", "1000", "1003", "1002", "21000"]
    assert data.words == ("sky", "sea", "sun")
    assert data.label_names == ("1000", "21000")
    assert_array_equal(data.labels, [1, 0, 0, 0, 1])
    assert_array_equal(data.train, [0, 1, 2])
    assert_array_equal(data.test, [3, 4])
    assert [p.stem for p in data.pictures] == data.ids.tolist()
    assert repr(data) == "Corel5k(5 items, 2 classes, text: 5 x 3)"


def test_a_transformer_is_fitted_to_the_training_pictures_only(folder):
    features = NameLengths()
    data = load_corel5k(folder, features=features)
    assert features.fitted == list(data.pictures[:3])
    assert_array_equal(data.views["image"][:, 0], [5, 4, 4, 4, 5])


def test_a_table_becomes_the_view_image(folder, rng):
    X = rng.random((5, 4), dtype=np.float32)
    assert_array_equal(load_corel5k(folder, features=X).views["image"], X)


def test_features_must_have_a_row_per_picture(folder):
    with pytest.raises(ViewError, match="one row per picture, 5, got 4. Give them in"):
        load_corel5k(folder, features=np.ones((4, 2)))


def test_the_environment_variable_names_the_parent_folder(folder, monkeypatch):
    parent = folder / "parent"
    parent.mkdir()
    (parent / "corel5k").symlink_to(folder, target_is_directory=True)
    monkeypatch.setenv("LINKSPREAD_DATA", str(parent))
    assert len(load_corel5k().labels) == 5


def test_no_folder_and_no_variable(monkeypatch):
    monkeypatch.delenv("LINKSPREAD_DATA", raising=False)
    with pytest.raises(LinkspreadError, match="LINKSPREAD_DATA is not set.*Duygulu"):
        load_corel5k()


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(LinkspreadError, match="nowhere.*does not exist.*train_jpeg"):
        load_corel5k(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["words", "training_label", "test_label"])
def test_missing_file_is_named(folder, name):
    (folder / "labels" / name).unlink()
    with pytest.raises(LinkspreadError, match=f"{name} must exist.*Duygulu"):
        load_corel5k(folder)


@pytest.mark.parametrize("name", ["words", "training_label", "test_label"])
def test_empty_file_is_refused(folder, name):
    (folder / "labels" / name).write_text("\n  \n")
    with pytest.raises(LinkspreadError, match=f"{name} must have at least one line"):
        load_corel5k(folder)


def test_binary_file_is_refused(folder):
    (folder / "labels" / "words").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LinkspreadError, match="words must be plain text"):
        load_corel5k(folder)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1000", "picture number and its word numbers.*'1000' on line 2"),
        ("1000 sky", "picture number and its word numbers.*'1000 sky' on line 2"),
        ("1000 -1", "picture number and its word numbers.*'1000 -1' on line 2"),
        ("1000 0", "word numbers from 1 to 3, got '1000 0' on line 2"),
        ("1000 1 4", "word numbers from 1 to 3, got '1000 1 4' on line 2"),
        ("1003 1", "name each picture once, got '1003 1' on line 2"),
        ("1009 1", "in the folder train_jpeg, got .* but no file 1009.jpeg"),
        ("1002 1", "in the folder train_jpeg, got .* but no file 1002.jpeg"),
    ],
)
def test_bad_line_is_quoted(folder, line, message):
    (folder / "labels" / "training_label").write_text(f"1003 1\n{line}\n")
    with pytest.raises(LinkspreadError, match=message):
        load_corel5k(folder)


def test_a_picture_in_both_parts_is_refused(folder):
    (folder / "test_jpeg" / "1003.jpeg").touch()
    (folder / "labels" / "test_label").write_text("1002 2\n1003 1\n")
    with pytest.raises(LinkspreadError, match="no training picture, got 1003"):
        load_corel5k(folder)


def test_the_published_benchmark(data_folder):
    if not (data_folder / "corel5k").is_dir():
        pytest.skip("LINKSPREAD_DATA holds no folder corel5k")
    data = load_corel5k()
    assert data.views["text"].shape == (4999, 374)
    assert (len(data.train), len(data.test)) == (4500, 499)
    assert len(data.label_names) == 50
    n_keywords = data.views["text"].sum(axis=1)
    assert n_keywords.min() == 1 and n_keywords.max() == 5
    assert data.words[:3] == ("city", "mountain", "sky")
    assert len(set(data.ids)) == 4999

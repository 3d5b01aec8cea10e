import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.io import savemat

from linkspread.datasets import load_corel5k, load_wikipedia
from linkspread.ground.errors import LinkspreadError, ViewError


def write_wikipedia(folder, **changes):
    """Write five articles of two topics in the published form."""
    rng = np.random.default_rng(0)
    tables = {
        "T_tr": rng.random((3, 4)),
        "T_te": rng.random((2, 4)),
        "I_tr": rng.random((3, 6)),
        "I_te": rng.random((2, 6)),
    }
    tables |= {k: v for k, v in changes.items() if k in tables}
    savemat(
        folder / "raw_features.mat", {k: v for k, v in tables.items() if v is not None}
    )
    (folder / "categories.list").write_text("art\nsport\n\n")
    (folder / "trainset_txt_img_cat.list").write_text(
        "t0\ti0\t1\nt1\ti1\t2\nt2\ti2\t2\n"
    )
    (folder / "testset_txt_img_cat.list").write_text("t3\ti3\t2\nt4\ti4\t1\n")
    return tables


def test_training_rows_come_first(tmp_path):
    tables = write_wikipedia(tmp_path)
    data = load_wikipedia(tmp_path)
    assert_array_equal(data.views["text"], np.vstack([tables["T_tr"], tables["T_te"]]))
    assert_array_equal(data.views["image"], np.vstack([tables["I_tr"], tables["I_te"]]))
    assert_array_equal(data.labels, [0, 1, 1, 1, 0])
    assert data.label_names == ("art", "sport")
    assert data.ids["text"].tolist() == ["t0", "t1", "t2", "t3", "t4"]
    assert data.ids["image"].tolist() == ["i0", "i1", "i2", "i3", "i4"]
    assert_array_equal(data.train, [0, 1, 2])
    assert_array_equal(data.test, [3, 4])
    assert repr(data) == "Collection(5 items, 2 classes, text: 5 x 4, image: 5 x 6)"


def test_the_environment_variable_names_the_parent_folder(tmp_path, monkeypatch):
    (tmp_path / "wikipedia").mkdir()
    write_wikipedia(tmp_path / "wikipedia")
    monkeypatch.setenv("LINKSPREAD_DATA", str(tmp_path))
    assert len(load_wikipedia().labels) == 5


@pytest.mark.parametrize(
    "name",
    [
        "raw_features.mat",
        "categories.list",
        "trainset_txt_img_cat.list",
        "testset_txt_img_cat.list",
    ],
)
def test_missing_file_is_named(tmp_path, name):
    write_wikipedia(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(LinkspreadError, match=f"{name} must exist.*Rasiwasia"):
        load_wikipedia(tmp_path)


@pytest.mark.parametrize("n_bytes", [0, 10, 200, 400])
def test_truncated_features_are_refused(tmp_path, n_bytes):
    write_wikipedia(tmp_path)
    path = tmp_path / "raw_features.mat"
    path.write_bytes(path.read_bytes()[:n_bytes])
    with pytest.raises(LinkspreadError, match="raw_features.mat must.*Unpack"):
        load_wikipedia(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"T_te": None}, "must hold the tables .*, got no T_te"),
        (
            {"I_tr": np.ones((2, 6))},
            r"a row in I_tr and I_te per line .* got shapes \(2, 6\)",
        ),
        ({"T_te": np.ones((2, 5))}, r"T_tr and T_te .* equal columns, got shapes"),
    ],
)
def test_mismatched_features_are_refused(tmp_path, changes, message):
    write_wikipedia(tmp_path, **changes)
    with pytest.raises(LinkspreadError, match=message):
        load_wikipedia(tmp_path)


@pytest.mark.parametrize("line", ["t0 i0 1", "t0\ti0", "t0\ti0\t3", "t0\ti0\tart"])
def test_bad_line_is_quoted(tmp_path, line):
    write_wikipedia(tmp_path)
    (tmp_path / "trainset_txt_img_cat.list").write_text("t9\ti9\t1\n" + line)
    with pytest.raises(LinkspreadError, match="between 1 and 2.*on line 2"):
        load_wikipedia(tmp_path)


def test_the_published_benchmark(data_folder):
    if not (data_folder / "wikipedia").is_dir():
        pytest.skip("LINKSPREAD_DATA holds no folder wikipedia")
    data = load_wikipedia()
    assert data.views["text"].shape == (2866, 10)
    assert data.views["image"].shape == (2866, 128)
    assert (len(data.train), len(data.test)) == (2173, 693)
    assert data.label_names[0] == "art" and data.label_names[9] == "warfare"
    assert_array_equal(np.unique(data.labels), np.arange(10))
    assert len(set(data.ids["text"])) == len(set(data.ids["image"])) == 2866
    assert np.isfinite(data.views["image"]).all()


@pytest.fixture
def corel5k(tmp_path):
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


def test_training_rows_come_first_corel5k(corel5k):
    data = load_corel5k(corel5k)
    text = [[1, 0, 1], [0, 1, 0], [1, 0, 1], [1, 1, 0], [1, 0, 0]]
    assert_array_equal(data.views["text"].toarray(), text)
    assert data.ids.tolist() == ["21001", "1000", "1003", "1002", "21000"]
    assert data.words == ("sky", "sea", "sun")
    assert data.label_names == ("1000", "21000")
    assert_array_equal(data.labels, [1, 0, 0, 0, 1])
    assert_array_equal(data.train, [0, 1, 2])
    assert_array_equal(data.test, [3, 4])
    assert [p.stem for p in data.pictures] == data.ids.tolist()
    assert repr(data) == "Collection(5 items, 2 classes, text: 5 x 3)"


def test_a_transformer_is_fitted_to_the_training_pictures_only(corel5k):
    features = NameLengths()
    data = load_corel5k(corel5k, features=features)
    assert features.fitted == list(data.pictures[:3])
    assert_array_equal(data.views["image"][:, 0], [5, 4, 4, 4, 5])


def test_a_table_becomes_the_view_image(corel5k, rng):
    X = rng.random((5, 4), dtype=np.float32)
    assert_array_equal(load_corel5k(corel5k, features=X).views["image"], X)


def test_features_must_have_a_row_per_picture(corel5k):
    with pytest.raises(ViewError, match="one row per picture, 5, got 4. Give them in"):
        load_corel5k(corel5k, features=np.ones((4, 2)))


def test_the_environment_variable_names_the_parent_folder_corel5k(corel5k, monkeypatch):
    parent = corel5k / "parent"
    parent.mkdir()
    (parent / "corel5k").symlink_to(corel5k, target_is_directory=True)
    monkeypatch.setenv("LINKSPREAD_DATA", str(parent))
    assert len(load_corel5k().labels) == 5


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
def test_bad_line_is_quoted_corel5k(corel5k, line, message):
    (corel5k / "labels" / "training_label").write_text(f"1003 1\n{line}\n")
    with pytest.raises(LinkspreadError, match=message):
        load_corel5k(corel5k)


def test_a_picture_in_both_parts_is_refused(corel5k):
    (corel5k / "test_jpeg" / "1003.jpeg").touch()
    (corel5k / "labels" / "test_label").write_text("1002 2\n1003 1\n")
    with pytest.raises(LinkspreadError, match="no training picture, got 1003"):
        load_corel5k(corel5k)


def test_the_published_benchmark_corel5k(data_folder):
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

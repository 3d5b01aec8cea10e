import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.io import savemat

from linkspread.datasets import Collection, load_wikipedia
from linkspread.ground.errors import LinkspreadError, ViewError


def write_folder(folder, **changes):
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
    tables = write_folder(tmp_path)
    data = load_wikipedia(tmp_path)
    assert_array_equal(data.views["text"], np.vstack([tables["T_tr"], tables["T_te"]]))
    assert_array_equal(data.views["image"], np.vstack([tables["I_tr"], tables["I_te"]]))
    assert_array_equal(data.labels, [0, 1, 1, 1, 0])
    assert data.label_names == ("art", "sport")
    assert data.ids["text"].tolist() == ["t0", "t1", "t2", "t3", "t4"]
    assert data.ids["image"].tolist() == ["i0", "i1", "i2", "i3", "i4"]
    assert_array_equal(data.train, [0, 1, 2])
    assert_array_equal(data.test, [3, 4])
    assert repr(data) == "Wikipedia(5 items, 2 classes, text: 5 x 4, image: 5 x 6)"


def test_the_environment_variable_names_the_parent_folder(tmp_path, monkeypatch):
    (tmp_path / "wikipedia").mkdir()
    write_folder(tmp_path / "wikipedia")
    monkeypatch.setenv("LINKSPREAD_DATA", str(tmp_path))
    assert len(load_wikipedia().labels) == 5


def test_no_folder_and_no_variable(monkeypatch):
    monkeypatch.delenv("LINKSPREAD_DATA", raising=False)
    with pytest.raises(LinkspreadError, match="LINKSPREAD_DATA is not set.*San Diego"):
        load_wikipedia()


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(LinkspreadError, match="nowhere.*wikipedia_dataset.tar.gz"):
        load_wikipedia(tmp_path / "nowhere")


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
    write_folder(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(LinkspreadError, match=f"{name} must exist.*Rasiwasia"):
        load_wikipedia(tmp_path)


@pytest.mark.parametrize("n_bytes", [0, 10, 200, 400])
def test_truncated_features_are_refused(tmp_path, n_bytes):
    write_folder(tmp_path)
    path = tmp_path / "raw_features.mat"
    path.write_bytes(path.read_bytes()[:n_bytes])
    with pytest.raises(LinkspreadError, match="raw_features.mat must.*Unpack"):
        load_wikipedia(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"T_te": None}, "must hold the tables .*, got no T_te"),
        ({"I_tr": np.ones((2, 6))}, "one row in I_tr per line of .*, got 2 rows for 3"),
        ({"T_te": np.ones((2, 5))}, "equal columns in T_tr and T_te, got 4 and 5"),
    ],
)
def test_mismatched_features_are_refused(tmp_path, changes, message):
    write_folder(tmp_path, **changes)
    with pytest.raises(LinkspreadError, match=message):
        load_wikipedia(tmp_path)


@pytest.mark.parametrize("line", ["t0 i0 1", "t0\ti0", "t0\ti0\t3", "t0\ti0\tart"])
def test_bad_line_is_quoted(tmp_path, line):
    write_folder(tmp_path)
    (tmp_path / "trainset_txt_img_cat.list").write_text("t9\ti9\t1\n" + line)
    with pytest.raises(LinkspreadError, match="between 1 and 2.*on line 2"):
        load_wikipedia(tmp_path)


def test_binary_list_is_refused(tmp_path):
    write_folder(tmp_path)
    (tmp_path / "categories.list").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LinkspreadError, match="categories.list must be plain text"):
        load_wikipedia(tmp_path)


def test_views_and_labels_must_have_equal_length():
    with pytest.raises(ViewError, match="'text' has 3 rows, `labels` has 2"):
        Collection({"text": np.eye(3)}, np.array([0, 1]), ("cat", "dog"))


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

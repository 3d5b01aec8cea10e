"""`linkspread export` writes what the functions of `exchange` write."""

import json

import numpy as np
import pytest

import linkspread as ls
from given_vectors import read_vectors
from judged_models import BETWEEN, make_folder, run
from linkspread import exchange

VIEWS = {"source": "text", "target": "image"}


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.delenv("LINKSPREAD_POSTGRES", raising=False)
    monkeypatch.delenv("DATABASE_URL", raising=False)
    return make_folder(tmp_path / "model")


@pytest.mark.parametrize("form", ["parquet", "npz"])
@pytest.mark.parametrize("role", ["found", "searching"])
def test_vectors_are_those_of_the_model(path, tmp_path, capsys, form, role):
    file = tmp_path / f"out.{form}"
    options = ["--source", "text", "--output", file, "--role", role]
    assert run("export", path, *options) == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"Written: {file}\n")
    taken = read_vectors(file)
    searching, found = ls.load(path).embeddings(*BETWEEN)
    np.testing.assert_allclose(
        taken.vectors, found if role == "found" else searching, rtol=1e-6
    )
    assert taken.role == role
    assert run("export", path, *options) == 2
    assert "exists. Choose another" in capsys.readouterr().err
    assert run("export", path, *options, "--overwrite", "--dtype", "float64") == 0
    assert read_vectors(file).vectors.dtype == np.float64


def test_an_index_of_faiss_finds_what_the_model_finds(path, tmp_path):
    file = tmp_path / "out.faiss"
    given = ["--source", "text", "--target", "image", "--output", file]
    assert run("export", path, *given, "--index", "hnsw") == 0
    model = ls.load(path)
    faiss = pytest.importorskip("faiss")
    index, vector = faiss.read_index(str(file)), model.embed(["t7"], **VIEWS)
    _, rows = index.search(vector.astype(np.float32), 5)
    about = json.loads((tmp_path / "out.faiss.json").read_text())
    ids = np.array(about["ids"])[rows]
    wanted, _ = model.search(["t7"], **VIEWS, n_results=5)
    assert ids.tolist() == wanted.tolist()


def test_a_run_file_is_that_of_the_library(path, tmp_path):
    file, wanted = tmp_path / "out.run", tmp_path / "wanted.run"
    given = ["--source", "text", "--output", file, "-n", 3]
    assert run("export", path, *given) == 0
    exchange.write_run(ls.load(path), wanted, **VIEWS, n_results=3)
    assert file.read_text() == wanted.read_text()


@pytest.mark.parametrize("variable", ["LINKSPREAD_POSTGRES", "DATABASE_URL"])
def test_a_table_goes_to_the_database_of_the_environment(
    path, monkeypatch, capsys, variable
):
    written = []
    monkeypatch.setenv(variable, "postgresql://ann:secret-word@host/items")
    monkeypatch.setattr(
        exchange, "write_postgres", lambda *given, **more: written.append((given, more))
    )
    options = ["--source", "text", "--postgres", "images", "--index", "hnsw"]
    assert run("export", path, *options, "--overwrite") == 0
    (((model, url, table), more),) = written
    assert (url, table) == ("postgresql://ann:secret-word@host/items", "images")
    assert more == {**VIEWS, "index": "hnsw", "overwrite": True}
    printed = capsys.readouterr()
    assert printed.err == "Written: table images\n"


def test_a_database_that_is_away_shows_no_password(path, monkeypatch, capsys):
    url = "postgresql://ann:secret-word@127.0.0.1:1/none"
    monkeypatch.setenv("LINKSPREAD_POSTGRES", url)
    assert run("export", path, "--source", "text", "--postgres", "images") == 2
    printed = capsys.readouterr()
    assert "secret-word" not in printed.err + printed.out
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "must go to one of `--output` and `--postgres`, got none"),
        (["--output", "a.npz", "--postgres", "a"], "got both"),
        (["--output", "a.txt"], "must end in .parquet, .npz, .faiss, .run, got"),
        (["--postgres", "a"], "neither LINKSPREAD_POSTGRES nor DATABASE_URL is set"),
        (
            ["--output", "a.npz", "--index", "hnsw"],
            "`--index` is no option of .npz",
        ),
        (["--output", "a.npz", "-n", "3"], "`--n-results` is no option of .npz"),
        (["--output", "a.npz"], "`--source` must be given"),
        (["--output", "a.npz", "--source", "text", "--role", "x"], "`role` must be"),
    ],
)
def test_a_mistake_is_one_sentence(path, tmp_path, monkeypatch, capsys, options, words):
    monkeypatch.chdir(tmp_path)
    assert run("export", path, *options) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.err.count("\n") == 1
    assert [own.name for own in tmp_path.iterdir()] == ["model"]

"""`linkspread links`: judgements are stored first, and then reach the model."""

import json

import numpy as np
import pytest

import linkspread as ls
from judged_models import BETWEEN, PAIRS, fit_model, make_folder, run
from link_store_places import empty_database
from linkspread.storage import LinkStore
from postgres_server import running_server


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("LINKSPREAD_WHO", "ann")
    return make_folder(tmp_path / "model")


def assert_scores_as_fitted_to(path, pairs):
    wanted = fit_model(pairs).scores(*BETWEEN)
    np.testing.assert_allclose(ls.load(path).scores(*BETWEEN), wanted, atol=2e-6)


def newest(path):
    with ls.ModelFolder(path).store() as store:
        return list(store.judgements(active_only=False))[-1]


def read_json(capsys):
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("verdict", "weights"), [("must", [2.0]), ("cannot", [-2.0]), ("unsure", [])]
)
def test_a_judgement_is_stored_and_learnt(path, capsys, verdict, weights):
    more = ["--note", "other font", "--weight", 2, "--json"]
    assert run("links", "add", path, "t30", "i4", f"--{verdict}", *more) == 0
    document = read_json(capsys)
    assert document["applied"]["added"] == len(weights)
    stored = newest(path)
    assert (stored.id, stored.who, stored.note) == (document["id"], "ann", "other font")
    assert (stored.left_id, stored.verdict, stored.right_id) == ("t30", verdict, "i4")
    assert_scores_as_fitted_to(path, PAIRS + [("t30", "i4", w) for w in weights])


def test_the_first_item_tells_the_views(path):
    assert run("links", "add", path, "i4", "t30", "--must") == 0
    assert (newest(path).left_view, newest(path).right_view) == ("image", "text")
    assert_scores_as_fitted_to(path, [*PAIRS, ("t30", "i4", 1.0)])


def test_a_model_that_fails_to_learn_keeps_the_judgement(path, capsys, monkeypatch):
    def fail(model, **links):
        raise ls.ground.errors.LinkError("links must be few, got many. Fit again.")

    monkeypatch.setattr(ls.LinkSpreading, "change_links", fail)
    (path / "run.toml").write_text("")
    assert run("links", "add", path, "t30", "i4", "--must") == 2
    told = capsys.readouterr().err
    assert f"Stored as {newest(path).id}." in told
    assert "(links must be few, got many)" in told
    assert f"linkspread fit --config {path / 'run.toml'}" in told
    monkeypatch.undo()
    assert run("links", "apply", path, "--json") == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"added": 1, "removed": 0, "unknown": 0}
    assert_scores_as_fitted_to(path, [*PAIRS, ("t30", "i4", 1.0)])


def test_judged_items_that_the_model_lacks_are_told(path, capsys):
    folder = ls.ModelFolder(path)
    folder.judge_pairs([("t99", "i4", 1.0)], between=BETWEEN, who="bob")
    assert run("links", "apply", path) == 0
    told = capsys.readouterr().err
    assert "1 judged pairs have unknown items" in told


def test_the_list_has_all_that_counts(path, capsys):
    run("links", "add", path, "t30", "i4", "--must", "--note", "a\x1b[31m")
    assert run("links", "undo", path, "2") == 0
    capsys.readouterr()
    assert run("links", "list", path, "--json") == 0
    found = read_json(capsys)["judgements"]
    assert [own["number"] for own in found] == [1, *range(3, len(PAIRS) + 2)]
    assert not any(own["taken_back"] for own in found)
    assert run("links", "list", path, "--all", "--json") == 0
    found = read_json(capsys)["judgements"]
    assert [own["number"] for own in found if own["taken_back"]] == [2]
    assert len(found) == len(PAIRS) + 1
    assert run("links", "list", path, "--who", "ann") == 0
    printed = capsys.readouterr().out
    assert "text t30" in printed and "text t1 " not in printed
    assert "\x1b" not in printed
    assert run("links", "list", path, "--who", "nobody") == 1
    assert "there are no such judgements" in capsys.readouterr().err


def test_undo_takes_a_number_or_the_beginning_of_an_id(path, capsys):
    run("links", "add", path, "t30", "i4", "--must")
    id = newest(path).id
    assert run("links", "undo", path, id[:13], "--note", "slip") == 0
    assert_scores_as_fitted_to(path, PAIRS)
    assert run("links", "undo", path, "1") == 0
    assert_scores_as_fitted_to(path, PAIRS[1:])
    for wrong in ("999", "abc", "zzzzzz"):
        capsys.readouterr()
        assert run("links", "undo", path, wrong) == 2
        assert "which 0 have. Look it up" in capsys.readouterr().err


def test_a_file_is_imported_once(path, tmp_path, capsys):
    file = tmp_path / "pairs.csv"
    file.write_text("image,text,verdict\ni4,t30,must\ni5,t31,cannot\ni6,t31,unsure\n")
    assert run("links", "import", path, file, "--who", "cem") == 0
    assert "2 of 2 pairs are new" in capsys.readouterr().err
    assert newest(path).who == "cem"
    wanted = [*PAIRS, ("t30", "i4", 1.0), ("t31", "i5", -1.0)]
    assert_scores_as_fitted_to(path, wanted)
    assert run("links", "import", path, file, "--who", "cem") == 0
    assert "0 of 2 pairs are new" in capsys.readouterr().err
    assert_scores_as_fitted_to(path, wanted)
    file.write_text("image,text\ni4,t300\n")
    assert run("links", "import", path, file) == 2
    assert "t300" in capsys.readouterr().err


def test_ratings_and_unknown_items_are_imported_when_told_how(path, tmp_path, capsys):
    file = tmp_path / "stars.csv"
    file.write_text("text;image;stars\nt30;i4;5\nt31;i5;1\nt32;i5;3\nt300;i5;4\n")
    assert run("links", "import", path, file) == 2
    assert "--must-above 3" in capsys.readouterr().err
    assert run("links", "import", path, file, "--must-above", "3") == 2
    assert "--skip-unknown" in capsys.readouterr().err
    given = ["--must-above", "3", "--skip-unknown"]
    assert run("links", "import", path, file, *given) == 0
    told = capsys.readouterr().err
    assert "1 row is unsure and not counted." in told
    assert "1 of 3 pairs name items that no view has and were skipped: text 't300'" in (
        told
    )
    assert "2 of 2 pairs are new" in told
    wanted = [*PAIRS, ("t30", "i4", 1.0), ("t31", "i5", -1.0)]
    assert_scores_as_fitted_to(path, wanted)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_must_links_of_different_weights_come_back(path, tmp_path, form):
    """Their weights alone would look like ratings."""
    with ls.ModelFolder(path).store() as store:
        for judgement in store.judgements():
            store.undo(judgement.id, who="ann")
    for left, right, weight in (("t1", "i2", 2), ("t3", "i4", 0.5)):
        assert run("links", "add", path, left, right, "--must", "--weight", weight) == 0
    file = tmp_path / f"judged.{form}"
    assert run("links", "export", path, file, "--source", "text") == 0
    links = ls.Links.from_pairs(file, between=BETWEEN)
    assert links.pair_tables[0][1].weights.tolist() == [2.0, 0.5]
    assert run("links", "import", path, file, "--who", "cem") == 0
    assert newest(path).weight == 0.5


@pytest.mark.parametrize("form", ["csv", "tsv", "parquet"])
def test_what_is_exported_is_what_counts(path, tmp_path, capsys, form):
    run("links", "undo", path, "1")
    file = tmp_path / f"judged.{form}"
    assert run("links", "export", path, file, "--source", "text") == 0
    links = ls.Links.from_pairs(file, between=BETWEEN)
    ((between, table),) = links.pair_tables
    rows = list(zip(table.left, table.right, table.weights, strict=True))
    assert sorted(rows) == sorted(PAIRS[1:])
    assert run("links", "export", path, file) == 2
    assert "must be new unless overwrite" in capsys.readouterr().err
    assert run("links", "export", path, file, "--overwrite") == 0
    assert len(ls.Links.from_pairs(file, between=BETWEEN).pair_tables[0][1]) == 23
    assert run("links", "export", path, file, "--source", "sound") == 1
    assert run("links", "export", path, tmp_path / "judged.xls") == 2
    assert "must end in .csv, .tsv or .parquet" in capsys.readouterr().err


def test_the_views_of_an_export_must_be_told_where_there_are_several(path, capsys):
    run("links", "add", path, "t1", "t2", "--must", "--target", "text")
    assert run("links", "export", path, path.parent / "a.csv") == 2
    assert "has pairs of image and text; text and text" in capsys.readouterr().err
    views = ["--source", "text", "--target", "text"]
    assert run("links", "export", path, path.parent / "a.csv", *views) == 0
    assert (path.parent / "a.csv").read_text() == (
        "text,text 2,verdict,weight\nt1,t2,must,1.0\n"
    )


def test_conflicts_name_the_people(path, capsys):
    assert run("links", "conflicts", path) == 1
    assert "nobody disagrees" in capsys.readouterr().err
    run("links", "add", path, "t30", "i4", "--must")
    run("links", "add", path, "t30", "i4", "--cannot", "--who", "bob")
    capsys.readouterr()
    assert run("links", "conflicts", path, "--json") == 0
    (conflict,) = read_json(capsys)["conflicts"]
    assert (conflict["must"], conflict["cannot"]) == (["ann"], ["bob"])
    assert {conflict["left"], conflict["right"]} == {"t30", "i4"}
    assert run("links", "conflicts", path) == 0
    assert "bob" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["t7", "i3"], "must be one of --must, --cannot and --unsure, got none"),
        (["t7", "i3", "--must", "--cannot"], "got --must and --cannot"),
        (["t7", "i333", "--must"], "`RIGHT` must be an item of view 'image'"),
        (["t777", "i3", "--must", "--source", "text"], "`LEFT` must be an item"),
        (["t7", "i3", "--must", "--weight", "-1"], "`weight` must be between"),
    ],
)
def test_a_mistake_stores_nothing(path, capsys, options, words):
    assert run("links", "add", path, *options) == 2
    assert words in capsys.readouterr().err
    assert newest(path).number == len(PAIRS)


def test_a_model_without_judgements_has_none_to_show(tmp_path, capsys):
    fit_model().save(tmp_path / "model")
    assert run("links", "list", tmp_path / "model") == 1
    assert run("links", "conflicts", tmp_path / "model") == 1
    assert run("links", "export", tmp_path / "model", tmp_path / "a.csv") == 1
    assert not (tmp_path / "model" / "judgements.db").exists()


def test_a_store_elsewhere_is_used_and_its_password_never_shown(tmp_path, capsys):
    fit_model().save(tmp_path / "model")
    given = [tmp_path / "model", "t30", "i4", "--must", "--who", "ann"]
    url = "postgresql://ann:secret-word@127.0.0.1:1/none"
    assert run("links", "add", *given, "--store", url) == 2
    printed = capsys.readouterr()
    assert "secret-word" not in printed.err + printed.out
    assert "`place` must lead to a PostgreSQL server" in printed.err
    place = tmp_path / "elsewhere.db"
    assert run("links", "add", *given, "--store", place) == 0
    with LinkStore.open(place) as store:
        assert store.count() == 1
    assert not (tmp_path / "model" / "judgements.db").exists()


@pytest.mark.slow
def test_a_store_in_postgresql(tmp_path, capsys, monkeypatch):
    fit_model().save(tmp_path / "model")
    given = [tmp_path / "model", "t30", "i4", "--must", "--who", "ann"]
    with running_server() as server, empty_database(server) as url:
        monkeypatch.setenv("LINKSPREAD_STORE", url)
        assert run("links", "add", *given) == 0
        assert run("links", "list", tmp_path / "model", "--json") == 0
        printed = capsys.readouterr()
        (found,) = json.loads(printed.out)["judgements"]
        assert (found["left_id"], found["who"]) == ("t30", "ann")
        assert url not in printed.err + printed.out
    assert_scores_as_fitted_to(tmp_path / "model", [*PAIRS, ("t30", "i4", 1.0)])

"""`linkspread search` finds what `model.search` finds, and says what is wrong."""

import json
import re

import numpy as np
import pytest

import linkspread as ls
from judged_models import BETWEEN, PAIRS, make_data, make_features, make_folder, run
from linkspread.cli import opening, search


@pytest.fixture
def path(tmp_path):
    return make_folder(tmp_path / "model")


@pytest.fixture
def pictured(path, tmp_path, monkeypatch):
    """Give the model a features folder."""
    features = make_features(tmp_path)
    for module in (opening, search):
        monkeypatch.setattr(module, "read_features", lambda folder: features)
    return path


def read_json(capsys):
    """Return the document on standard output, which has nothing else."""
    return json.loads(capsys.readouterr().out)


def assert_found(results, wanted):
    ids, scores = (own.ravel().tolist() for own in wanted)
    assert [own["id"] for own in results] == ids
    assert [own["score"] for own in results] == pytest.approx(scores)
    assert [own["rank"] for own in results] == list(range(1, len(ids) + 1))


def test_items_find_what_the_library_finds(path, capsys):
    assert run("search", path, "--id", "t7", "--id", "t9", "-n", 4, "--json") == 0
    document = read_json(capsys)
    assert (document["source"], document["target"]) == BETWEEN
    model = ls.load(path)
    for query, name in zip(document["queries"], ("t7", "t9"), strict=True):
        assert query["id"] == name
        wanted = model.search(name, source="text", target="image", n_results=4)
        assert_found(query["results"], wanted)


def test_the_id_tells_the_view_and_limits_reach_the_library(path, capsys, tmp_path):
    some = tmp_path / "some.txt"
    some.write_text("t1\nt2\n\nt5\n")
    options = ["--only", f"@{some}", "--only", "t7", "--exclude", "t2", "--no-judged"]
    assert run("search", path, "--id", "i5", *options, "--json") == 0
    document = read_json(capsys)
    assert (document["source"], document["target"]) == ("image", "text")
    (query,) = document["queries"]
    assert ("t5", "i5") in {pair[:2] for pair in PAIRS}
    wanted = ls.load(path).search(
        "i5",
        source="image",
        target="text",
        only=["t1", "t2", "t5", "t7"],
        exclude=["t2"],
        judged=False,
    )
    assert_found(query["results"], wanted)
    assert {own["id"] for own in query["results"]} == {"t1", "t7"}


def test_within_one_view(path, capsys):
    model = ls.load(path)
    more = ls.Links.from_pairs([("t1", "t2", 1.0)], between=("text", "text"))
    model.add_links(more).save(path)
    views = ["--source", "text", "--target", "text"]
    assert run("search", path, "--id", "t7", *views, "--json") == 0
    (query,) = read_json(capsys)["queries"]
    assert_found(query["results"], model.search("t7", source="text", target="text"))


@pytest.mark.parametrize("form", ["npy", "parquet"])
def test_rows_of_a_file_are_new_items(path, tmp_path, capsys, form):
    rows = make_data()[0]["text"][:3] + 0.05
    file = tmp_path / f"new.{form}"
    if form == "npy":
        np.save(file, rows)
        names = ["0", "2"]
    else:
        import pandas

        table = pandas.DataFrame(rows, columns=[f"x{k}" for k in range(rows.shape[1])])
        table.insert(0, "id", ["a", "b", "c"])
        table.to_parquet(file)
        names = ["a", "c"]
    given = ["--source", "text", "--query-file", file]
    chosen = [word for name in names for word in ("--row", name)]
    assert run("search", path, *given, *chosen, "--json") == 0
    queries = read_json(capsys)["queries"]
    assert [query["row"] for query in queries] == names
    for query, k in zip(queries, (0, 2), strict=True):
        wanted = ls.load(path).search(rows[[k]], source="text", target="image")
        assert_found(query["results"], wanted)
    assert run("search", path, *given, "--row", "z") == 2
    assert "which has 3 from" in capsys.readouterr().err


def test_a_table_has_rank_id_score_and_text(pictured, capsys):
    assert run("search", pictured, "--id", "i4", "-n", 3) == 0
    printed = capsys.readouterr()
    ids, scores = ls.load(pictured).search(
        "i4", source="image", target="text", n_results=3
    )
    for rank, (name, score) in enumerate(zip(ids, scores, strict=True), start=1):
        row = rf"{rank} │ {name} +│ +{re.escape(f'{score:.4g}')} │ words of {name} "
        assert re.search(row, printed.out)
    assert printed.err == ""


def test_pictures_are_shown_by_their_paths(pictured, tmp_path, capsys):
    assert run("search", pictured, "--id", "t4", "-n", 1) == 0
    assert f"{tmp_path / 'i'}" in capsys.readouterr().out


def test_new_texts_and_pictures_go_through_the_features(pictured, capsys, tmp_path):
    rows = make_data()[0]
    for option, value, views in (
        ("--text", "new words", BETWEEN),
        ("--picture", tmp_path / "i3.png", BETWEEN[::-1]),
    ):
        assert run("search", pictured, option, value, "--json") == 0
        document = read_json(capsys)
        assert (document["source"], document["target"]) == views
        (query,) = document["queries"]
        assert query[option[2:]] == str(value)
        asked = rows[views[0]][:1] + 0.01
        wanted = ls.load(pictured).search(asked, source=views[0], target=views[1])
        assert_found(query["results"], wanted)


def test_a_threshold_leaves_out_and_nothing_found_is_status_1(path, capsys):
    ids, scores = ls.load(path).search("t7", source="text", target="image")
    middle = float(scores[3:5].mean())
    given = ["search", path, "--id", "t7", "--json"]
    assert run(*given, "--threshold", middle) == 0
    (query,) = read_json(capsys)["queries"]
    assert [own["id"] for own in query["results"]] == ids[:4].tolist()
    assert run(*given, "--threshold", 1e9) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["queries"] == [{"id": "t7", "results": []}]
    assert printed.err == "linkspread: nothing was found.\n"


MISTAKES = {
    "near": (["--id", "t77"], "none called 't77'. Similar: 't7'"),
    "in the view": (["--id", "t400", "--source", "text"], "Similar: 't4"),
    "far": (["--id", "%&/(", "--source", "text"], "Its ids are like 't0', 't1', 't2'"),
    "nowhere": (["--id", "%&/("], "No id is similar; correct the id"),
    "no view": (["--id", "t7", "--target", "sound"], "`--target` must be a view"),
    "two ways": (["--id", "t7", "--text", "a"], "got --id and --text"),
    "no way": ([], "must have one of --id, --query-file, --text, --picture, got none"),
    "row alone": (["--id", "t7", "--row", "1"], "`--row` must be a row of a"),
    "no features": (["--text", "a", "--source", "text"], "`--text` needs a view"),
    "no source": (["--query-file", "a.npy"], "`--source` must be given"),
    "method": (["--id", "t7", "--method", "magic"], "`method` must be one of"),
    "only": (["--id", "t7", "--only", "i99"], "`--only` must be an item of view"),
    "only file": (["--id", "t7", "--only", "@none"], "'none' cannot be read"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence_and_status_2(path, capsys, name):
    options, words = MISTAKES[name]
    assert run("search", path, *options) == 2
    printed = capsys.readouterr()
    assert words in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_a_picture_that_is_not_there_is_one_sentence(pictured, capsys):
    assert run("search", pictured, "--picture", "none.jpg") == 2
    assert "there is none at 'none.jpg'" in capsys.readouterr().err


def test_features_that_are_gone_do_not_hinder_a_search(path, capsys, monkeypatch):
    def fail(folder):
        raise ls.ground.errors.ModelError("the features folder is gone. Make it anew.")

    monkeypatch.setattr(opening, "read_features", fail)
    assert run("search", path, "--id", "t7") == 0
    printed = capsys.readouterr()
    assert "texts and pictures are not shown: the features folder" in printed.err


def test_three_views_need_both_names(tmp_path, capsys):
    data = ls.datasets.make_views(dict.fromkeys("abc", 20), n_classes=2, random_state=0)
    model = ls.LinkSpreading(n_neighbors=4).fit(data.views(), data.labels)
    model.save(tmp_path)
    assert run("search", tmp_path, "--id", "7") == 2
    assert "`--source` must be given" in capsys.readouterr().err
    assert run("search", tmp_path, "--id", "7", "--source", "a") == 2
    assert "`--target` must be given if" in capsys.readouterr().err
    views = ["--source", "a", "--target", "c"]
    assert run("search", tmp_path, "--id", "7", *views, "--json") == 0
    (query,) = read_json(capsys)["queries"]
    assert_found(query["results"], model.search(7, source="a", target="c"))


def test_codes_that_steer_a_terminal_are_not_printed(pictured, capsys, monkeypatch):
    features = opening.read_features(ls.ModelFolder(pictured))
    features.contents["text"] = ["\x1b]0;title\a\x1b[31mred"] * 40
    assert run("search", pictured, "--id", "i4") == 0
    assert "\x1b" not in capsys.readouterr().out

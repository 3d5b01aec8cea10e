"""`linkspread search` finds what `model.search` finds, and says what is wrong."""

import base64
import io
import json
import re

import numpy as np
import pytest

import linkspread as ls
from judged_models import BETWEEN, PAIRS, make_data, make_features, make_folder, run
from linkspread.cli.model_folder import ModelFolder
from linkspread.cli.terminal_pictures import choose_display, show_picture


@pytest.fixture
def path(tmp_path):
    return make_folder(tmp_path / "model")


@pytest.fixture
def pictured(path, tmp_path, monkeypatch):
    """Give the model a features folder."""
    features = make_features(tmp_path)
    monkeypatch.setattr(ModelFolder, "features", lambda folder: features)
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


def test_pictures_are_paths_where_nobody_looks(pictured, capsys, monkeypatch):
    monkeypatch.setenv("KITTY_WINDOW_ID", "1")
    assert run("search", pictured, "--id", "t4", "-n", 1, "--pictures") == 0
    printed = capsys.readouterr().out
    assert ".png" in printed
    assert "\x1b" not in printed


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
    "near": (["--id", "t77"], "none called 't77'. Near it are 't7'"),
    "in the view": (["--id", "t400", "--source", "text"], "Near it are 't4"),
    "far": (["--id", "%&/(", "--source", "text"], "Its ids are like 't0', 't1', 't2'"),
    "nowhere": (["--id", "%&/("], "None is spelt like it; correct the id"),
    "no view": (["--id", "t7", "--target", "sound"], "`--target` must be a view"),
    "two ways": (["--id", "t7", "--text", "a"], "got --id and --text"),
    "no way": ([], "must have one of --id, --query-file, --text, --picture, got none"),
    "row alone": (["--id", "t7", "--row", "1"], "`--row` must be a row of a"),
    "no features": (["--text", "a", "--source", "text"], "`--text` must be for a view"),
    "no source": (["--query-file", "a.npy"], "`--source` must be given where"),
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

    monkeypatch.setattr(ModelFolder, "features", fail)
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
    assert "`--target` must be given for a model of 3" in capsys.readouterr().err
    views = ["--source", "a", "--target", "c"]
    assert run("search", tmp_path, "--id", "7", *views, "--json") == 0
    (query,) = read_json(capsys)["queries"]
    assert_found(query["results"], model.search(7, source="a", target="c"))


def test_codes_that_steer_a_terminal_are_not_printed(pictured, capsys, monkeypatch):
    features = ModelFolder(pictured).features()
    features.contents["text"] = ["\x1b]0;title\a\x1b[31mred"] * 40
    assert run("search", pictured, "--id", "i4") == 0
    assert "\x1b" not in capsys.readouterr().out


TERMINALS = [
    ({"KITTY_WINDOW_ID": "1", "TERM": "xterm"}, None, "kitty"),
    ({"TERM": "xterm-kitty"}, None, "kitty"),
    ({"TERM_PROGRAM": "iTerm.app"}, None, "iterm"),
    ({"LC_TERMINAL": "iTerm2"}, None, "iterm"),
    ({"TERM": "foot"}, None, "sixel"),
    ({"TERM": "xterm-sixel"}, True, "sixel"),
    ({"TERM": "xterm-kitty"}, False, None),
    ({"TERM": "xterm-kitty", "TMUX": "/tmp/x"}, None, None),
    ({"COLORTERM": "truecolor"}, True, "blocks"),
    ({"COLORTERM": "truecolor"}, None, None),
    ({"TERM": "xterm"}, True, None),
]


@pytest.mark.parametrize(("environment", "wanted", "display"), TERMINALS)
def test_terminals_are_told_by_their_environment(environment, wanted, display):
    choose = dict(environment=environment, is_terminal=True)
    assert choose_display(wanted, **choose) == display
    assert choose_display(wanted, environment=environment, is_terminal=False) is None


@pytest.fixture
def picture(tmp_path):
    """Return the file of a picture of four colours, and its pixels."""
    from PIL import Image

    pixels = np.zeros((14, 8, 3), dtype=np.uint8)
    pixels[:7, :4], pixels[:7, 4:] = (255, 0, 0), (0, 255, 0)
    pixels[7:, :4], pixels[7:, 4:] = (0, 0, 255), (255, 255, 255)
    Image.fromarray(pixels).save(tmp_path / "four.png")
    return tmp_path / "four.png", pixels


def shown(path, display):
    file = io.StringIO()
    show_picture(path, display, file=file)
    return file.getvalue()


def from_png(letters):
    from PIL import Image

    with Image.open(io.BytesIO(base64.b64decode(letters))) as image:
        return np.asarray(image)


def test_iterm_and_kitty_get_the_picture_itself(picture, monkeypatch):
    monkeypatch.setattr("linkspread.cli.terminal_pictures.KITTY_CHUNK", 16)
    path, pixels = picture
    code = re.fullmatch(
        r"\x1b\]1337;File=inline=1;[^:]*:(.*)\a\n", shown(path, "iterm")
    )
    np.testing.assert_array_equal(from_png(code[1]), pixels)
    pieces = re.findall(r"\x1b_G([^;]*);([^\x1b]*)\x1b\\", shown(path, "kitty"))
    assert pieces[0][0] == "a=T,f=100,m=1"
    assert {head for head, _ in pieces[1:-1]} == {"m=1"}
    assert pieces[-1][0] == "m=0"
    np.testing.assert_array_equal(from_png("".join(p for _, p in pieces)), pixels)


def test_sixels_decode_to_the_picture(picture):
    path, pixels = picture
    body = re.fullmatch(r'\x1bPq"1;1;8;14(.*)\x1b\\\n', shown(path, "sixel"))[1]
    colors = {
        int(c): np.array([int(r), int(g), int(b)])
        for c, r, g, b in re.findall(r"#(\d+);2;(\d+);(\d+);(\d+)", body)
    }
    drawing = re.sub(r"#\d+;2;\d+;\d+;\d+", "", body)
    decoded = np.full((18, 8, 3), -1)
    for band, lines in enumerate(drawing.split("-")):
        for color, letters in re.findall(r"#(\d+)([?-~]+)", lines):
            for column, letter in enumerate(letters):
                for bit in range(6):
                    if (ord(letter) - 63) >> bit & 1:
                        decoded[6 * band + bit, column] = colors[int(color)]
    np.testing.assert_array_equal(decoded[:14], np.round(pixels * (100 / 255)))
    assert np.all(decoded[14:] == -1)


def test_blocks_hold_two_pixels_each(picture):
    path, pixels = picture
    lines = shown(path, "blocks").splitlines()
    color = r"(\d+);(\d+);(\d+)"
    cells = [re.findall(rf"\x1b\[38;2;{color};48;2;{color}m▀", own) for own in lines]
    drawn = np.array(cells, dtype=int).reshape(7, 8, 2, 3)
    drawn = drawn.transpose(0, 2, 1, 3).reshape(14, 8, 3)
    np.testing.assert_array_equal(drawn, pixels)


def test_a_damaged_picture_is_told_and_nothing_stops(tmp_path):
    (tmp_path / "a.png").write_bytes(b"no picture")
    assert "a.png cannot be shown" in shown(tmp_path / "a.png", "blocks")

"""Folders of published data: found, read and refused in one way by every loader."""

from functools import partial

import pytest

from linkspread.datasets import (
    load_catalogues,
    load_corel5k,
    load_digits_views,
    load_wikipedia,
)
from linkspread.datasets.folders import PublishedFolder
from linkspread.ground.errors import LinkspreadError

# The usual folder of each loader, and where its data come from.
LOADERS = {
    "wikipedia": (load_wikipedia, "San Diego"),
    "corel5k": (load_corel5k, "Duygulu"),
    "catalogues/abt-buy": (partial(load_catalogues, "abt-buy"), "pyJedAI"),
    "catalogues/amazon-google": (partial(load_catalogues, "amazon-google"), "pyJedAI"),
    "digits": (load_digits_views, "UCI"),
}


@pytest.mark.parametrize("name", LOADERS)
def test_a_folder_is_given_or_below_that_of_the_variable(name, tmp_path, monkeypatch):
    load, source = LOADERS[name]
    monkeypatch.delenv("LINKSPREAD_DATA", raising=False)
    message = f"`folder` must name .* LINKSPREAD_DATA is not set.*{source}"
    with pytest.raises(LinkspreadError, match=message):
        load()
    with pytest.raises(LinkspreadError, match=f"nowhere', which does not.*{source}"):
        load(tmp_path / "nowhere")
    monkeypatch.setenv("LINKSPREAD_DATA", str(tmp_path))
    with pytest.raises(LinkspreadError, match=f"/{name}', which does not exist"):
        load()
    # Now it is there, and the first file is missed.
    (tmp_path / name).mkdir(parents=True)
    with pytest.raises(LinkspreadError, match=f"{name}/.* must exist.*{source}"):
        load()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "a.csv must exist, got no such file. Unpack the data again. From here"),
        (b"\n  \n", "a.csv must have at least one line, got none"),
        (b"\xff\xfe\x00", "a.csv must be plain text in UTF-8, got UnicodeDecodeError"),
        (b"a,b\n", "a.csv must have rows below its first line, got none"),
        (b"a,b\n1,2\n\n3\n", "a.csv must have 2 fields on each line, got 1 on line 3"),
    ],
)
def test_files_that_cannot_be_read_are_named(tmp_path, content, message):
    if content is not None:
        (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(LinkspreadError, match=message):
        PublishedFolder(tmp_path, "From here.").columns("a.csv", ",")


def test_lines_have_no_white_space_around_them(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one \r\n\r\n  two\tthree\r\n")
    assert PublishedFolder(tmp_path, "").lines("a.txt") == ["one", "two\tthree"]

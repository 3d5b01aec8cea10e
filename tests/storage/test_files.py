"""Files are written whole, and what a killed writer left is removed by the next."""

import os
import signal
import subprocess
import sys

import pytest

from linkspread.ground.errors import LinkspreadError, ModelError
from linkspread.storage import files
from linkspread.storage.files import PARTIAL_NAME, locked, new_file, read_small

pytest.importorskip("fcntl")

WRITER = """
import sys
from linkspread.storage.files import new_file
with new_file(sys.argv[1], overwrite=True) as path:
    path.write_text("half")
    print("writing", flush=True)
    sys.stdin.read()
"""


def unfinished(folder):
    return [own.name for own in folder.iterdir() if PARTIAL_NAME.fullmatch(own.name)]


def test_the_next_write_removes_what_a_killed_writer_left_and_nothing_else(tmp_path):
    target = tmp_path / "target.txt"
    command = [sys.executable, "-c", WRITER, str(target)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as writer:
        assert writer.stdout.readline() == b"writing\n"
        for text in ("one", "two"):
            with new_file(target, overwrite=True) as path:
                path.write_text(text)
            # The other one is still being written.
            assert len(unfinished(tmp_path)) == 1
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    assert len(unfinished(tmp_path)) == 1
    with new_file(target, overwrite=True) as path:
        path.write_text("three")
    assert unfinished(tmp_path) == [] and target.read_text() == "three"


def test_a_file_removed_before_it_was_locked_is_made_again(tmp_path, monkeypatch):
    lock, calls = files._lock, []

    def remove_first(handle, *, wait):
        if not calls:
            for name in unfinished(tmp_path):
                (tmp_path / name).unlink()
        calls.append(handle)
        return lock(handle, wait=wait)

    monkeypatch.setattr(files, "_lock", remove_first)
    with new_file(tmp_path / "target.txt", overwrite=False) as path:
        path.write_text("whole")
    assert len(calls) == 2
    assert (tmp_path / "target.txt").read_text() == "whole"


def test_a_failure_leaves_the_target_and_no_other_file(tmp_path):
    target = tmp_path / "target.txt"
    target.write_text("before")
    with pytest.raises(KeyError), new_file(target, overwrite=True) as path:
        path.write_text("half")
        raise KeyError
    with pytest.raises(LinkspreadError, match="`path` must be new"):
        new_file(target, overwrite=False).__enter__()
    assert os.listdir(tmp_path) == ["target.txt"] and target.read_text() == "before"


def test_a_lock_waits_or_refuses(tmp_path):
    with locked(tmp_path, wait=False):
        with pytest.raises(ModelError, match="another is saving"):
            locked(tmp_path, wait=False).__enter__()
    with locked(tmp_path, wait=False):
        pass


def test_small_files_are_regular_and_small(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"x" * 11)
    (tmp_path / "link").symlink_to("large")
    for name, message in (
        ("pipe", "got a folder, a pipe or a device"),
        ("link", "got a symbolic link"),
        ("large", "at most 10 bytes, got 11"),
    ):
        with pytest.raises(ModelError, match=message):
            read_small(tmp_path, name, max_bytes=10)

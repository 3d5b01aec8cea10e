import os
import subprocess
import sys

import pytest

import linkspread
from linkspread.cli import app, main
from linkspread.ground.errors import LinkspreadError


def run(monkeypatch, *arguments):
    """Run the command line in this process and return its exit status."""
    monkeypatch.setattr(sys, "argv", ["linkspread", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code or 0


@pytest.fixture
def failing_command():
    """Add a command that meets bad input, for one test."""

    def fail():
        raise LinkspreadError("`x` must be 1,\n got 2. Use 1.")

    app.command("fail")(fail)
    yield
    app.registered_commands.pop()


def test_version(monkeypatch, capsys):
    assert run(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"linkspread {linkspread.__version__}\n"


def test_input_errors_are_one_line_and_status_2(monkeypatch, capsys, failing_command):
    assert run(monkeypatch, "fail") == 2
    captured = capsys.readouterr()
    assert captured.err == "linkspread: `x` must be 1, got 2. Use 1.\n"
    assert captured.out == ""


def test_unknown_commands_are_status_2(monkeypatch, capsys):
    assert run(monkeypatch, "dance") == 2
    assert "dance" in capsys.readouterr().err


def test_without_arguments_there_is_help(monkeypatch, capsys):
    run(monkeypatch)
    captured = capsys.readouterr()
    assert "demo" in captured.out + captured.err


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "linkspread", "--version"],
        capture_output=True,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == f"linkspread {linkspread.__version__}"


def test_every_command_refuses_a_folder_without_a_model_in_one_line(
    monkeypatch, capsys, tmp_path
):
    monkeypatch.chdir(tmp_path)
    lines = [
        "evaluate nowhere --links pairs.csv",
        "explain nowhere --id a --with b",
        "export nowhere --output a.npz",
        "info nowhere",
        "search nowhere --id a",
        "serve nowhere",
        "suggest nowhere",
        "links add nowhere a b --must",
        "links apply nowhere",
        "links conflicts nowhere",
        "links export nowhere a.csv",
        "links import nowhere pairs.csv",
        "links list nowhere",
        "links undo nowhere 1",
    ]
    offences = []
    for line in lines:
        status = run(monkeypatch, *line.split())
        err = capsys.readouterr().err
        is_line = err.startswith("linkspread: ") and err.count("\n") == 1
        if status != 2 or not is_line or "'nowhere'" not in err:
            offences.append((line, status, err))
    assert offences == []
    assert list(tmp_path.iterdir()) == []

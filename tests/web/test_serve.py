"""`linkspread serve`: several processes share one store, and end when they are told."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from contextlib import suppress

import pytest
from typer.testing import CliRunner

import linkspread as ls
from linkspread.cli import app
from linkspread.cli.serve import FOLDER, make_app
from linkspread.ground.errors import LinkspreadError, StoreError
from linkspread.links import Links
from linkspread.models import model_folder
from linkspread.storage import LinkStore
from linkspread.web.server import GRACE, PATIENCE
from ports import free_port
from web_sites import fit_model

TOKEN = "twelve letters and more"
JUDGEMENT = {
    "source": "text",
    "source_id": "t5",
    "target": "image",
    "target_id": "i3",
    "verdict": "must",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("served") / "colours"
    model = fit_model()
    model.save(path)
    # Compiles here what workers would wait for.
    link = Links.from_pairs([("t1", "i1", 1.0)], between=("text", "image"))
    model.add_links(link)
    return path


def ask(port, path, body=None, token=TOKEN):
    """Return the status and the text of an answer, each time by a new connection."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    url = f"http://127.0.0.1:{port}{path}"
    request = urllib.request.Request(url, data=data, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def wait_for(port, process):
    """Wait until a server answers."""
    for _ in range(600):
        assert process.poll() is None, process.stderr.read()
        try:
            return ask(port, "/health")
        except OSError:
            time.sleep(0.2)
    raise AssertionError("the server did not start")


@pytest.mark.slow
def test_workers_see_each_others_judgements_and_end_gracefully(folder):
    port = free_port()
    command = [sys.executable, "-m", "linkspread", "serve", str(folder)]
    command += ["--port", str(port), "--workers", "2"]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"LINKSPREAD_TOKEN": TOKEN},
    )
    try:
        wait_for(port, process)
        assert ask(port, "/api/views", token="wrong")[0] == 401
        assert ask(port, "/api/judgements", JUDGEMENT)[0] == 201
        deadline, streak = time.monotonic() + 60, 0
        # Connections go to either worker, so many in a row reach both.
        while streak < 20 and time.monotonic() < deadline:
            number = json.loads(ask(port, "/api/state")[1])["number"]
            streak = streak + 1 if number == 1 else 0
            time.sleep(0.05)
        assert streak == 20
        with LinkStore.open(folder / "judgements.db") as store:
            assert store.count() == 1
    finally:
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 0
    assert TOKEN not in said
    lines = [json.loads(own) for own in said.splitlines() if own.startswith("{")]
    assert any(own.get("route") == "/api/judgements" for own in lines)
    assert "Traceback" not in said


def test_the_page_is_made_from_a_model_folder(folder, monkeypatch):
    from linkspread.web.server import VARIABLE

    monkeypatch.setenv(FOLDER, str(folder))
    monkeypatch.setenv(VARIABLE, json.dumps({"title": "colours"}))
    monkeypatch.setattr("linkspread.web.server.start_logging", lambda: None)
    made = make_app()
    assert made.title == "colours"
    assert made.state.site.views == ("text", "image")
    made.state.site.stop()


def run(*words):
    return CliRunner().invoke(app, ["serve", *map(str, words)])


def test_a_store_of_before_the_model_is_refused(folder):
    (folder / "absorbed.json").write_text('{"number": 9, "row": "lost"}')
    done = run(folder)
    (folder / "absorbed.json").unlink()
    assert isinstance(done.exception, StoreError)
    assert f"`linkspread links apply {folder} --repair`" in str(done.exception)


def test_a_folder_without_a_model_is_refused(tmp_path):
    done = run(tmp_path / "nothing")
    assert isinstance(done.exception, LinkspreadError)
    assert "must be the folder of a model" in str(done.exception)


def test_a_short_token_is_refused(folder):
    done = run(folder, "--token", "short")
    assert re.search("at least 12 letters, got 5", str(done.exception))


def test_a_port_that_is_taken_is_told_in_a_sentence(folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run(folder, "--port", taken.getsockname()[1])
    assert isinstance(done.exception, LinkspreadError)
    assert "must be free to listen on" in str(done.exception)


def test_a_token_is_made_for_pages_that_others_can_reach(folder, monkeypatch):
    served = []
    monkeypatch.setattr("linkspread.web.serve", lambda *a, **how: served.append(a[1]))
    monkeypatch.delenv("LINKSPREAD_TOKEN", raising=False)
    first, second = run(folder, "--host", "0.0.0.0"), run(folder, "--host", "0.0.0.0")
    assert (first.exit_code, second.exit_code) == (0, 0)
    assert len(served[0].token) >= 32
    assert served[0].token != served[1].token
    run(folder)
    assert served[2].token == ""


def test_a_store_elsewhere_is_served(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("linkspread.web.serve", lambda *a, **how: None)
    monkeypatch.setenv("LINKSPREAD_STORE", "")
    monkeypatch.setenv("LINKSPREAD_SERVE_SETTINGS", "{}")
    monkeypatch.setattr("linkspread.web.server.start_logging", lambda: None)
    assert run(folder, "--store", tmp_path / "other.db").exit_code == 0
    site = make_app().state.site
    pair = {"source": ("text", "t5"), "target": ("image", "i3"), "verdict": "must"}
    site.judge(who="ann", **pair)
    site.stop()
    with LinkStore.open(tmp_path / "other.db") as store:
        assert store.count() == 1


def test_model_and_rows_are_of_one_moment_when_a_page_starts(tmp_path, monkeypatch):
    """Another process applies between two reads: the judgement counted twice."""
    path = tmp_path / "model"
    pairs = [("t0", "i0", 1.0), ("t1", "i2", -1.0)]
    ls.ModelFolder.create(path, fit_model(pairs), pairs={("text", "image"): pairs})
    between = ("text", "image")
    ls.ModelFolder(path).judge("t5", "i3", "must", between=between, who="ann")
    load, others = model_folder.load, [ls.ModelFolder(path).apply]

    def load_late(*given, **how):
        if others:
            others.pop()()
        return load(*given, **how)

    monkeypatch.setattr(model_folder, "load", load_late)
    monkeypatch.setenv("LINKSPREAD_SERVE_MODEL", str(path))
    monkeypatch.setenv("LINKSPREAD_STORE", "")
    monkeypatch.setenv("LINKSPREAD_SERVE_SETTINGS", "{}")
    monkeypatch.setattr("linkspread.web.server.start_logging", lambda: None)
    site = make_app().state.site
    site.live.follow()
    model = site.live.shown.model
    found = model.links_.judged(*between)
    where = [model.items_[view].ids.tolist() for view in between]
    assert found[where[0].index("t5"), where[1].index("i3")] == 1.0
    site.stop()


def test_how_much_an_address_may_ask_can_be_chosen(folder, monkeypatch):
    served = []
    monkeypatch.setattr("linkspread.web.serve", lambda *a, **how: served.append(a[1]))
    assert run(folder).exit_code == 0
    assert run(folder, "--requests-per-second", "500").exit_code == 0
    assert [own.requests_per_second for own in served] == [60.0, 500.0]
    assert run(folder, "--requests-per-second", "0").exit_code == 2


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="kills a process alone")
def test_workers_end_with_their_parent_and_uploads_are_cleared(folder, tmp_path):
    """After kill -9, workers went on alone and kept the port; uploads stayed."""
    port = free_port()
    command = [sys.executable, "-m", "linkspread", "serve", str(folder)]
    command += ["--port", str(port), "--workers", "2"]
    place = os.environ | {"TMPDIR": str(tmp_path), "LINKSPREAD_TOKEN": TOKEN}
    for _ in range(2):
        process = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=place
        )
        wait_for(port, process)
        # Only the one of the server that runs.
        assert len(list(tmp_path.glob("linkspread-uploads-*"))) == 1
        process.kill()
        process.communicate(timeout=60)
        deadline = time.monotonic() + 60
        with pytest.raises(OSError):
            while time.monotonic() < deadline:
                ask(port, "/health")
                time.sleep(0.2)


SLOW = """
import sys, time
from pathlib import Path
from linkspread.cli import app
from linkspread.web.live_model import LiveModel
from linkspread.web.overview import Atlas

marks, write = Path(sys.argv.pop()), LiveModel.write

def draw(*given):
    (marks / "drawing").touch()
    time.sleep(300)

def write_late(*given, **how):
    (marks / "writing").touch()
    time.sleep(2)
    return write(*given, **how)

Atlas._draw, LiveModel.write = draw, write_late
app()
"""


@pytest.mark.slow
def test_a_stop_is_bounded_and_loses_no_judgement(folder, tmp_path):
    port, answers = free_port(), []
    with LinkStore.open(folder / "judgements.db") as store:
        n_before = store.count()
    command = [sys.executable, "-c", SLOW, "serve", str(folder), "--port", str(port)]
    process = subprocess.Popen(
        [*command, str(tmp_path)],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"LINKSPREAD_TOKEN": TOKEN},
    )

    def draw():
        with suppress(OSError, http.client.HTTPException):
            ask(port, "/map?source=text&target=image")

    def judge():
        answers.append(ask(port, "/api/judgements", JUDGEMENT | {"target_id": "i6"}))

    threads = [threading.Thread(target=own) for own in (draw, judge)]
    try:
        wait_for(port, process)
        for own in threads:
            own.start()
        for name in ("drawing", "writing"):
            while not (tmp_path / name).exists():
                time.sleep(0.05)
        start = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)
        seconds = time.monotonic() - start
    finally:
        process.kill()
        for own in threads:
            own.join()
    assert process.returncode == 0
    assert seconds < PATIENCE + GRACE + 5
    assert [own[0] for own in answers] == [201]
    with LinkStore.open(folder / "judgements.db") as store:
        assert store.count() == n_before + 1

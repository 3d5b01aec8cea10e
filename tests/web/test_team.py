"""A team: invitations, roles, the history that people filter, agreement and files."""

import io
import re

import pytest
from fastapi.testclient import TestClient
from pyarrow import csv, parquet
from sklearn.metrics import cohen_kappa_score

from linkspread.web.history import cohen_kappa
from web_sites import ROOT, fit_model, form_token, many_browsers

TOKEN = "a token nobody knows"
PAIR = {"source": "text", "source_id": "t5", "target": "image"}


@pytest.fixture(scope="module")
def fitted():
    return fit_model()


@pytest.fixture
def make_browser(fitted, tmp_path_factory):
    with many_browsers(fitted, tmp_path_factory.mktemp) as make:
        yield make


@pytest.fixture
def editor(make_browser):
    """Return a browser that entered by the token of the page."""
    client = make_browser(token=TOKEN, public_url="http://127.0.0.1")
    client.post("/enter", data={"token": TOKEN})
    return client


def send(client, url, **fields):
    """Send a form of the page of the team."""
    return client.post(
        url, data={"form_token": form_token(client.get("/team").text)} | fields
    )


def invite(editor, name, role):
    """Invite a person; return the token of the person and a browser that entered."""
    page = send(editor, "/team", name=name, role=role).text
    secret = re.search(r"<code>([^<]{32})</code>", page)[1]
    client = TestClient(editor.app, base_url=ROOT)
    client.get("/enter")
    assert client.post("/enter", data={"token": secret}).status_code == 200
    return secret, client


def judge(client, target_id, verdict, **more):
    body = PAIR | {"target_id": target_id, "verdict": verdict} | more
    return client.post("/api/judgements", json=body)


def test_people_enter_by_their_own_tokens_and_keep_their_names(editor):
    secret, ann = invite(editor, "Ann", "judge")
    page = ann.get("/history").text
    assert "You are <b>Ann</b>" in page and "People</h2>" not in ann.get("/team").text
    # Another name is not believed, neither of a form nor of a program.
    ann.post("/name", data={"form_token": form_token(page), "name": "Bob"})
    judge(ann, "i3", "must", who="Bob")
    bearer = {"authorization": f"Bearer {secret}"}
    other = TestClient(editor.app, base_url=ROOT, headers=bearer)
    judge(other, "i4", "must", who="Bob")
    store = editor.app.state.site.live.store
    assert [own.who for own in store.judgements()] == ["Ann", "Ann"]
    # A removed person is out at once.
    send(editor, "/team", remove="Ann")
    editor.app.state.access.forget_people()
    assert ann.get("/api/views").status_code == 401
    assert other.get("/api/views").status_code == 401


def test_judges_take_back_their_own_and_editors_all(editor):
    _, ann = invite(editor, "Ann", "judge")
    _, bob = invite(editor, "Bob", "editor")
    id = judge(bob, "i3", "must").json()["id"]
    refused = ann.post(f"/api/judgements/{id}/undo", json={})
    assert refused.status_code == 403 and "Bob" in refused.json()["error"]
    assert f'value="{id}"' not in ann.get("/history").text
    assert send(ann, "/history", undo=id).status_code == 403
    assert send(ann, "/team", name="Eve", role="editor").status_code == 403
    own = judge(ann, "i4", "must").json()["id"]
    assert ann.post(f"/api/judgements/{own}/undo", json={}).status_code == 201
    own = judge(ann, "i5", "must").json()["id"]
    assert bob.post(f"/api/judgements/{own}/undo", json={}).status_code == 201
    assert invite(bob, "Eve", "judge")


def test_nobody_is_invited_to_a_page_without_a_token(make_browser):
    client = make_browser()
    assert "serve it with a token" in client.get("/team").text
    assert send(client, "/team", name="Eve", role="editor").status_code == 403


def test_history_shows_what_is_asked_for(make_browser):
    client = make_browser()
    for k in range(6):
        judge(client, f"i{k}", "must", who="ann")
        judge(client, f"i{k}", "cannot" if k < 2 else "must", who="bob")

    def shown(**where):
        page = client.get("/history", params=where).text
        return [int(n) for n in re.findall(r"<td>(\d+)</td>", page)]

    assert shown() == list(range(12, 0, -1))
    assert shown(who="ann") == [11, 9, 7, 5, 3, 1]
    assert shown(verdict="cannot") == [4, 2]
    assert shown(disputed=1) == [4, 3, 2, 1]
    assert shown(since="2999-01-01") == []
    assert client.get("/history", params={"since": "yesterday"}).status_code == 400
    page = client.get("/team").text
    assert "ann and bob" in page and page.count('<li class="panel">') == 2


def test_judgements_are_exported(make_browser):
    client = make_browser()
    judge(client, "i3", "must", who="ann", note="=1+1")
    judge(client, "i3", "cannot", who="ann")
    judge(client, "i4", "unsure", who="bob")
    files = [client.get(f"/judgements.{own}").content for own in ("csv", "parquet")]
    tables = (
        csv.read_csv(io.BytesIO(files[0])),
        parquet.read_table(io.BytesIO(files[1])),
    )
    for table in tables:
        assert table["right_id"].to_pylist() == ["i3", "i4"]
        assert table["verdict"].to_pylist() == ["cannot", "unsure"]
    assert client.get("/judgements.exe").status_code == 400


@pytest.mark.parametrize("seed", range(5))
def test_kappa_is_that_of_scikit_learn(seed):
    import numpy as np

    rng = np.random.default_rng(seed)
    left, right = rng.choice(["must", "cannot", "unsure"], (2, 30)).tolist()
    kappa = cohen_kappa(list(zip(left, right, strict=True)))
    assert kappa == pytest.approx(cohen_kappa_score(left, right))

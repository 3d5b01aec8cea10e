"""A team: invitations, roles, the history that people filter, agreement and files."""

import io
import re

import numpy as np
import pytest
from fastapi.testclient import TestClient
from pyarrow import csv, parquet
from sklearn.metrics import cohen_kappa_score

from linkspread.models import CrossViewSearch
from linkspread.web.history import cohen_kappa
from web_sites import ROOT, fit_model, fit_search, form_token, make_data, many_browsers

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


def doubtful(client):
    """Return the doubtful pairs of the page of the team, as the address shows them."""
    page = client.get("/team", params={"doubts": 1}).text
    queue = page[page.index('<h2 id="doubts">') :]
    return page, re.findall(
        r'name="left" value="(\w+)".*name="right" value="(\w+)"', queue
    )


@pytest.fixture
def doubted(tmp_path_factory):
    """Return the page of judged pairs, some of them wrong, and the wrong ones."""
    rng, labels = np.random.default_rng(1), make_data()[2]
    with many_browsers(fit_search(), tmp_path_factory.mktemp) as make:
        client, wrong = make(), []
        for k in range(40):
            i, j = int(rng.integers(12, 60)), int(rng.integers(9, 50))
            is_must = (labels["text"][i] == labels["image"][j]) != (k < 3)
            verdict = "must" if is_must else "cannot"
            judge(client, f"i{j}", verdict, source_id=f"t{i}", who="bob")
            wrong += [(f"i{j}", f"t{i}", verdict)] if k < 3 else []
        yield client, wrong


def test_doubtful_judgements_are_settled_most_doubtful_first(doubted, monkeypatch):
    client, wrong = doubted
    live = client.app.state.site.live
    asked, find = [], CrossViewSearch.doubts
    monkeypatch.setattr(
        CrossViewSearch, "doubts", lambda *a, **h: asked.append(1) or find(*a, **h)
    )
    # Nobody waits for them who has not asked.
    assert "Look for them" in client.get("/team").text and not asked
    page, pairs = doubtful(client)
    assert {own[:2] for own in wrong} <= set(pairs)
    wanted = live.shown.model.doubts(10, source="text", target="image")
    wanted = [(own.target_item, own.source_item) for own in wanted][: len(pairs)]
    assert pairs == wanted
    assert "bob: " in page and "because of:" in page and "probability of 9" in page
    # Found once, until judgements change.
    n_asked = len(asked)
    assert doubtful(client)[1] == pairs and len(asked) == n_asked
    (first, second, verdict), other = wrong[0], {"must": "cannot", "cannot": "must"}
    form = {"form_token": form_token(page), "left": first, "right": second}
    form |= {"back": "/team?doubts=1", "verdict": verdict}
    where = {"source": "image", "target": "text"}
    answer = client.post("/settle", params=where, data=form)
    assert str(answer.url).endswith("/team?doubts=1")
    # Confirmed, and not asked again, although it still contradicts the others.
    page, pairs = doubtful(client)
    assert (first, second) not in pairs and len(asked) > n_asked
    (first, second, verdict) = wrong[1]
    form |= {"left": first, "right": second, "verdict": other[verdict]}
    client.post("/settle", params=where, data=form)
    page, pairs = doubtful(client)
    # Two people disagree now.
    assert (first, second) not in pairs and "Disputed pairs" in page
    notes = [own.note for own in live.store.judgements() if own.note]
    assert notes == ["looked at again"] * 2
    assert (
        client.post(
            "/settle", params=where, data=form | {"form_token": "x"}
        ).status_code
        == 403
    )


def test_models_that_cannot_doubt_say_so(make_browser, tmp_path_factory):
    assert "this model is a LinkSpreading" in make_browser().get("/team").text
    few = fit_search([("t0", "i0", 1.0), ("t1", "i0", -1.0)])
    with many_browsers(few, tmp_path_factory.mktemp) as make:
        page = make().get("/team", params={"doubts": 1}).text
        assert "needs 20 judged pairs, and there are 2" in page


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
    rng = np.random.default_rng(seed)
    left, right = rng.choice(["must", "cannot", "unsure"], (2, 30)).tolist()
    kappa = cohen_kappa(list(zip(left, right, strict=True)))
    assert kappa == pytest.approx(cohen_kappa_score(left, right))

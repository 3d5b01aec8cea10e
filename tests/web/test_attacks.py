"""What strangers try: none of it gets through, and none of it is a fault of ours."""

import io
import re
import zlib

import pytest

from linkspread.ground.errors import LinkspreadError, StoreError
from linkspread.web import Settings, serve
from linkspread.web.guard import Access, Buckets, Guard, host_name, make_limits
from linkspread.web.searching import Busy, Turns
from linkspread.web.server import (
    check_public_url,
    keep_secret,
)
from web_sites import EVIL, fit_model, form_token, make_data, many_browsers

TOKEN = "a token nobody knows"
HTML = {"accept": "text/html"}
JUDGEMENT = {
    "source": "text",
    "source_id": "t5",
    "target": "image",
    "target_id": "i3",
    "verdict": "must",
}


@pytest.fixture(scope="module")
def fitted():
    return fit_model()


@pytest.fixture(scope="module")
def make_browser(fitted, tmp_path_factory):
    with many_browsers(fitted, tmp_path_factory.mktemp) as make:
        yield make


@pytest.fixture(scope="module")
def browser(make_browser):
    return make_browser(requests_per_second=1e6, max_upload_pixels=100_000)


@pytest.fixture(scope="module")
def guarded(make_browser):
    return make_browser(token=TOKEN, host="0.0.0.0")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static/..%5capp.py",
        "/static//etc/passwd",
        "/static/page.css%00.py",
        "/upload/..%2f..%2fetc%2fpasswd",
        "/upload/" + "a" * 31 + "%2f",
        "/../../etc/passwd",
        "/picture?view=image&id=../../etc/passwd",
        "/picture?view=image&id=p3.png",
        "/picture?view=../image&id=i3",
        "/picture?view=image&id=i3&size=../../x",
    ],
)
def test_no_path_leads_to_a_file(browser, path):
    answer = browser.get(path)
    assert answer.status_code in (400, 404)
    assert "root:" not in answer.text
    assert "import" not in answer.text


def test_what_people_write_is_text_and_never_a_page(make_browser):
    texts = [EVIL] * len(make_data()[0])
    client = make_browser(texts, title=EVIL)
    page = client.get("/", params={"item": "t5"}).text
    body = JUDGEMENT | {"note": EVIL, "who": EVIL}
    assert client.post("/api/judgements", json=body).status_code == 201
    client.post("/name", data={"form_token": form_token(page), "name": EVIL})
    wheres = {"/": {"q": EVIL}, "/history": {}, "/look": {}, "/ask": {}, "/docs": {}}
    wheres["/why"] = {"item": "t5", "found": "i3"}
    wheres["/map"] = {"source": "text", "target": "image"}
    pages = [client.get(path, params=how).text for path, how in wheres.items()]
    pages += [client.get("/", params={"source": EVIL}).text, page]
    pages += [client.get("/", params={"item": EVIL}).text]
    for page in pages:
        assert "<script>" not in page
        assert "<img src=x" not in page
        assert "49" not in re.findall(r"\{\{.*?\}\}|alert\(2\)&gt;(\d+)", page)
        for tag in re.findall(r"<[a-z][^>]*>", page):
            assert "onerror" not in re.sub(r'"[^"]*"', "", tag)


def test_every_answer_forbids_what_it_does_not_need(browser):
    for path in ("/", "/nowhere", "/static/page.css", "/api/views", "/api/nowhere"):
        headers = browser.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
    assert "no-store" in browser.get("/").headers["cache-control"]


def test_a_fault_of_ours_says_nothing_of_itself(browser, monkeypatch):
    def fail(*args, **how):
        raise RuntimeError("inner life")

    monkeypatch.setattr("linkspread.web.pages.look", fail)
    answer = browser.get("/look")
    assert answer.status_code == 500
    assert "inner life" not in answer.text
    assert "default-src" in answer.headers["content-security-policy"]


def test_without_the_token_nothing_is_seen(guarded):
    for path in (
        "/api/views",
        "/picture?view=image&id=i3",
        "/metrics",
        "/openapi.json",
    ):
        answer = guarded.get(path)
        assert answer.status_code == 401
        assert "t0" not in answer.text
    assert guarded.get("/health").status_code == 200
    page = guarded.get("/", headers=HTML)
    assert str(page.url).endswith("/enter?back=%2F")
    assert guarded.post("/api/judgements", json=JUDGEMENT).status_code == 401
    for wrong in ("", "Bearer", "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN}x"):
        headers = {"authorization": wrong}
        assert guarded.get("/api/views", headers=headers).status_code == 401
    cookies = {"cookie": "linkspread_pass=x"}
    assert guarded.get("/api/views", headers=cookies).status_code == 401


def test_the_token_opens_and_is_told_to_nobody(guarded, caplog):
    caplog.set_level("DEBUG")
    bearer = {"authorization": f"Bearer {TOKEN}"}
    assert guarded.get("/api/views", headers=bearer).status_code == 200
    assert guarded.post("/enter", data={"token": "wrong"}).status_code == 401
    page = guarded.post("/enter", data={"token": TOKEN})
    assert page.status_code == 200
    assert TOKEN not in page.text
    assert TOKEN not in str(dict(guarded.cookies))
    assert guarded.get("/api/views").status_code == 200
    ours = [r for r in caplog.records if not r.name.startswith("http")]
    assert not any(TOKEN in str(vars(record)) for record in ours)
    assert TOKEN not in repr(Settings(token=TOKEN))
    guarded.cookies.clear()


def test_guessing_the_token_is_slow(make_browser):
    client = make_browser(token=TOKEN)
    answers = [client.post("/enter", data={"token": f"{k}"}) for k in range(15)]
    codes = [answer.status_code for answer in answers]
    assert codes[0] == 401
    assert codes[-1] == 429
    assert "retry-after" in answers[-1].headers


def test_forms_of_other_sites_change_nothing(browser):
    page = browser.get("/", params={"item": "t5"}).text
    fields = {"form_token": form_token(page), "must": "i3"}
    elsewhere = [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "http://["},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ]
    for headers in elsewhere:
        answer = browser.post("/?item=t5", data=fields, headers=headers)
        assert answer.status_code == 403
    for wrong in ("", "0" * 64, "é" * 10, form_token(page)[:-1]):
        answer = browser.post("/?item=t5", data=fields | {"form_token": wrong})
        assert answer.status_code == 403
    cookie = dict(browser.cookies)
    browser.cookies.clear()
    assert browser.post("/?item=t5", data=fields).status_code == 403
    browser.cookies.update(cookie)
    assert browser.app.state.site.live.store.count() == 0
    # A form cannot send JSON, and a script of another site may not.
    text = {"content-type": "text/plain"}
    answer = browser.post("/api/judgements", content="{}", headers=text)
    assert answer.status_code in (400, 415)
    answer = browser.post("/api/judgements", json=JUDGEMENT, headers=elsewhere[0])
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers
    assert browser.app.state.site.live.store.count() == 0


def test_only_our_own_names_are_answered(browser, guarded):
    for host in ("evil.example", "127.0.0.1.evil.example", "", "a b", "127.0.0.1@x"):
        assert browser.get("/health", headers={"host": host}).status_code == 421
    for host in ("localhost:8000", "127.0.0.1:8000", "[::1]:8000"):
        assert browser.get("/health", headers={"host": host}).status_code == 200
    assert guarded.get("/health", headers={"host": "10.0.0.7:1"}).status_code == 200
    assert guarded.get("/health", headers={"host": "evil.example"}).status_code == 421


def test_no_name_server_is_asked_by_a_request(monkeypatch):
    access = Access(Settings(host="0.0.0.0"))
    monkeypatch.setattr("linkspread.web.guard.socket", None)
    assert not access.knows_host("evil.example")
    assert access.knows_host("10.0.0.7:1")


def test_nothing_breaks_out_of_a_header(browser):
    page = browser.get("/").text
    for name in ("a\r\nSet-Cookie: evil=1", "a; Path=/; evil=1", "ä" * 500):
        fields = {"form_token": form_token(page), "name": name}
        back = {"back": "/\r\nLocation: http://evil.example"}
        answer = browser.post("/name", data=fields | back, follow_redirects=False)
        assert answer.status_code == 303
        assert answer.headers["location"] == "/"
        assert "evil" not in browser.cookies
    for back in ("//evil.example", "http://evil.example", "/\\evil.example"):
        fields = {"form_token": form_token(page), "back": back}
        answer = browser.post("/name", data=fields, follow_redirects=False)
        assert answer.headers["location"] == "/"
    browser.post("/name", data={"form_token": form_token(page), "name": ""})


def test_many_requests_at_once_are_slowed_down(make_browser):
    client = make_browser(requests_per_second=2.0)
    codes = [client.get("/api/state").status_code for _ in range(40)]
    assert codes[:15] == [200] * 15
    assert codes[-1] == 429


def png(width, height, data=None):
    """Return a PNG whose header says what it likes."""

    def chunk(kind, body):
        check = zlib.crc32(kind + body).to_bytes(4, "big")
        return len(body).to_bytes(4, "big") + kind + body + check

    size = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    rows = zlib.compress(data or b"\0" * (height * (3 * width + 1)))
    parts = (b"IHDR", size + b"\x08\x02\0\0\0"), (b"IDAT", rows), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"#!/bin/sh\nrm -rf", 400),
        (b"<svg xmlns='http://www.w3.org/2000/svg'><script/></svg>", 400),
        (b"GIF89a<script>alert(1)</script>", 400),
        (png(40, 40)[:60], 400),
        (png(30_000, 30_000, b"\0"), 400),
        (png(400, 400), 400),
        (b"\xff\xd8\xff\xe0" + b"\0" * 100, 400),
        (b"x" * 300_000, 413),
    ],
)
def test_what_is_no_small_picture_is_refused(browser, content, status):
    fields = {"form_token": form_token(browser.get("/").text)}
    files = {"picture": ("../../etc/x.png", content, "image/png")}
    answer = browser.post("/upload", data=fields, files=files)
    assert answer.status_code == status
    assert "/tmp" not in answer.text
    folder = browser.app.state.site.uploads.folder
    assert list(folder.iterdir()) == []


def test_a_body_that_hides_its_length_is_cut_off(browser):
    def body():
        for _ in range(40):
            yield b"x" * 100_000

    headers = {"content-type": "application/json"}
    answer = browser.post("/api/judgements", content=body(), headers=headers)
    assert answer.status_code == 413
    for length in ("minus one", "9" * 5000):
        headers["content-length"] = length
        answer = browser.post("/api/judgements", content=b"{}", headers=headers)
        assert answer.status_code in (400, 413)


def test_only_what_we_wrote_is_kept_of_an_upload(browser):
    picture = io.BytesIO(png(40, 40))
    payload = picture.getvalue() + b"<script>alert(1)</script>"
    fields = {"form_token": form_token(browser.get("/").text)}
    answer = browser.post("/upload", data=fields, files={"picture": payload})
    assert answer.status_code == 200
    kept = list(browser.app.state.site.uploads.folder.iterdir())
    assert len(kept) == 1
    assert b"script" not in kept[0].read_bytes()


def test_wrong_methods_are_refused(browser):
    for method in ("PUT", "DELETE", "PATCH", "TRACE", "FOO"):
        assert browser.request(method, "/").status_code == 405


def test_a_page_for_others_must_have_a_token():
    with pytest.raises(LinkspreadError, match="must have a token.*'0.0.0.0'.*Give a"):
        serve("nothing:here", Settings(host="0.0.0.0"), port=1)


def test_a_store_that_is_away_is_no_fault_of_ours(make_browser):
    client = make_browser()
    client.app.state.site.live.store.close()
    answer = client.get("/health")
    assert answer.status_code == 503
    assert "judgements.db" not in answer.text


def test_an_address_gets_back_what_it_may_ask(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("linkspread.web.guard.time.monotonic", lambda: now[0])
    buckets = Buckets(2.0, 3)
    assert [buckets.takes("a") for _ in range(4)] == [True, True, True, False]
    assert buckets.takes("b")
    now[0] += 0.5
    assert [buckets.takes("a") for _ in range(2)] == [True, False]


def test_views_that_are_not_there_are_no_fault_of_ours(browser, caplog):
    caplog.set_level("INFO")
    answer = browser.get("/", params={"source": "x", "q": "secret words"})
    assert answer.status_code in (200, 400)
    assert "secret" not in str([vars(own) for own in caplog.records if own.name
                                .startswith("linkspread")])  # fmt: skip


def test_a_full_disk_is_named_in_the_log_and_by_health(make_browser, monkeypatch):
    client, records = make_browser(), []
    store = client.app.state.site.live.store
    monkeypatch.setattr(
        "linkspread.web.app.log.error", lambda *a, **k: records.append(k)
    )

    def fail(*given, **how):
        raise StoreError("a link store must be writable: the disk is full")

    monkeypatch.setattr(store, "add", fail)
    assert client.get("/health").status_code == 200
    assert client.post("/api/judgements", json=JUDGEMENT).status_code == 503
    assert "the disk is full" in str(records)
    assert client.get("/health").status_code == 503
    assert client.get("/api/search", params={"item": "t5"}).status_code == 200
    monkeypatch.undo()
    assert client.post("/api/judgements", json=JUDGEMENT).status_code == 201
    assert client.get("/health").status_code == 200


def test_workers_count_requests_together(tmp_path):
    """Each worker had limits of its own, so that four allowed four times as much."""
    make_limits(tmp_path)
    settings = Settings(uploads=str(tmp_path), requests_per_second=1.0)
    nobody = Access(settings)
    guards = [
        Guard(None, access=nobody, settings=settings, telemetry=None, answer=None)
        for _ in range(3)
    ]
    taken = [own._requests.takes("10.0.0.7") for own in guards * 6]
    assert sum(taken) == 10
    assert guards[0]._requests.takes("10.0.0.8")
    assert guards[1]._attempts.takes("10.0.0.7")


def test_hosts_and_sites_are_told_apart():
    assert host_name("[::1]:80") == "::1"
    assert host_name("a:b") is None
    assert host_name("a/b") is None
    access, session, other = Access(Settings()), "s" * 43, "o" * 43
    assert access.is_same_site("http://a:1", "", "A:1")
    assert not access.is_same_site("http://a:2", "", "a:1")
    assert not access.is_same_site("http://[", "", "a:1")
    assert access.is_form_token(session, access.form_token(session))
    assert not access.is_form_token(other, access.form_token(session))
    assert not access.is_form_token("short", access.form_token("short"))


def test_a_public_address_is_ours_and_no_other(make_browser):
    public = "https://photos.example/search"
    client = make_browser(token=TOKEN, public_url=public)
    outside = {"host": "photos.example", "origin": "https://photos.example"}
    for path in ("/enter", "/search/enter"):
        # A proxy may strip the path or leave it, and forward the name or its own.
        for names in (outside, outside | {"host": "127.0.0.1:8000"}):
            page = client.post(
                path, data={"token": TOKEN}, headers=names, follow_redirects=False
            )
            assert (page.status_code, page.headers["location"]) == (303, "/search/")
            assert "Path=/search" in page.headers["set-cookie"]
            assert "Secure" in page.headers["set-cookie"]
    evil = outside | {"origin": "https://evil.example"}
    assert client.post("/enter", data={"token": TOKEN}, headers=evil).status_code == 403
    evil = outside | {"host": "evil.example"}
    assert client.get("/health", headers=evil).status_code == 421
    bearer = outside | {"authorization": f"Bearer {TOKEN}"}
    page = client.get("/search/", headers=bearer).text
    links = re.findall(r'(?:src|href|action)="(/[^"]*)"', page)
    assert links and all(own.startswith("/search/") for own in links)
    assert client.get("/openapi.json", headers=bearer).json()["servers"] == [
        {"url": public}
    ]


@pytest.mark.parametrize(
    "url", ["photos.example", "ftp://a", "https://", "https://a:x/", "https://a/?q=1"]
)
def test_a_public_address_must_be_one(url):
    with pytest.raises(LinkspreadError, match="`public_url` must be an address"):
        check_public_url(url)
    assert check_public_url("https://a/b/") == "https://a/b"


def test_wrong_tokens_of_programs_are_slowed_down_too(make_browser):
    client = make_browser(token=TOKEN)
    codes = [
        client.get("/api/views", headers={"authorization": f"Bearer {k}"}).status_code
        for k in range(15)
    ]
    assert (codes[0], codes[-1]) == (401, 429)
    # Not even the right one, or guesses would go on at full speed.
    bearer = {"authorization": f"Bearer {TOKEN}"}
    assert client.get("/api/views", headers=bearer).status_code == 429


def test_made_up_methods_leave_nothing_behind(browser):
    for k in range(50):
        assert browser.request(f"M{k}" + "A" * 500, "/").status_code == 405
    assert "AAAA" not in browser.get("/metrics").text


def test_the_secret_is_kept_for_nobody_else(tmp_path):
    secret = keep_secret(tmp_path)
    assert keep_secret(tmp_path) == secret and len(secret) >= 32
    assert (tmp_path / "page.secret").stat().st_mode & 0o777 == 0o600
    (tmp_path / "page.secret").write_text("short")
    assert len(keep_secret(tmp_path)) >= 32


def test_heavy_work_is_bounded_and_the_rest_goes_on():
    turns = Turns(1, n_waiting=0)
    with turns, pytest.raises(Busy, match="Try again in a moment"), turns:
        pass
    with turns:
        pass

"""Many at once, slow ones, and bodies without end: the others are still answered."""

import http.client
import os
import re
import resource
import runpy
import socket
import threading
import time
import urllib.error
import urllib.request
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
import uvicorn

from linkspread.web import Settings, serve
from linkspread.web import server as web_server
from linkspread.web.server import MAX_CONNECTIONS, ImpatientProtocol
from web_sites import fit_model, form_token, many_browsers

EXAMPLES = Path(__file__).parents[2] / "examples"
SEARCH = "/api/search?source=text&target=image&item=t5"
N_AT_ONCE = 60
# A longer run: LINKSPREAD_REQUESTS=100000.
N_REQUESTS = int(os.environ.get("LINKSPREAD_REQUESTS", "2000"))
HEAD = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST = b"POST /api/judgements HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST += b"Content-Type: application/json\r\n"


@pytest.fixture(scope="module")
def make_browser(tmp_path_factory):
    with many_browsers(fit_model(), tmp_path_factory.mktemp) as make:
        yield make


@contextmanager
def listening_to(app):
    """Serve an application through real sockets; yield its port."""
    how = {"http": ImpatientProtocol, "limit_concurrency": MAX_CONNECTIONS}
    config = uvicorn.Config(app, port=0, log_level="critical", ws="none", **how)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join(timeout=30)


@pytest.fixture(scope="module")
def site(make_browser):
    return make_browser(requests_per_second=1e6).app.state.site


@pytest.fixture(scope="module")
def listening(make_browser):
    with listening_to(make_browser(requests_per_second=1e6).app) as port:
        yield port


def call(port, path="/health", seconds=20):
    return urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=seconds)


def status(port, path, body=None, headers=None):
    """Return the status of an answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as own:
        own.request("POST" if body else "GET", path, body, headers or {})
        return own.getresponse().status


def form(port):
    """Return the body and the headers of an upload."""
    with call(port, "/") as page:
        cookies = page.headers.get_all("set-cookie")
        text = page.read().decode()
    lines = ["--x", 'Content-Disposition: form-data; name="form_token"', ""]
    lines += [form_token(text), "--x"]
    lines += ['Content-Disposition: form-data; name="picture"; filename="a"', "", "x"]
    body = "\r\n".join([*lines, "--x--", ""]).encode()
    kind = "multipart/form-data; boundary=x"
    session = re.search(r"linkspread_session=[^;]*", "".join(cookies))[0]
    return body, {"Content-Type": kind, "Cookie": session}


COSTLY = {
    "map": ("linkspread.web.overview.Atlas.map", "/map?source=text&target=image"),
    "why": ("linkspread.web.site.Site.explain", "/why?item=t5&found=i3"),
    "suggestions": ("linkspread.web.site.Site._suggest", "/api/suggestions"),
    "ask": ("linkspread.web.site.Site._suggest", "/ask"),
    "overview": ("linkspread.web.api.look", "/api/overview"),
    "look": ("linkspread.web.pages.look", "/look"),
    "team": ("linkspread.web.team.progress", "/team"),
    "doubts": ("linkspread.web.doubts.Doubts.found", "/team?doubts=1"),
    "export": ("linkspread.web.team.export", "/judgements.csv"),
    "upload": ("linkspread.web.uploads.Uploads.keep", "/upload"),
    "picture": (
        "linkspread.web.contents.FeatureContents.picture",
        "/picture?view=image&id=i3",
    ),
}


@pytest.mark.parametrize("route", COSTLY)
def test_costly_routes_leave_room_for_searches(route, make_browser, monkeypatch):
    """Fifty maps at once delayed everything by seconds."""
    slow, path = COSTLY[route]
    done, running, codes = threading.Event(), [], []

    def wait(*given, **how):
        running.append(1)
        done.wait(30)
        raise ValueError("too late")

    with listening_to(make_browser(requests_per_second=1e6).app) as port:
        given = form(port) if route == "upload" else ()
        monkeypatch.setattr(slow, wait)
        threads = [
            threading.Thread(target=lambda: codes.append(status(port, path, *given)))
            for _ in range(N_AT_ONCE)
        ]
        for own in threads:
            own.start()
        n_taken, n_working = (52, 2) if route == "picture" else (9, 1)
        try:
            deadline = time.monotonic() + 30
            while not running or len(codes) < N_AT_ONCE - n_taken:
                assert time.monotonic() < deadline, (len(running), codes)
                time.sleep(0.01)
            start = time.perf_counter()
            assert call(port, SEARCH).status == call(port).status == 200
            assert time.perf_counter() - start < 5
            assert len(running) == n_working
        finally:
            done.set()
            for own in threads:
                own.join()
    assert (codes.count(500), codes.count(503)) == (n_taken, N_AT_ONCE - n_taken)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_thousand_connections_leave_room_for_others(listening, monkeypatch):
    """Three hundred idle ones gave everyone 503."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limits[1] < 4096:
        pytest.skip("a process may not open 4,096 files here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], 4096), limits[1]))
    monkeypatch.setattr(web_server, "MAX_SILENCE", 2.0)
    starts = [
        b"",
        HEAD + b"X-Slow: ",  # a head that does not end
        *[POST + b"Content-Length: 100\r\n\r\n{"] * 5,  # a body that does not
        HEAD + b"\r\n",  # an answer, then nothing
        POST + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ]
    sockets = []
    try:
        for k in range(1000):
            own = socket.create_connection(("127.0.0.1", listening), timeout=20)
            own.sendall(starts[k % len(starts)])
            sockets.append(own)
            if k % 100 == 99:
                assert call(listening).status == 200
        assert call(listening, SEARCH).status == 200
        assert len(ImpatientProtocol._waiting) <= web_server.MAX_SILENT
        deadline = time.monotonic() + 20
        for own in sockets[:: len(starts)]:
            own.settimeout(max(deadline - time.monotonic(), 0.01))
            with suppress(ConnectionError):
                assert own.recv(1) == b""
    finally:
        for own in sockets:
            own.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_who_does_not_read_an_answer_is_disconnected(monkeypatch):
    monkeypatch.setattr(web_server, "MAX_SILENCE", 0.5)

    async def large(scope, receive, send):
        start = {"type": "http.response.start", "status": 200, "headers": []}
        await send(start)
        more = {"type": "http.response.body", "body": b"x" * 10**6, "more_body": True}
        for _ in range(30):
            await send(more)
        await send({"type": "http.response.body", "body": b""})

    with listening_to(large) as port:
        own = socket.create_connection(("127.0.0.1", port))
        own.sendall(HEAD + b"\r\n")
        time.sleep(2.0)
        own.settimeout(20)
        n_read = 0
        with suppress(ConnectionError):
            while piece := own.recv(1 << 20):
                n_read += len(piece)
        assert 0 < n_read < 29 * 10**6  # what was on its way, and the end
        own.close()
        # Those who read get all of it.
        with call(port, "/") as answer:
            assert len(answer.read()) == 30 * 10**6


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_body_that_never_ends_is_given_up(listening, monkeypatch):
    monkeypatch.setattr("linkspread.web.guard.BODY_SECONDS", 0.5)
    with socket.create_connection(("127.0.0.1", listening), timeout=20) as own:
        own.sendall(POST + b"Content-Length: 100\r\n\r\n{")
        assert own.recv(200).startswith(b"HTTP/1.1 408")


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_who_goes_on_sending_after_a_refusal_is_disconnected(listening, monkeypatch):
    monkeypatch.setattr(web_server, "MAX_SILENCE", 1.0)
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    deadline = time.monotonic() + 30
    with socket.create_connection(("127.0.0.1", listening), timeout=20) as own:
        own.sendall(POST + b"Transfer-Encoding: chunked\r\n\r\n")
        with pytest.raises(OSError):
            while time.monotonic() < deadline:
                own.sendall(chunk)
    assert time.monotonic() < deadline


@pytest.mark.parametrize("url", ["", "https://photos.example/search"])
def test_only_a_proxy_may_name_the_client(url, monkeypatch):
    """Anyone could name another address in each request, and had no limit."""
    started = []
    monkeypatch.setattr(uvicorn, "run", lambda *a, **how: started.append(how))
    serve("nothing:here", Settings(public_url=url, token="t" * 12), port=0 or 54321)
    assert started[0]["proxy_headers"] == bool(url)
    assert started[0]["ws"] == "none"
    assert "forwarded_allow_ips" not in started[0]  # 127.0.0.1 alone


def memory():
    """Return the memory of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
def test_memory_is_flat_over_many_requests(listening):
    paths = [SEARCH, "/?item=t5", "/api/items?view=text&q=red", "/nowhere", "/look"]
    paths += ["/picture?view=image&id=i3", "/?q=red+thing+{}", "/api/state", "/metrics"]
    seen = []
    with closing(http.client.HTTPConnection("127.0.0.1", listening)) as own:
        for k in range(N_REQUESTS):
            method = f"M{k}" if k % 50 == 0 else "GET"
            headers = {
                "Cookie": f"linkspread_name=n{k}",
                "X-Forwarded-For": f"1.2.3.{k}",
            }
            path = paths[k % len(paths)].format(k)
            own.request(method, path, headers=headers)
            answer = own.getresponse()
            answer.read()
            assert answer.status in (200, 400, 404, 405)
            if k % (N_REQUESTS // 8) == N_REQUESTS // 8 - 1:
                seen.append(memory())
    megabytes = [round(own / 1e6) for own in seen]
    print(f"{N_REQUESTS:,} requests; memory in MB at each eighth: {megabytes}")
    assert seen[-1] - seen[3] < 20e6


def test_the_client_of_the_examples_searches_and_judges(listening):
    example = runpy.run_path(str(EXAMPLES / "page_client.py"))
    client = example["Client"](f"http://127.0.0.1:{listening}")
    assert ("text", "image") in client.directions()
    found = client.search("green thing", source="text", target="image", n=3)
    assert [own.rank for own in found] == [1, 2, 3]
    key = "12345678-1234-4234-8234-123456789012"
    pair = ("text", "t5"), ("image", found[0].id)
    ids = {client.judge(*pair, "must", key=key) for _ in range(2)}
    client.undo(ids.pop())
    assert not ids
    assert client.suggestions("text", "image")[0].gain > 0
    with pytest.raises(example["Refused"], match="must name views of the model"):
        client.judge(("nothing", "t5"), pair[1], "must")

"""The page behind nginx with TLS and under a path, as docs/web.md sets it up."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from browsers import ARGUMENTS, BROWSER, MARKS, eventually, playwright
from linkspread.storage import LinkStore
from ports import free_port
from servers import Server
from web_sites import fit_model

DOCS = Path(__file__).parents[2] / "docs" / "web.md"
TOKEN = "a token nobody knows"

pytestmark = [
    *MARKS,
    pytest.mark.skipif(
        not (shutil.which("nginx") and shutil.which("openssl")),
        reason="nginx or openssl is not installed: apt-get install nginx-light openssl",
    ),
]


def documented(port, public_port, certificate):
    """Return the server block of the docs with ports and files of this test."""
    block = re.search(r"```nginx\n(.*?)```", DOCS.read_text(), re.S)[1]
    block = block.replace("listen 443 ssl;", f"listen 127.0.0.1:{public_port} ssl;")
    block = block.replace("photos.example.org", "localhost")
    block = re.sub(r"/etc/ssl/\S+\.(pem|key)", rf"{certificate}.\1", block)
    assert "127.0.0.1:8000" in block
    return block.replace("127.0.0.1:8000", f"127.0.0.1:{port}")


@pytest.fixture(scope="module")
def proxied(tmp_path_factory):
    """Return the public address and the folder of a page behind nginx."""
    folder = tmp_path_factory.mktemp("proxy")
    port, public_port = free_port(), free_port()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-keyout", folder / "own.key",
         "-out", folder / "own.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    names = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{n}_temp_path {folder}/{n};" for n in names)
    block = documented(port, public_port, folder / "own")
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log;"
        f"events {{}} http {{ access_log off; {temporary} {block} }}"
    )
    fit_model().save(folder / "colours")
    public = f"https://localhost:{public_port}/search"
    server = Server(
        folder / "colours", port, "--public-url", public, "--token", TOKEN,
        "--title", "Colours",
    )  # fmt: skip
    nginx = subprocess.Popen(
        ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")],
        stderr=subprocess.DEVNULL,
    )
    try:
        server.wait("/health")
        yield public, folder / "colours"
    finally:
        nginx.terminate()
        nginx.wait(timeout=20)
        server.kill()


def test_entering_searching_and_judging_through_a_proxy(proxied):
    public, folder = proxied
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        page = browser.new_context(ignore_https_errors=True).new_page()
        asked = []
        page.on("response", lambda own: asked.append((own.status, own.url)))
        page.goto(f"{public}/?source=text&target=image&item=t5")
        page.fill("#token", TOKEN)
        page.keyboard.press("Enter")
        page.wait_for_selector(".card")
        # The search is not lost by entering.
        assert "item=t5" in page.url and page.url.startswith(public)
        page.click("button[name=must] >> nth=0")
        page.fill("#who-name", "Ann")
        page.keyboard.press("Enter")
        with LinkStore.open(folder / "judgements.db") as store:
            eventually(lambda: store.count() == 1)
            assert next(iter(store.judgements())).who == "Ann"
        page.click(".face >> nth=0")
        page.click("#zoom a >> nth=0")
        page.wait_for_selector(".query")
        for path in ("/ask", "/history", "/team", "/look", "/docs"):
            page.goto(public + path)
            assert page.locator("h1").count() == 1
        assert [own for own in asked if own[0] >= 400] == []
        assert all(own.startswith(public) for _, own in asked)
        browser.close()

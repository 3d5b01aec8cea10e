"""The page behind nginx with TLS and under a path, as docs/web.md sets it up."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import linkspread as ls
from browsers import ARGUMENTS, BROWSER, MARKS, eventually, playwright
from linkspread.storage import LinkStore
from ports import free_port
from servers import Server

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


def fit_characters():
    """Return a model of some characters, whose page reads pictures by itself."""
    glyphs = ls.datasets.load_glyphs()
    # Every 20th, the letter A among them.
    some = slice(int(np.flatnonzero(glyphs.ids == "U+0041")[0]) % 20, None, 20)
    views = {view: X[some] for view, X in glyphs.views.items()}
    labels = ls.Links.from_labels(dict.fromkeys(views, glyphs.labels[some]))
    ids = dict.fromkeys(views, glyphs.ids[some])
    return ls.CrossViewSearch().fit(views, labels, ids=ids)


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
    # Started by root, its workers could not write bodies into this folder.
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(
        f"{user} daemon off; pid {folder}/pid; error_log {folder}/error.log;"
        f"events {{}} http {{ access_log off; {temporary} {block} }}"
    )
    fit_characters().save(folder / "characters")
    public = f"https://localhost:{public_port}/search"
    server = Server(
        folder / "characters", port, "--public-url", public, "--token", TOKEN,
        "--title", "Characters",
    )  # fmt: skip
    nginx = subprocess.Popen(
        ["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")],
        stderr=subprocess.DEVNULL,
    )
    try:
        server.wait("/health")
        yield public, folder / "characters"
    finally:
        nginx.terminate()
        nginx.wait(timeout=20)
        server.kill()


def test_entering_searching_judging_and_uploading_through_a_proxy(proxied, tmp_path):
    from PIL import Image

    public, folder = proxied
    # Larger than what nginx takes without a word about it.
    noise = np.random.default_rng(0).integers(0, 255, (900, 900, 3), np.uint8)
    Image.fromarray(noise).save(tmp_path / "own.png")
    assert (tmp_path / "own.png").stat().st_size > 2_000_000
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        page = browser.new_context(ignore_https_errors=True).new_page()
        asked = []
        page.on("response", lambda own: asked.append((own.status, own.url)))
        page.goto(f"{public}/?source=name&target=image&item=U%2B0041")
        page.fill("#token", TOKEN)
        page.keyboard.press("Enter")
        page.wait_for_selector(".card")
        # The search is not lost by entering.
        assert "item=U%2B0041" in page.url and page.url.startswith(public)
        page.click("button[name=must] >> nth=0")
        page.fill("#who-name", "Ann")
        page.keyboard.press("Enter")
        with LinkStore.open(folder / "judgements.db") as store:
            eventually(lambda: store.count() == 1)
            assert next(iter(store.judgements())).who == "Ann"
        page.click(".face >> nth=0")
        page.click("#zoom a >> nth=0")
        page.wait_for_selector(".query")
        page.goto(public + "/")
        page.click(".drop summary")
        page.set_input_files("#picture", tmp_path / "own.png")
        page.click("#drop button")
        page.wait_for_selector(".query img")
        assert page.url.startswith(f"{public}/?") and "upload=" in page.url
        assert page.locator(".card").count() > 0
        for path in ("/ask", "/history", "/team", "/look", "/docs"):
            page.goto(public + path)
            assert page.locator("h1").count() == 1
        assert [own for own in asked if own[0] >= 400] == []
        assert all(own.startswith(public) for _, own in asked)
        browser.close()

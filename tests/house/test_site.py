"""The site: complete, without anything from elsewhere, and for all readers."""

import functools
import html.parser
import http.server
import os
import re
import shutil
import subprocess
import sys
import threading
from urllib.parse import unquote, urldefrag, urljoin, urlparse

import pytest

from documents import ROOT

pytest.importorskip("furo")
pytestmark = pytest.mark.slow
BESIDE = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
LOOKED_AT = [
    "index.html",
    "quickstart.html",
    "tutorials/photos.html",
    "gallery/index.html",
    "gallery/plot_propagation.html",
    "measured.html",
    "reference/models.html",
    "search.html?q=match",
    "which-tool.html",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site from a copy of the tree, without the figures of the gallery.

    A warning is an error; `test_examples.py` runs the gallery.
    """
    tree = tmp_path_factory.mktemp("tree")
    generated = shutil.ignore_patterns("gallery", "reference", "__pycache__")
    for folder in ("docs", "examples", "benchmarks"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=generated)
    for name in BESIDE:
        shutil.copy(ROOT / name, tree)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "docs"]
    about = os.environ | {"LINKSPREAD_SITE_WITHOUT_FIGURES": "1"}
    done = subprocess.run(
        [*command, "site"], cwd=tree, env=about, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return tree / "site"


class Page(html.parser.HTMLParser):
    """What a page links to, what it loads, and the places in it."""

    def __init__(self, path):
        super().__init__()
        self.links, self.loads, self.places = set(), set(), set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.places |= {found.get("id"), found.get("name")}
        if tag == "a" and found.get("href"):
            self.links.add(found["href"])
        if tag == "link" and found.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.add(found["href"])
        if tag in ("script", "img", "iframe", "source") and found.get("src"):
            self.loads.add(found["src"])


@pytest.fixture(scope="module")
def pages(site):
    return {
        path.relative_to(site).as_posix(): Page(path) for path in site.rglob("*.html")
    }


def test_every_link_leads_somewhere(site, pages):
    broken = []
    for name, page in pages.items():
        for link in page.links | page.loads:
            if urlparse(link).scheme:
                continue
            target, place = urldefrag(unquote(urljoin(name, link).partition("?")[0]))
            if not (site / target).is_file():
                broken.append((name, link))
            elif place and target in pages and place not in pages[target].places:
                broken.append((name, link))
    assert broken == []


def test_the_site_loads_nothing_from_elsewhere(site, pages):
    loads = {load for page in pages.values() for load in page.loads}
    assert [load for load in loads if urlparse(load).netloc] == []
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", text), style


def test_each_page_of_the_documents_is_in_the_site(pages):
    docs = ROOT / "docs"
    for path in [*docs.glob("*.md"), *(docs / "tutorials").glob("*.md")]:
        assert path.relative_to(docs).with_suffix(".html").as_posix() in pages
    assert sum(name.startswith("gallery/plot_") for name in pages) >= 12


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *words):
        """Say nothing."""


@pytest.fixture(scope="module")
def address(site):
    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_pages_have_no_violation_and_fit_a_phone(address):
    browsers = pytest.importorskip("browsers")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    if browsers.BROWSER is None:
        pytest.skip("no chromium is installed; LINKSPREAD_BROWSER may name a browser")
    found, asked = [], []
    with browsers.playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=browsers.BROWSER, args=browsers.ARGUMENTS
        )
        for width, scheme in ((1280, "light"), (390, "dark")):
            page = chromium.new_page(
                viewport={"width": width, "height": 850}, color_scheme=scheme
            )
            page.on("request", lambda request: asked.append(request.url))
            for name in LOOKED_AT:
                page.goto(address + name)
                rules = axe.Axe().run(page).response["violations"]
                found += [(name, width, rule["id"]) for rule in rules]
                beyond = page.evaluate("document.documentElement.scrollWidth")
                assert beyond <= width, name
        page.goto(address + "search.html?q=CrossViewSearch")
        page.wait_for_selector("#search-results li a")
        chromium.close()
    assert found == []
    # Pictures within style sheets are data of these.
    assert [url for url in asked if not url.startswith((address, "data:"))] == []

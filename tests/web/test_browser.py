"""The pages in a real browser: by mouse, by keys, on a phone, in the dark, for all."""

import os
import shutil
import socket
import threading
import time

import numpy as np
import pytest

from linkspread.storage import LinkStore
from web_sites import fit_model, make_features

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install playwright"
)
BROWSER = os.environ.get("LINKSPREAD_BROWSER") or shutil.which("chromium")
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"]
ARGUMENTS += ["--no-first-run", "--disable-background-networking"]
ARGUMENTS += ["--disable-component-update", "--disable-sync"]
SEARCH = "/?source=text&target=image&item=t5"
PAGES = [SEARCH, "/", "/?q=green+thing", "/ask", "/history", "/look", "/api"]
PAGES += ["/why?source=text&target=image&item=t5&found=i3", "/nowhere"]
PATIENCE = 60_000

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        BROWSER is None,
        reason="no chromium is installed; LINKSPREAD_BROWSER may name a browser",
    ),
    # uvicorn and the driver leave what the garbage collector closes later.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Serve the colours in a thread; return the address and the site."""
    import uvicorn

    from linkspread.web import Settings, create_app

    folder = tmp_path_factory.mktemp("browser")
    (folder / "uploads").mkdir()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    app = create_app(
        fit_model(),
        LinkStore.open(folder / "judgements.db"),
        features=make_features(folder),
        settings=Settings(
            title="Colours", uploads=str(folder / "uploads"), requests_per_second=1e6
        ),
    )
    config = uvicorn.Config(app, port=port, log_level="error", access_log=False)
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.05)
    # The first link takes long; later ones are what people wait for.
    app.state.site.live.is_warm.wait(120)
    yield f"http://127.0.0.1:{port}", app.state.site
    running.should_exit = True
    thread.join(timeout=30)


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium, server):
    """Return a function that opens a page; what its console complains of fails."""
    contexts, complaints = [], []

    def open_(path, **how):
        context = chromium.new_context(**how)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda m: m.type == "error" and complaints.append(m.text))
        page.goto(server[0] + path)
        return page

    yield open_
    for context in contexts:
        context.close()
    expected = "404 (Not Found)"
    assert [own for own in complaints if expected not in own] == []


@pytest.fixture(autouse=True)
def clean(server):
    """Take back all judgements after each test."""
    yield
    store = server[1].live.store
    for judgement in list(store.judgements()):
        store.undo(judgement.id, who="cleaner")
    server[1].live.catch_up(patience=60)


def ids(page):
    return page.eval_on_selector_all(".card", "own => own.map(c => c.dataset.id)")


def focused(page):
    return page.evaluate("document.activeElement.closest('.card')?.dataset.id")


def test_searching_by_words_and_by_item(open_page):
    page = open_page("/")
    page.fill("#q", "green thing")
    page.keyboard.press("Enter")
    page.wait_for_selector(".card")
    assert "q=green+thing" in page.url
    greens = [own for own in ids(page)[:8] if int(own[1:]) % 3 == 1]
    assert len(greens) >= 6
    page.click(".picks a >> nth=0")
    page.wait_for_selector("button[name=must]")


def test_keys_alone_judge_rerank_and_undo(open_page, server):
    page = open_page(SEARCH)
    before = ids(page)
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("ArrowLeft")
    assert focused(page) == before[0]
    page.keyboard.press("n")
    page.wait_for_selector(".notice")
    after = ids(page)
    assert after != before
    assert page.locator(".was").count() > 0
    assert server[1].live.store.count() == 1
    assert page.url.endswith(SEARCH)
    assert focused(page) is not None
    page.keyboard.press("z")
    page.wait_for_selector(".notice:has-text('Taken back')")
    assert ids(page) == before
    assert server[1].live.store.count() == 0
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"
    # Letters are letters where somebody types.
    page.keyboard.type("ny")
    assert server[1].live.store.count(active_only=True) == 0


def test_keys_of_one_letter_can_be_turned_off(open_page, server):
    page = open_page(SEARCH)
    page.click(".keys summary")
    page.uncheck("#use-keys")
    page.locator(".card").first.focus()
    page.keyboard.press("y")
    page.wait_for_timeout(300)
    assert server[1].live.store.count() == 0


def test_the_mouse_judges_as_well(open_page, server):
    page = open_page(SEARCH)
    page.click("button[name=must] >> nth=2")
    page.wait_for_selector("button[aria-pressed=true]")
    assert "1 belong" in page.inner_text(".counts")
    page.click(".notice button")
    page.wait_for_selector(".counts:has-text('0 belong')")


def test_two_people_see_each_other(open_page):
    ann, bob = open_page(SEARCH), open_page(SEARCH)
    before = ids(bob)
    ann.click("button[name=cannot] >> nth=0")
    ann.wait_for_selector(".notice")
    start = time.monotonic()
    bob.wait_for_selector(f".card:first-child:not([data-id={before[0]}])")
    # 1.5 s between two looks; the rest is the time of a busy machine.
    assert time.monotonic() - start < 20
    assert ids(bob) == ids(ann)


def test_more_results_come_when_they_are_needed(open_page):
    page = open_page(SEARCH)
    for _ in range(20):
        page.mouse.wheel(0, 4000)
        page.wait_for_timeout(150)
        if len(ids(page)) == 50:
            break
    assert len(set(ids(page))) == 50
    assert page.locator("#more").count() == 0


def test_everything_works_without_a_script(open_page, server):
    page = open_page(SEARCH, java_script_enabled=False)
    page.click("#more")
    assert "page=2" in page.url
    page.go_back()
    page.click("button[name=must] >> nth=1")
    assert "1 belong" in page.inner_text(".counts")
    assert "item=t5" in page.url
    page.click(".notice button")
    assert server[1].live.store.count() == 0


def test_questions_are_answered_by_keys(open_page, server):
    page = open_page("/ask")
    first = page.inner_text(".sides")
    assert "Expected gain" in page.inner_text(".gain")
    page.keyboard.press("u")
    page.wait_for_selector(".notice")
    assert page.inner_text(".sides") != first
    assert server[1].live.store.count() == 1
    page.keyboard.press("z")
    page.wait_for_selector(".notice:has-text('Taken back')")
    assert page.inner_text(".sides") == first


def test_a_score_is_explained(open_page):
    page = open_page(SEARCH)
    page.click(".score >> nth=0")
    page.wait_for_selector(".picture svg")
    assert "Links and labels" in page.inner_text("table")


def test_the_map_is_walked_by_arrows(open_page):
    page = open_page("/look")
    page.wait_for_selector(".map svg")
    page.focus(".map")
    for key in ("ArrowRight", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    assert "text: " in page.inner_text(".map-title") or "image: " in page.inner_text(
        ".map-title"
    )


def test_a_picture_is_searched_with(open_page, tmp_path):
    from PIL import Image

    Image.fromarray(np.full((50, 50, 3), (40, 180, 60), np.uint8)).save(
        tmp_path / "green.png"
    )
    page = open_page("/")
    page.click(".drop summary")
    page.set_input_files("#picture", tmp_path / "green.png")
    page.click("#drop button")
    page.wait_for_selector(".query img")
    greens = [own for own in ids(page)[:8] if int(own[1:]) % 3 == 1]
    assert len(greens) >= 6


@pytest.mark.parametrize("path", PAGES)
def test_a_phone_needs_no_scrolling_sideways(open_page, path):
    page = open_page(path, viewport={"width": 360, "height": 700})
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 360
    small = page.evaluate(
        "[...document.querySelectorAll('main button')].filter("
        "b => b.offsetHeight && b.offsetHeight < 24).length"
    )
    assert small == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_no_serious_barrier_for_anybody(open_page, path, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = open_page(path, color_scheme=scheme)
    if path == "/look":
        page.wait_for_selector(".map svg")
    if path == SEARCH:
        page.click("button[name=cannot] >> nth=0")
        page.wait_for_selector(".notice")
    # Colours are read after they have come to rest.
    page.emulate_media(reduced_motion="reduce", color_scheme=scheme)
    found = axe.Axe().run(page).response["violations"]
    serious = [own for own in found if own["impact"] in ("serious", "critical")]
    told = [(own["id"], own["nodes"][0]["html"]) for own in serious]
    assert told == []

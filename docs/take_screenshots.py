"""Take the screenshots of docs/web.md: glyphs served here, judged by two people.

Needs chromium and `pip install playwright`; about a minute:

    python docs/take_screenshots.py
"""

import io
import json
import shutil
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from PIL import Image
from playwright.sync_api import Page, sync_playwright

FIGURES = Path(__file__).parent / "figures"
PORT = 8123
PAGE = f"http://127.0.0.1:{PORT}"
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu"]
VIEWS = {"source": "name", "target": "image"}
WORDS = "greek small letter"
OMEGA = {**VIEWS, "item": "U+03A9"}
DESKTOP, PHONE = (1100, 760), (390, 800)


def ask(path: str, body: dict[str, Any] | None = None) -> Any:
    """Return the answer of the page's API."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(PAGE + path, data, {"Content-Type": "application/json"})
    with urlopen(request) as answer:
        return json.load(answer)


@contextmanager
def serving() -> Iterator[None]:
    """Serve glyphs, fitted to a few labels."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "linkspread", "serve", f"{folder}/glyphs"]
        command += ["--glyphs", "--port", f"{PORT}", "--title", "Glyphs"]
        command += ["--requests-per-second", "1000"]
        server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        try:
            for _ in range(600):
                try:
                    ask("/api/state")
                    break
                except OSError:
                    time.sleep(0.5)
            yield
        finally:
            server.terminate()
            server.wait(timeout=60)


def judge_by_two() -> None:
    """Judge what some names find: two people, who differ now and then."""
    for word in ("GREEK", "HEBREW", "CYRILLIC", "ARROW"):
        query = urlencode({**VIEWS, "q": f"{word.lower()} letter"})
        item = ask(f"/api/items?view=name&q={word.lower()}&n=1")["items"][0]["id"]
        found = ask(f"/api/search?{query}&n=9")["results"]
        for k, own in enumerate(found):
            pair = {**VIEWS, "source_id": item, "target_id": own["id"], "wait": 9}
            # Ids are code points; one verdict of Ann's on each is wrong.
            is_right = word in unicodedata.name(chr(int(own["id"][2:], 16)))
            verdict = "must" if is_right != (k == 7) else "cannot"
            ask("/api/judgements", {"who": "Ann", "verdict": verdict, **pair})
            if k % 2 == 0:
                other = {"must": "cannot", "cannot": "must"}
                verdict = other[verdict] if k == 4 else verdict
                ask("/api/judgements", {"who": "Bob", "verdict": verdict, **pair})


def keep(page: Page, name: str) -> None:
    """Write a screenshot with few colours, which is a quarter as large."""
    page.wait_for_load_state("networkidle")
    with Image.open(io.BytesIO(page.screenshot())) as shot:
        few = shot.convert("RGB").quantize(128, dither=Image.Dither.NONE)
        few.save(FIGURES / f"web-{name}.png", optimize=True)
    print(f"web-{name}.png")


def judge_some(page: Page) -> None:
    """Judge three results by keys, and show the new order."""
    page.keyboard.press("j")
    for key in "ynu":
        page.keyboard.press(key)
    page.wait_for_selector("#news:not([hidden])")
    page.keyboard.press("r")
    page.wait_for_selector(".was")


def enlarge(page: Page) -> None:
    """Enlarge the second result."""
    page.click(".face >> nth=1")
    page.wait_for_selector("#zoom[open] img")


def nothing(page: Page) -> None:
    """Take the page as it is."""


words, omega = f"/?{urlencode({'q': WORDS})}", f"/?{urlencode(OMEGA)}"
# Name, address, what is done there, size, colours.
SHOTS = (
    ("first", "/", nothing, DESKTOP, "light"),
    ("words", words, nothing, DESKTOP, "light"),
    ("search", omega, judge_some, DESKTOP, "light"),
    ("zoom", omega, enlarge, DESKTOP, "light"),
    ("ask", "/ask", nothing, DESKTOP, "dark"),
    ("why", "", nothing, DESKTOP, "light"),
    ("team", "/team", nothing, DESKTOP, "light"),
    ("history", "/history", nothing, DESKTOP, "light"),
    ("phone", words, nothing, PHONE, "light"),
    ("dark", words, nothing, DESKTOP, "dark"),
)


def main() -> None:
    """Take all screenshots, or those that are named."""
    with serving(), sync_playwright() as driver:
        judge_by_two()
        browser = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=ARGUMENTS
        )
        for name, address, work, (width, height), colours in SHOTS:
            if sys.argv[1:] and name not in sys.argv[1:]:
                continue
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme="dark" if colours == "dark" else "light",
                reduced_motion="reduce",
            )
            context.add_cookies(
                [{"name": "linkspread_name", "value": "Ann", "url": PAGE}]
            )
            page = context.new_page()
            page.set_default_timeout(120_000)
            page.goto(PAGE + (address or omega))
            if name == "why":
                page.click(".score >> nth=0")
                page.wait_for_selector(".picture svg")
            work(page)
            keep(page, name)
            context.close()
        browser.close()


if __name__ == "__main__":
    main()

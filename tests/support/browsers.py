"""What tests in a real browser share."""

import os
import shutil
import time

import pytest

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: pip install playwright"
)
BROWSER = os.environ.get("LINKSPREAD_BROWSER") or shutil.which("chromium")
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic"]
ARGUMENTS += ["--no-first-run", "--disable-background-networking"]
ARGUMENTS += ["--disable-component-update", "--disable-sync"]
MARKS = [
    pytest.mark.slow,
    pytest.mark.skipif(
        BROWSER is None,
        reason="no chromium is installed; LINKSPREAD_BROWSER may name a browser",
    ),
    # uvicorn and the driver leave what the garbage collector closes later.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def eventually(is_true, seconds=30):
    """Wait for something that a browser or a server does."""
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.05)

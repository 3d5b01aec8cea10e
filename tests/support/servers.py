"""`linkspread serve` as a process of its own, for tests that kill it."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

# A server may go before it answers, or in the middle of an answer.
NOT_ANSWERED = (OSError, http.client.HTTPException)


class Server:
    """`linkspread serve` in a group of its own, so that all of it can be killed."""

    def __init__(self, folder, port, *options):
        self.port = port
        command = [sys.executable, "-m", "linkspread", "serve", str(folder)]
        command += ["--port", str(port), "--requests-per-second", "100000", *options]
        self.process = subprocess.Popen(
            command, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def ask(self, path, body=None):
        """Return an answer; OSError if none comes."""
        return ask(self.port, path, body)

    def wait(self, path="/api/state"):
        """Wait until the server answers."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            assert self.process.poll() is None
            try:
                return self.ask(path)
            except NOT_ANSWERED:
                time.sleep(0.1)
        raise AssertionError("the server did not start")

    def kill(self):
        """End the server as a power cut would."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def ask(port, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    url, kind = f"http://127.0.0.1:{port}{path}", {"Content-Type": "application/json"}
    request = urllib.request.Request(url, data=data, headers=kind)
    with urllib.request.urlopen(request, timeout=60) as answer:
        text = answer.read()
    return json.loads(text) if text[:1] == b"{" else text

"""A server process with a model behind it, and connections to it, for benchmarks."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path

# Far more than any client here sends: the limit is not measured.
REQUESTS_PER_SECOND = 1_000_000
START_SECONDS = 240


class ServedModel:
    """`linkspread serve` in a process of its own, on a free port of this machine.

    Parameters
    ----------
    folder : path-like
        Of a model.
    workers : int, default=1
    port : int, default=None
        None takes one that is free.
    """

    def __init__(self, folder, *, workers=1, port=None):
        self.port = port or free_port()
        self.log = Path(folder).parent / f"server-{self.port}.log"
        command = [sys.executable, "-m", "linkspread", "serve", str(folder)]
        command += ["--port", str(self.port), "--workers", str(workers)]
        command += ["--requests-per-second", str(REQUESTS_PER_SECOND)]
        with self.log.open("ab") as log:
            # A group of its own, so that workers can be killed with their parent.
            self._process = subprocess.Popen(
                command, stderr=log, env=_environment(), start_new_session=True
            )

    def wait(self):
        """Wait until the server answers; return the seconds that took."""
        start = time.perf_counter()
        while time.perf_counter() - start < START_SECONDS:
            if self._process.poll() is not None:
                raise RuntimeError(f"the server ended:\n{self.log.read_text()[-2000:]}")
            try:
                self.ask("/api/state")
                return time.perf_counter() - start
            except OSError:
                time.sleep(0.1)
        raise RuntimeError(f"the server did not answer in {START_SECONDS} s")

    def ask(self, path, body=None):
        """Return the answer to one request, which must succeed."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, data=data, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            said = error.read().decode()
            raise RuntimeError(
                f"{path.partition('?')[0]}: {error.code} {said}"
            ) from None

    def wait_for(self, number, *, seconds=120):
        """Wait until a number of rows of the store is in the model."""
        end = time.perf_counter() + seconds
        while self.ask("/api/state")["number"] < number:
            if time.perf_counter() > end:
                raise RuntimeError(f"the model did not reach row {number}")
            time.sleep(0.05)

    def kill(self):
        """End the server and its workers at once, as a power cut would."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self):
        """Ask the server to end, and wait for it."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=60)
            except subprocess.TimeoutExpired:
                self.kill()


@contextmanager
def serving(folder, **how):
    """Serve a model while something is done; it answers when this begins."""
    server = ServedModel(folder, **how)
    try:
        server.wait()
        yield server
    finally:
        server.stop()


class Connection:
    """One connection that is kept, for many requests one after the other.

    A full HTTP client would take more of two cores than the server that is measured.
    """

    def __init__(self, port):
        self._port, self._streams = port, None

    async def ask(self, path, body=None):
        """Return the status and the content of an answer; OSError if none comes."""
        try:
            if self._streams is None:
                self._streams = await asyncio.open_connection("127.0.0.1", self._port)
            reader, writer = self._streams
            writer.write(_request(path, body))
            await writer.drain()
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            length = int(head.partition("content-length:")[2].split("\r\n", 1)[0])
            content = await reader.readexactly(length)
        except (OSError, EOFError, asyncio.IncompleteReadError) as error:
            self.close()
            raise OSError("no answer") from error
        return int(head.split(" ", 2)[1]), json.loads(content)

    def close(self):
        """Close the connection; the next request opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def free_port():
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _request(path, body):
    """Return a request as bytes."""
    data = b"" if body is None else json.dumps(body).encode()
    lines = [
        f"{'GET' if body is None else 'POST'} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        f"Content-Length: {len(data)}",
    ]
    return "\r\n".join([*lines, "", ""]).encode() + data


def _environment():
    """Return this environment without a token."""
    return {k: v for k, v in os.environ.items() if k != "LINKSPREAD_TOKEN"}

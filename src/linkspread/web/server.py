"""Serving pages: settings, worker processes and their log."""

import asyncio
import ipaddress
import json
import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from linkspread.ground.errors import LinkspreadError
from linkspread.storage.files import locked

# Workers get settings by the environment, because others can see command lines.
VARIABLE = "LINKSPREAD_SERVE_SETTINGS"
# Signs cookies and forms; beside the store, so that open pages survive a restart.
SECRET = "page.secret"
# Connections to a worker; seconds in which one must send the head of a request, or read
# its answer; seconds that a body may take; how many may keep the server waiting.
MAX_CONNECTIONS, MAX_SILENCE, MAX_BODY_TIME, MAX_SILENT = 900, 15.0, 900.0, 400
# Seconds that requests have to end after SIGTERM, and threads after that.
PATIENCE, GRACE = 10, 5.0
# Begins the names of folders of uploads.
UPLOADS = "linkspread-uploads-"
# The process that starts the workers, and seconds between looks whether it is there.
PARENT, PARENT_PERIOD = "LINKSPREAD_SERVE_PARENT", 2.0


@dataclass(frozen=True)
class Settings:
    """Address, token and limits of a page."""

    title: str = "linkspread"
    host: str = "127.0.0.1"
    token: str = field(default="", repr=False)
    uploads: str = ""  # folder of uploaded pictures; none are taken if empty
    max_upload_bytes: int = 8_000_000
    max_upload_pixels: int = 40_000_000
    requests_per_second: float = 60.0  # per client address
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    public_url: str = ""  # the address that people use, if a proxy stands in front
    owns_process: bool = False  # whether the process ends with the page

    @property
    def root(self) -> str:
        """Return the path of the page under its public address, "" for the top."""
        return urlsplit(self.public_url).path.rstrip("/")

    @property
    def is_public(self) -> bool:
        """Return whether other machines can reach the page."""
        return bool(self.public_url) or not is_loopback(self.host)


def check_public_url(url: str) -> str:
    """Return the address that people use, without a slash at its end."""
    try:
        parts = urlsplit(url)
        is_plain = parts.scheme in ("http", "https") and bool(parts.hostname)
        is_plain = is_plain and not (parts.query or parts.fragment or parts.username)
        is_plain = is_plain and (parts.port or 1) > 0 and url.isprintable()
    except ValueError:
        is_plain = False
    if not is_plain:
        raise LinkspreadError(
            "`public_url` must be an address such as https://example.org/search, got "
            f"{url[:200]!r}. Correct it."
        )
    return url.rstrip("/")


def keep_secret(folder: Path) -> str:
    """Return the secret of a folder, made at the first call."""
    path = folder / SECRET
    fresh = secrets.token_urlsafe(32)
    try:
        with os.fdopen(
            os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w"
        ) as file:
            file.write(fresh)
        return fresh
    except FileExistsError:
        kept = path.read_text(encoding="ascii", errors="replace").strip()
        # Cut short by a full disk or somebody's editor: open pages must be reloaded.
        return kept if len(kept) >= 32 else fresh
    except OSError:
        # A folder that cannot be written to: pages live as long as the server.
        return fresh


def serve(factory: str, settings: Settings, *, port: int, workers: int = 1) -> None:
    """Serve an application until it is stopped."""
    if not settings.token and settings.is_public:
        raise LinkspreadError(
            "a page that other machines can reach must have a token, and "
            f"{settings.public_url or settings.host!r} has none. Give a token, or "
            "leave out `host` and `public_url`."
        )
    # Imported here, because it imports this module.
    from linkspread.web.guard import make_limits

    _check_port(settings.host, port)
    start_logging()
    # uvicorn raises SIGTERM again after closing; the folder below must be removed too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    if os.name == "posix":
        remove_uploads()
    os.environ[PARENT] = str(os.getpid())
    with (
        tempfile.TemporaryDirectory(prefix=UPLOADS) as folder,
        locked(Path(folder), wait=False),
    ):
        settings = replace(settings, uploads=folder, owns_process=True)
        make_limits(Path(folder))
        os.environ[VARIABLE] = json.dumps(asdict(settings))
        uvicorn.run(
            factory,
            factory=True,
            host=settings.host,
            port=port,
            workers=workers,
            # Our own log does not contain queries.
            access_log=False,
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=PATIENCE,
            # A worker answers only after it has loaded a large model.
            timeout_worker_healthcheck=120,
            http=ImpatientProtocol,
            # None is served, and one would leave the limits of this protocol.
            ws="none",
            # Only the proxy of a public address may name the client.
            proxy_headers=bool(settings.public_url),
            limit_concurrency=MAX_CONNECTIONS,
            h11_max_incomplete_event_size=64_000,
        )


def end_process() -> None:
    """End this process soon, even if a map or an explanation is still being made."""

    def end() -> None:
        time.sleep(GRACE)
        os._exit(0)

    threading.Thread(target=end, daemon=True, name="end").start()


class ImpatientProtocol(H11Protocol):
    """HTTP that ends connections that keep it waiting.

    A client may take its time to send a request or to read an answer; if too many do
    so at once, the one that began first is disconnected.
    """

    # Connections that wait for their client, the oldest first.
    _waiting: dict["ImpatientProtocol", asyncio.TimerHandle] = {}
    _awaited = ""

    def connection_made(self, transport: Any) -> None:
        """Wait for a request."""
        super().connection_made(transport)
        self._wait("request", MAX_SILENCE)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._end_wait()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Wait on while a request is not complete."""
        super().data_received(data)
        if self.flow.write_paused:
            return
        if self.cycle is None or self.cycle.response_complete:
            self._wait("request", MAX_SILENCE)
        elif self.cycle.more_body:
            self._wait("body", MAX_BODY_TIME)
        else:
            self._end_wait()

    def on_response_complete(self) -> None:
        """Wait for the next request, or for the rest of a body that was refused."""
        super().on_response_complete()
        if self.cycle.response_complete and not self.transport.is_closing():
            self._wait("request", MAX_SILENCE)

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, also if its last answer is not read."""
        super().timeout_keep_alive_handler()
        self.loop.call_later(MAX_SILENCE, self.transport.abort)

    def pause_writing(self) -> None:
        """Wait for a client that does not read its answer."""
        super().pause_writing()
        self._wait("reader", MAX_SILENCE)

    def resume_writing(self) -> None:
        """Go on with a client that reads again."""
        super().resume_writing()
        self._end_wait()

    def _wait(self, awaited: str, seconds: float) -> None:
        """Hang up later, and on the oldest connection if too many are waited for."""
        if self._awaited == awaited:
            return
        self._end_wait()
        if len(self._waiting) >= MAX_SILENT:
            next(iter(self._waiting))._hang_up()
        self._awaited = awaited
        self._waiting[self] = self.loop.call_later(seconds, self._hang_up)

    def _end_wait(self) -> None:
        """Do not hang up."""
        timer = self._waiting.pop(self, None)
        self._awaited = ""
        if timer is not None:
            timer.cancel()

    def _hang_up(self) -> None:
        """Close the connection, and do not wait until its answer is read."""
        if self._awaited == "reader":
            self.transport.abort()
        self._end_wait()
        self.transport.close()
        self.loop.call_later(MAX_SILENCE, self.transport.abort)


def remove_uploads() -> None:
    """Remove the folders of uploads that killed servers have left."""
    for folder in Path(tempfile.gettempdir()).glob(f"{UPLOADS}*"):
        # Those of running servers are locked, and those of others are not ours.
        with suppress(OSError, LinkspreadError):
            if folder.stat().st_uid == os.getuid() and not folder.is_symlink():
                with locked(folder, wait=False):
                    shutil.rmtree(folder, ignore_errors=True)


def _end_with_parent() -> None:
    """End this worker once the process that started it is gone."""
    parent = int(os.environ.get(PARENT, os.getpid()))
    if parent == os.getpid():
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_PERIOD)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True, name="parent").start()


def read_settings() -> Settings:
    """Return the settings that a worker was started with."""
    start_logging()
    _end_with_parent()
    return Settings(**json.loads(os.environ[VARIABLE]))


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine only."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def start_logging() -> None:
    """Log lines of JSON to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LineFormatter())
    logger = logging.getLogger("linkspread.web")
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)


class _LineFormatter(logging.Formatter):
    """Write each record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "event", {}),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True)


def _check_port(host: str, port: int) -> None:
    """Refuse a port that is taken, before anything is loaded."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host.strip("[]"), port))
        except OSError as error:
            raise LinkspreadError(
                f"`host` and `port` must be free to listen on, and {host}:{port} is "
                f"not ({error.strerror or error}). Choose another `--port`."
            ) from error

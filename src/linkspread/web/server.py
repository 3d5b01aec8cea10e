"""Serving pages: settings, worker processes and their log."""

import asyncio
import ipaddress
import json
import logging
import os
import secrets
import signal
import socket
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from linkspread.ground.errors import LinkspreadError

# Workers get settings by the environment, because others can see command lines.
VARIABLE = "LINKSPREAD_SERVE_SETTINGS"
# Signs cookies and forms; beside the store, so that open pages survive a restart.
SECRET = "page.secret"
# Connections to a worker; seconds that one may send no complete head of a request,
# and how many may do so at once.
MAX_CONNECTIONS, MAX_SILENCE, MAX_SILENT = 900, 15.0, 200


@dataclass(frozen=True)
class Settings:
    """Address, token and limits of a page."""

    title: str = "linkspread"
    host: str = "127.0.0.1"
    token: str = field(default="", repr=False)
    uploads: str = ""  # folder of uploaded pictures; none are taken if empty
    max_upload_bytes: int = 8_000_000
    max_upload_pixels: int = 40_000_000
    requests_per_second: float = 60.0  # per client address and process
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    public_url: str = ""  # the address that people use, if a proxy stands in front

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
    _check_port(settings.host, port)
    start_logging()
    # uvicorn raises SIGTERM again after closing; the folder below must be removed too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="linkspread-uploads-") as folder:
        os.environ[VARIABLE] = json.dumps(asdict(replace(settings, uploads=folder)))
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
            timeout_graceful_shutdown=10,
            # A worker answers only after it has loaded a large model.
            timeout_worker_healthcheck=120,
            http=ImpatientProtocol,
            # Only the proxy of a public address may name the client.
            proxy_headers=bool(settings.public_url),
            limit_concurrency=MAX_CONNECTIONS,
            h11_max_incomplete_event_size=64_000,
        )


class ImpatientProtocol(H11Protocol):
    """HTTP that ends connections without a complete request after a while."""

    # Silent connections of this worker, the oldest first.
    _silent: dict["ImpatientProtocol", asyncio.TimerHandle] = {}

    def connection_made(self, transport: Any) -> None:
        """Start to wait for a request."""
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._end_wait()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Wait on while the head of a request is not complete."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._end_wait()
        elif self not in self._silent:
            self._wait()

    def _wait(self) -> None:
        """Hang up later, and on the oldest connection if too many are silent."""
        if len(self._silent) >= MAX_SILENT:
            oldest = next(iter(self._silent))
            oldest._end_wait()
            oldest.transport.close()
        self._silent[self] = self.loop.call_later(MAX_SILENCE, self.transport.close)

    def _end_wait(self) -> None:
        """Do not hang up."""
        timer = self._silent.pop(self, None)
        if timer is not None:
            timer.cancel()


def read_settings() -> Settings:
    """Return the settings that a worker was started with."""
    start_logging()
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

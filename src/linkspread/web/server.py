"""Serving pages: settings, worker processes and their log."""

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

import uvicorn

from linkspread.ground.errors import LinkspreadError

# Workers get settings by the environment, because others can see command lines.
VARIABLE = "LINKSPREAD_SERVE_SETTINGS"


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


def serve(factory: str, settings: Settings, *, port: int, workers: int = 1) -> None:
    """Serve an application until it is stopped."""
    if not settings.token and not is_loopback(settings.host):
        raise LinkspreadError(
            "a page that other machines can reach must have a token, and "
            f"`host` is {settings.host!r} without one. Give a token, or leave out the "
            "host."
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
            limit_concurrency=256,
            h11_max_incomplete_event_size=64_000,
        )


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

"""Run the pages: one process, or several that share one store."""

import os
import signal
import socket
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import uvicorn

from linkspread.ground.errors import LinkspreadError
from linkspread.web.settings import Settings, is_loopback
from linkspread.web.telemetry import start_logging

# Settings travel to workers here, and not on a command line that others can see.
VARIABLE = "LINKSPREAD_SERVE_SETTINGS"


def serve(factory: str, settings: Settings, *, port: int, workers: int = 1) -> None:
    """Serve an application until it is told to stop."""
    if not settings.token and not is_loopback(settings.host):
        raise LinkspreadError(
            "a page that other machines can reach must have a token, and "
            f"`host` is {settings.host!r}. Give a token, or leave out the host."
        )
    _check_port(settings.host, port)
    start_logging()
    # Raised again by uvicorn when all is closed; the folder below must go as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with tempfile.TemporaryDirectory(prefix="linkspread-uploads-") as folder:
        settings = replace(settings, uploads=str(Path(folder)))
        os.environ[VARIABLE] = settings.to_json()
        uvicorn.run(
            factory,
            factory=True,
            host=settings.host,
            port=port,
            workers=workers,
            # Our own lines say nothing of what people ask.
            access_log=False,
            log_level="warning",
            server_header=False,
            timeout_graceful_shutdown=10,
            # A worker that loads a large model answers no sooner.
            timeout_worker_healthcheck=120,
            limit_concurrency=256,
            h11_max_incomplete_event_size=64_000,
        )


def read_settings() -> Settings:
    """Return the settings that a worker was started with."""
    start_logging()
    return Settings.from_json(os.environ[VARIABLE])


def _check_port(host: str, port: int) -> None:
    """Say in a sentence that a port is taken, before anything is loaded."""
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

"""What every request passes before it reaches a route, and every answer after it."""

import logging
import time
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, RedirectResponse

from linkspread.web.access import Access, Buckets, is_same_site
from linkspread.web.settings import Settings
from linkspread.web.telemetry import Telemetry

log = logging.getLogger("linkspread.web")

PASS_COOKIE = "linkspread_pass"
# Anyone may see these: they say nothing about the collection.
OPEN_PATHS = ("/healthz", "/enter", "/static/")
READING = ("GET", "HEAD", "OPTIONS")
# What a request takes from what an address may ask, where it is not 1.
COSTS = {"/picture": 0.1, "/static": 0.1, "/why": 5.0, "/map": 5.0, "/upload": 5.0}
MAX_BODY = 1_000_000
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class TooLarge(HTTPException):
    """A request has more to say than is allowed."""

    def __init__(self, most: int) -> None:
        super().__init__(413, f"a request must have at most {most:,} bytes.")


class Guard:
    """Checks requests, limits them, and marks and counts answers."""

    def __init__(self, app: Any, *, settings: Settings, telemetry: Telemetry) -> None:
        self.app, self.telemetry = app, telemetry
        self.access = Access(settings)
        rate = settings.requests_per_second
        self._buckets = Buckets(rate, 10 * rate)
        # Guessing a token is slow.
        self._doors = Buckets(0.2, 10)
        self._max_upload = settings.max_upload_bytes

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or let it through."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        start, told = time.perf_counter(), {"status": 0}
        refusal = self._refusal(scope, Headers(scope=scope))
        limited = self._limited(scope, receive)
        marked = self._marked(scope, send, told)
        try:
            await (refusal or self.app)(scope, limited, marked)
        except Exception:
            log.exception("fault")
            if told["status"]:
                raise
            sentence = "something went wrong here. It was written down."
            await _say(500, sentence)(scope, receive, marked)
        finally:
            self._note(scope, told["status"], time.perf_counter() - start)

    def _refusal(self, scope: Any, headers: Headers) -> Any:
        """Return the answer to a request that is not let through, else None."""
        host, path = headers.get("host", ""), scope["path"]
        if not self.access.is_called_right(host):
            return _say(421, "this server does not go by that name.")
        address = (scope.get("client") or ("", 0))[0]
        if not self._buckets.takes(address, self._cost(path)):
            return _say(429, "too many requests; wait a moment.", {"Retry-After": "5"})
        if not _declared_length(headers) <= self._limit(scope):
            most = self._limit(scope)
            return _say(413, f"a request must have at most {most:,} bytes.")
        if scope["method"] not in READING:
            where = headers.get("origin", ""), headers.get("sec-fetch-site", "")
            if not is_same_site(*where, host):
                return _say(403, "this came from another site.")
            if path == "/enter" and not self._doors.takes(address):
                return _say(429, "too many attempts; wait.", {"Retry-After": "30"})
        if path.startswith(OPEN_PATHS):
            return None
        cookies = read_cookies(headers.get("cookie", ""))
        pass_cookie = cookies.get(PASS_COOKIE, "")
        if self.access.is_admitted(headers.get("authorization", ""), pass_cookie):
            return None
        if scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
            return RedirectResponse("/enter", status_code=303)
        wanted = {"WWW-Authenticate": "Bearer"}
        return _say(401, "the token is missing or wrong.", wanted)

    def _limit(self, scope: Any) -> int:
        """Return how many bytes a request may have."""
        return self._max_upload if scope["path"] == "/upload" else MAX_BODY

    def _limited(self, scope: Any, receive: Any) -> Any:
        """Return a reader that stops where a request grows too large."""
        n_bytes = 0

        async def read() -> Any:
            nonlocal n_bytes
            message = await receive()
            n_bytes += len(message.get("body", b""))
            if n_bytes > self._limit(scope):
                raise TooLarge(self._limit(scope))
            return message

        return read

    def _marked(self, scope: Any, send: Any, told: dict[str, int]) -> Any:
        """Return a sender that adds the headers of all answers."""

        async def write(message: Any) -> None:
            if message["type"] == "http.response.start":
                told["status"] = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        return write

    def _cost(self, path: str) -> float:
        """Return what a request takes from what an address may ask."""
        return next((c for own, c in COSTS.items() if path.startswith(own)), 1.0)

    def _note(self, scope: Any, status: int, seconds: float) -> None:
        """Count and log an answer, by its route: a path may hold what people typed."""
        route = getattr(scope.get("route"), "path", None) or "none"
        method = scope["method"] if scope["method"].isalpha() else "none"
        self.telemetry.request(method, route, status, seconds)
        event = {"method": method, "route": route, "status": status}
        event["milliseconds"] = round(1000 * seconds, 1)
        log.info("request", extra={"event": event})


def read_cookies(header: str) -> dict[str, str]:
    """Return the cookies of a header, none for one that makes no sense."""
    try:
        return {name: own.value for name, own in SimpleCookie(header).items()}
    except CookieError:
        return {}


def _declared_length(headers: Headers) -> float:
    """Return how many bytes a request says it has."""
    given = headers.get("content-length", "0")
    return int(given) if given.isdecimal() else float("inf")


def _say(status: int, sentence: str, headers: dict[str, str] | None = None) -> Any:
    """Return an answer of one sentence."""
    text = sentence[:1].upper() + sentence[1:]
    return PlainTextResponse(f"{text}\n", status_code=status, headers=headers)

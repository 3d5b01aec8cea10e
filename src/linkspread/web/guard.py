"""Access and limits; every request and every answer passes here."""

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlsplit

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from linkspread.ground.errors import StoreError
from linkspread.storage import Person
from linkspread.storage.files import write_file
from linkspread.storage.link_store import digest_of
from linkspread.web.server import Settings, is_loopback
from linkspread.web.telemetry import Telemetry

log = logging.getLogger("linkspread.web")

LOCAL_NAMES = {"localhost", "127.0.0.1", "::1"}
SESSION_COOKIE, NAME_COOKIE = "linkspread_session", "linkspread_name"
PASS_COOKIE = "linkspread_pass"
SESSION = re.compile(r"[A-Za-z0-9_-]{43}")
A_YEAR = 365 * 24 * 3600
MAX_NAME = 60
NOBODY = "guest"
# Addresses that are told apart, and the file in which workers count their requests.
N_TABLES, N_BUCKETS, LIMITS = 2, 8192, "limits"
# Open to everyone: these contain nothing of the collection.
OPEN_PATHS = ("/health", "/enter", "/static/")
READING = ("GET", "HEAD", "OPTIONS")
METHODS = (*READING, "POST")
# What a request counts towards the limit of an address, where it is not 1.
COSTS = {"/picture": 0.1, "/static": 0.1, "/why": 5.0, "/map": 5.0, "/upload": 5.0}
MAX_BODY = 1_000_000
# Key of a request for the person who sends it, and seconds until people are read again.
PERSON, PEOPLE_LIFETIME = "linkspread.person", 2.0
# A body may take this many seconds, and longer at this many bytes per second.
BODY_SECONDS, SLOWEST_BODY = 20.0, 10_000
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


class Refusal(NamedTuple):
    """Why a request is refused: a status, a sentence, and headers of the answer."""

    status: int
    sentence: str
    headers: dict[str, str] | None = None


SLOW_DOWN = Refusal(429, "too many attempts; wait.", {"Retry-After": "30"})


class Access:
    """Checks of who may see pages and who may change anything."""

    def __init__(
        self, settings: Settings, read_people: Callable[[], list[Person]] = list
    ) -> None:
        self.needs_token = bool(settings.token)
        self._read_people, self._read_at = read_people, 0.0
        self._people: list[Person] = []
        self._token, self._secret = settings.token, settings.secret.encode()
        public = urlsplit(settings.public_url)
        self.root = settings.root
        self.is_secure = public.scheme == "https"
        self._origin = f"{public.scheme}://{public.netloc}".lower()
        host = settings.host.strip("[]").lower()
        self._names = {*LOCAL_NAMES, host, public.hostname or host}
        self._is_open = not is_loopback(host)
        if self._is_open:
            # Once and not for each request, because this may ask a name server.
            self._names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
        # The cookie that replaces the token and does not contain it.
        self.pass_cookie = self._sign(f"token {self._token}")

    def knows_host(self, host: str) -> bool:
        """Return whether a Host header names this machine, to prevent DNS rebinding."""
        name = host_name(host)
        return name in self._names or (self._is_open and _is_address(name))

    def is_same_site(self, origin: str, fetch_site: str, host: str) -> bool:
        """Return whether a request that changes something comes from this site.

        Browsers always send these headers; other programs do not, and have no cookies
        of visitors.
        """
        if fetch_site and fetch_site not in ("same-origin", "none"):
            return False
        try:
            own = urlsplit(origin).netloc.lower() == host.lower()
        except ValueError:
            return False
        # A proxy may forward another Host than the one that the browser asked for.
        return not origin or own or origin.lower() == self._origin

    def is_token(self, given: str) -> bool:
        """Return whether this is the token, in constant time."""
        return hmac.compare_digest(_digest(given), _digest(self._token))

    async def refresh(self) -> None:
        """Read the people of the store again, if that was not done lately."""
        now = time.monotonic()
        if self.needs_token and now - self._read_at > PEOPLE_LIFETIME:
            self._read_at = now
            # Without the store, those known so far may go on searching.
            with suppress(StoreError):
                self._people = await run_in_threadpool(self._read_people)

    def forget_people(self) -> None:
        """Read the people again at the next request."""
        self._read_at = 0.0

    def person(self, secret: str) -> Person | None:
        """Return the person with a secret."""
        digest = digest_of(secret).encode()
        same = (
            p for p in self._people if hmac.compare_digest(p.digest.encode(), digest)
        )
        return next(same, None)

    def cookie_of(self, person: Person) -> str:
        """Return the cookie that replaces the secret of a person."""
        return self._sign(f"person {person.digest}")

    def admit(self, authorization: str, cookie: str) -> Person | bool:
        """Return who sends a request, or whether it has the token or its cookie."""
        if not self.needs_token:
            return True
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() == "bearer":
            return self.is_token(given.strip()) or self.person(given.strip()) or False
        if hmac.compare_digest(cookie.encode(), self.pass_cookie.encode()):
            return True
        for person in self._people:
            if hmac.compare_digest(cookie.encode(), self.cookie_of(person).encode()):
                return person
        return False

    def form_token(self, session: str) -> str:
        """Return the token that forms of a session must send back."""
        return self._sign(f"form {session}")

    def is_form_token(self, session: str, given: str) -> bool:
        """Return whether a form comes from this server and session."""
        wanted = self.form_token(session)
        return SESSION.fullmatch(session) is not None and hmac.compare_digest(
            given.encode(errors="replace"), wanted.encode()
        )

    def _sign(self, text: str) -> str:
        """Return a signature that only this server can make."""
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()


class Visitor:
    """Somebody with a browser: a session, a name, and the token of their forms."""

    def __init__(self, request: Request, access: Access) -> None:
        cookies = read_cookies(request.headers.get("cookie", ""))
        self.session = cookies.get(SESSION_COOKIE, "")
        self.is_new = SESSION.fullmatch(self.session) is None
        if self.is_new:
            self.session = secrets.token_urlsafe(32)
        self.form_token = access.form_token(self.session)
        # Somebody who was invited has the name of the invitation.
        self.person: Person | None = request.scope.get(PERSON)
        self.is_editor = self.person is None or self.person.role == "editor"
        given = clean_name(unquote(cookies.get(NAME_COOKIE, "")), "")
        given = self.person.name if self.person else given
        self.has_name = bool(given)
        # Two people without a name are two people.
        number = hashlib.sha256(self.session.encode()).hexdigest()[:4]
        self.name = given or f"{NOBODY} {number}"
        self._path = access.root or "/"
        self._is_secure = access.is_secure or request.url.scheme == "https"

    def remember(self, response: Response, **cookies: str) -> Response:
        """Set cookies, and the session cookie, which scripts cannot read."""
        if self.is_new:
            cookies[SESSION_COOKIE] = self.session
        for name, value in cookies.items():
            response.set_cookie(
                name,
                value,
                max_age=A_YEAR,
                path=self._path,
                httponly=True,
                samesite="lax",
                secure=self._is_secure,
            )
        return response

    def rename(self, response: Response, name: str) -> Response:
        """Store a name in a cookie."""
        return self.remember(
            response, **{NAME_COOKIE: quote(clean_name(name), safe="")}
        )


class Buckets:
    """Token buckets: how many requests each address may still make.

    Addresses are hashed into a table of fixed size, which workers may share.
    """

    def __init__(
        self, per_second: float, most: float, *, table: Any = None, key: str = ""
    ) -> None:
        self._rate, self._most, self._key = per_second, most, key.encode()[:64]
        # What was spent, and when that was written: zeros are full buckets.
        self._table = np.zeros((N_BUCKETS, 2)) if table is None else table
        self._lock = threading.Lock()

    def takes(
        self, address: str, cost: float = 1.0, *, is_charged: bool = True
    ) -> bool:
        """Charge an address for a request; return whether it is allowed."""
        name = address.encode(errors="replace")
        digest = hashlib.blake2b(name, key=self._key, digest_size=8).digest()
        row, now = int.from_bytes(digest, "big") % N_BUCKETS, time.monotonic()
        # Workers may write at the same moment; then one request is not counted.
        with self._lock:
            spent, at = self._table[row].tolist()
            spent = max(spent - max(now - at, 0.0) * self._rate, 0.0)
            allowed = spent + cost <= self._most
            self._table[row] = spent + cost if allowed and is_charged else spent, now
        return allowed


def make_limits(folder: Path) -> None:
    """Write the empty table of limits that the workers of a server share."""
    shape = N_TABLES * N_BUCKETS * 2
    write_file(folder, lambda file: file.write(np.zeros(shape).tobytes()), LIMITS)


def _shared_tables(folder: str) -> Any:
    """Return the tables that workers share; None for each if there are none."""
    path = Path(folder) / LIMITS
    if not (folder and path.is_file()):
        return [None] * N_TABLES
    return np.memmap(path, np.float64, "r+", shape=(N_TABLES, N_BUCKETS, 2))


class Guard:
    """Middleware that checks and limits requests, sets headers, and counts answers."""

    def __init__(
        self,
        app: Any,
        *,
        access: Access,
        settings: Settings,
        telemetry: Telemetry,
        answer: Callable[[Request, Refusal], Response],
    ) -> None:
        self.app, self.access, self.telemetry = app, access, telemetry
        rate = settings.requests_per_second
        requests, attempts = _shared_tables(settings.uploads)
        key = settings.secret
        self._requests = Buckets(rate, 10 * rate, table=requests, key=key)
        # To guess the token.
        self._attempts = Buckets(0.2, 10, table=attempts, key=key)
        self._max_upload = settings.max_upload_bytes
        self._answer = answer

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a refused request, or pass it on."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        root = self.access.root
        if root and (scope["path"] + "/").startswith(f"{root}/"):
            # Some proxies strip the path of the page, some do not.
            scope = scope | {"path": scope["path"].removeprefix(root) or "/"}
            scope["raw_path"] = quote(scope["path"]).encode()
        start, status, n_bytes, is_complete = time.perf_counter(), 0, 0, False
        limit = self._max_upload if scope["path"] == "/upload" else MAX_BODY

        async def read() -> Any:
            nonlocal n_bytes, is_complete
            allowed = BODY_SECONDS + n_bytes / SLOWEST_BODY
            left = max(allowed - (time.perf_counter() - start), 0.01)
            try:
                # After the body, the framework waits here for the end of a connection.
                message = await asyncio.wait_for(
                    receive(), None if is_complete else left
                )
            except TimeoutError as error:
                raise HTTPException(
                    408, "the request took too long to send."
                ) from error
            n_bytes += len(message.get("body", b""))
            is_complete = not message.get("more_body", False)
            if n_bytes > limit:
                raise HTTPException(413, _too_large(limit))
            return message

        async def write(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in (HEADERS | {"Cache-Control": "no-store"}).items():
                    headers.setdefault(name, value)
            await send(message)

        await self.access.refresh()
        refusal = self._refusal(scope, Headers(scope=scope), limit)
        try:
            if isinstance(refusal, Refusal):
                refusal = self._answer(Request(scope), refusal)
            await (refusal or self.app)(scope, read, write)
        except Exception:
            log.exception("fault")
            if status:
                raise
            fault = Refusal(500, "an internal error occurred; it is in the log.")
            await self._answer(Request(scope), fault)(scope, read, write)
        finally:
            self._log_answer(scope, status, time.perf_counter() - start)

    def _refusal(
        self, scope: Any, headers: Headers, limit: int
    ) -> Refusal | Response | None:
        """Return why a request is refused or where it is sent, None if it is fine."""
        host, path = headers.get("host", ""), scope["path"]
        if not self.access.knows_host(host):
            return Refusal(421, "this server does not have that host name.")
        address = (scope.get("client") or ("", 0))[0]
        cost = next((c for own, c in COSTS.items() if path.startswith(own)), 1.0)
        if not self._requests.takes(address, cost):
            return Refusal(
                429, "too many requests; wait a moment.", {"Retry-After": "5"}
            )
        if scope["method"] not in METHODS:
            return Refusal(
                405, "this cannot be done here.", {"Allow": ", ".join(METHODS)}
            )
        declared = headers.get("content-length", "0")
        # Python refuses to read a number of thousands of digits.
        if not declared.isdecimal() or len(declared) > 18 or int(declared) > limit:
            return Refusal(413, _too_large(limit))
        if scope["method"] not in READING:
            where = headers.get("origin", ""), headers.get("sec-fetch-site", "")
            if not self.access.is_same_site(*where, host):
                return Refusal(403, "this came from another site.")
            if path == "/enter" and not self._attempts.takes(address):
                return SLOW_DOWN
        cookie = read_cookies(headers.get("cookie", "")).get(PASS_COOKIE, "")
        bearer = headers.get("authorization", "")
        if path.startswith(OPEN_PATHS):
            return None
        # Who has guessed often cannot learn whether the next guess is right.
        if bearer and not self._attempts.takes(address, is_charged=False):
            return SLOW_DOWN
        admitted = self.access.admit(bearer, cookie)
        if admitted:
            scope[PERSON] = admitted if isinstance(admitted, Person) else None
            return None
        if bearer:
            self._attempts.takes(address)
        if scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
            query = scope["query_string"].decode("latin-1")
            back = quote(path + (f"?{query}" if query else ""), safe="")
            enter = f"{self.access.root}/enter?back={back}"
            return RedirectResponse(enter, status_code=303)
        wanted = {"WWW-Authenticate": "Bearer"}
        return Refusal(401, "the token is missing or wrong.", wanted)

    def _log_answer(self, scope: Any, status: int, seconds: float) -> None:
        """Count and log an answer by its route, because a path may contain a query."""
        route = getattr(scope.get("route"), "path", None) or "none"
        method = scope["method"] if scope["method"] in METHODS else "other"
        self.telemetry.request(method, route, status, seconds)
        event = {"method": method, "route": route, "status": status}
        event["milliseconds"] = round(1000 * seconds, 1)
        log.info("request", extra={"event": event})


def clean_name(name: str, default: str = NOBODY) -> str:
    """Return a name in one short line."""
    plain = "".join(c if c.isprintable() else " " for c in name)
    return " ".join(plain.split())[:MAX_NAME] or default


def read_cookies(header: str) -> dict[str, str]:
    """Return the cookies of a header, none for an invalid one."""
    try:
        return {name: own.value for name, own in SimpleCookie(header).items()}
    except CookieError:
        return {}


def host_name(host: str) -> str | None:
    """Return the name of a Host header without its port, None for an invalid one."""
    try:
        parts = urlsplit(f"//{host}")
        # Reading the port checks that it is one.
        is_plain = parts.port is None or parts.port >= 0
    except ValueError:
        return None
    is_plain = is_plain and not (parts.path or parts.query or parts.username)
    return parts.hostname if is_plain and parts.hostname else None


def _is_address(name: str | None) -> bool:
    """Return whether a name is an IP address."""
    try:
        ipaddress.ip_address(name or "")
    except ValueError:
        return False
    return True


def _digest(text: str) -> bytes:
    """Return a hash of a text, of fixed length."""
    return hashlib.sha256(text.encode(errors="replace")).digest()


def _too_large(limit: int) -> str:
    """Return the message on a request that is too large."""
    return f"a request must have at most {limit:,} bytes."

"""Who may ask: names of the machine, tokens, sessions, and how often."""

import hashlib
import hmac
import ipaddress
import re
import secrets
import socket
import threading
import time
from collections import OrderedDict
from urllib.parse import urlsplit

from linkspread.web.settings import Settings, is_loopback

LOCAL_NAMES = {"localhost", "127.0.0.1", "::1"}
SESSION = re.compile(r"[A-Za-z0-9_-]{43}")
MAX_ADDRESSES = 10_000


class Access:
    """Tells who may see a page and who may change anything."""

    def __init__(self, settings: Settings) -> None:
        self._token = settings.token
        self._secret = settings.secret.encode()
        self._host = settings.host.strip("[]").lower()

    @property
    def needs_token(self) -> bool:
        """Whether a token must be shown."""
        return bool(self._token)

    def is_called_right(self, host: str) -> bool:
        """Tell whether a Host header names this machine.

        A page elsewhere whose name is made to lead to this address, by a server of
        names that its owner runs, would otherwise read everything here.
        """
        name = host_name(host)
        if name is None:
            return False
        if name in LOCAL_NAMES or name == self._host:
            return True
        if is_loopback(self._host):
            return False
        return _is_address(name) or name in {socket.gethostname().lower(), _full_name()}

    def is_token(self, given: str) -> bool:
        """Tell whether this is the token, in a time that does not depend on it."""
        return hmac.compare_digest(_digest(given), _digest(self._token))

    def is_admitted(self, authorization: str, cookie: str) -> bool:
        """Tell whether a request shows the token, or what it was exchanged for."""
        if not self.needs_token:
            return True
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() == "bearer" and self.is_token(given.strip()):
            return True
        return hmac.compare_digest(cookie.encode(), self.pass_of_token().encode())

    def pass_of_token(self) -> str:
        """Return the cookie of those who knew the token, which does not tell it."""
        return self._sign(f"token {self._token}")

    def new_session(self) -> str:
        """Return the name of a new session."""
        return secrets.token_urlsafe(32)

    def is_session(self, given: str) -> bool:
        """Tell whether a cookie can be the name of a session."""
        return SESSION.fullmatch(given) is not None

    def form_token(self, session: str) -> str:
        """Return what forms of a session must send back."""
        return self._sign(f"form {session}")

    def is_form_token(self, session: str, given: str) -> bool:
        """Tell whether a form is one of ours, of this session."""
        wanted = self.form_token(session)
        return self.is_session(session) and hmac.compare_digest(
            given.encode(errors="replace"), wanted.encode()
        )

    def _sign(self, text: str) -> str:
        """Return a signature that only this server can make."""
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()


class Buckets:
    """How much each address may still ask."""

    def __init__(self, per_second: float, most: float) -> None:
        self._rate, self._most = per_second, most
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def takes(self, address: str, cost: float = 1.0) -> bool:
        """Take from what an address may ask; tell whether there was enough."""
        now = time.monotonic()
        with self._lock:
            left, at = self._left.pop(address, (self._most, now))
            left = min(self._most, left + (now - at) * self._rate)
            allowed = left >= cost
            self._left[address] = (left - cost if allowed else left, now)
            if len(self._left) > MAX_ADDRESSES:
                self._left.popitem(last=False)
        return allowed


def host_name(host: str) -> str | None:
    """Return the name of a Host header without its port; None for what is none."""
    try:
        parts = urlsplit(f"//{host}")
        # Reading the port checks that it is one.
        is_plain = parts.port is None or parts.port >= 0
        is_plain = is_plain and not (parts.path or parts.query or parts.username)
    except ValueError:
        return None
    return parts.hostname if is_plain and parts.hostname else None


def is_same_site(origin: str, fetch_site: str, host: str) -> bool:
    """Tell whether a page of ours made a request that changes something.

    Browsers always say so; programs that are no browsers say nothing, and have no
    cookies of anybody.
    """
    if fetch_site and fetch_site not in ("same-origin", "none"):
        return False
    return not origin or urlsplit(origin).netloc.lower() == host.lower()


def _digest(text: str) -> bytes:
    """Return a text at one length, whatever it was."""
    return hashlib.sha256(text.encode(errors="replace")).digest()


def _is_address(name: str) -> bool:
    """Tell whether a name is an address in numbers."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _full_name() -> str:
    """Return the full name of this machine."""
    return socket.getfqdn().lower()

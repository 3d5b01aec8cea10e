"""How a page is served: where, to whom, and how much of anything is allowed."""

import ipaddress
import json
import secrets
from dataclasses import asdict, dataclass, field


def new_secret() -> str:
    """Return a secret that nobody can guess."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Settings:
    """How a page is served."""

    title: str = "linkspread"
    host: str = "127.0.0.1"
    token: str = field(default="", repr=False)
    uploads: str = ""
    max_upload_bytes: int = 8_000_000
    max_upload_pixels: int = 40_000_000
    requests_per_second: float = 60.0
    secret: str = field(default_factory=new_secret, repr=False)

    def to_json(self) -> str:
        """Return all settings as text, for a process that is started."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Settings":
        """Read settings."""
        return cls(**json.loads(text))


def is_loopback(host: str) -> bool:
    """Tell whether an address can be reached from this machine only."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"

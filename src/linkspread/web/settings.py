"""How a page is served: where, to whom, and how much of anything is allowed."""

import ipaddress
import json
import secrets
from dataclasses import asdict, dataclass, field

__all__ = ["Settings", "is_loopback"]


def new_secret() -> str:
    """Return a secret that nobody can guess."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Settings:
    """How a page is served.

    Parameters
    ----------
    title : str, default="linkspread"
        Stands on every page.
    host : str, default="127.0.0.1"
        Address that is listened on; names by which the page may be called follow.
    token : str, default=""
        What people must know to see anything; "" for a page of this machine only.
    uploads : str, default=""
        Folder for pictures that people search with; "" refuses them.
    max_upload_bytes : int, default=8000000
    max_upload_pixels : int, default=40000000
    requests_per_second : float, default=60.0
        Of one address, for each worker; ten seconds' worth may come at once.
    secret : str, default=<factory>
        Signs what pages send back. All workers must share one.
    """

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
        """Read settings.

        Parameters
        ----------
        text : str

        Returns
        -------
        settings : Settings
        """
        return cls(**json.loads(text))


def is_loopback(host: str) -> bool:
    """Tell whether an address can be reached from this machine only."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"

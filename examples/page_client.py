"""
A client of the page
====================

A typed client of the page's JSON API in a hundred lines, without other packages.

Serve a model (`linkspread serve model`), then:

    python examples/page_client.py http://127.0.0.1:8000 "green hills"
"""

import json
import sys
import uuid
from dataclasses import dataclass
from typing import Any, Literal
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

Verdict = Literal["must", "cannot", "unsure"]


class Refused(Exception):
    """The server refuses a request; the message is its sentence."""


@dataclass(frozen=True)
class Result:
    """One result of a search."""

    id: str
    rank: int
    score: float
    strength: float
    title: str
    picture: str | None


@dataclass(frozen=True)
class Pair:
    """A pair to judge."""

    source: str
    left: str
    target: str
    right: str
    gain: float


class Client:
    """Search and judge through a page.

    Parameters
    ----------
    address : str
        Such as "https://photos.example.org/search".
    token : str, default=""
        The token of the page or of a person.
    who : str, default="robot"
        The name that judgements are stored under.
    """

    def __init__(self, address: str, *, token: str = "", who: str = "robot") -> None:
        self.address, self.token, self.who = address.rstrip("/"), token, who

    def directions(self) -> list[tuple[str, str]]:
        """Return pairs of views that can be searched, the most useful first."""
        return [(a, b) for a, b in self._call("/api/views")["directions"]]

    def search(
        self, q: str = "", *, item: str = "", source: str, target: str, n: int = 10
    ) -> list[Result]:
        """Search by words or by an item, the best result first."""
        about = {"q": q, "item": item, "source": source, "target": target, "n": n}
        found = self._call(f"/api/search?{urlencode(about)}")["results"]
        return [Result(**own) for own in found]

    def judge(
        self,
        left: tuple[str, str],
        right: tuple[str, str],
        verdict: Verdict,
        *,
        note: str = "",
        key: str = "",
    ) -> str:
        """Store a judgement of two items, each a view and an id; return its id.

        After a lost connection call it again with the same `key`: it counts once.
        """
        body = {"source": left[0], "source_id": left[1], "verdict": verdict}
        body |= {"target": right[0], "target_id": right[1], "note": note}
        body |= {"who": self.who, "key": key or str(uuid.uuid4())}
        return self._call("/api/judgements", body)["id"]

    def undo(self, id: str) -> None:
        """Take a judgement back."""
        self._call(f"/api/judgements/{id}/undo", {"who": self.who})

    def suggestions(self, source: str, target: str) -> list[Pair]:
        """Return pairs whose judgement would help most."""
        about = {"source": source, "target": target, "who": self.who}
        found = self._call(f"/api/suggestions?{urlencode(about)}")["pairs"]
        return [Pair(source=source, target=target, **own) for own in found]

    def _call(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Return the answer to a request."""
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        try:
            with urlopen(Request(self.address + path, data, headers)) as answer:
                return json.load(answer)
        except HTTPError as error:
            raise Refused(json.load(error)["error"]) from None


if __name__ == "__main__":
    client = Client(sys.argv[1])
    source, target = client.directions()[0]
    for result in client.search(sys.argv[2], source=source, target=target):
        print(f"{result.rank:3} {result.strength:4.0%} {result.id} {result.title}")

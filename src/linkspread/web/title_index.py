"""Items found by letters of their titles, to pick one to search with."""

from bisect import bisect_right
from collections.abc import Iterator

from linkspread.web.contents import Contents

# Titles that are looked at for one question.
MAX_LOOKS = 2000


class TitleIndex:
    """Titles and ids of one view, in one long text that is searched at once."""

    def __init__(self, contents: Contents, view: str) -> None:
        ids = contents.items[view].ids
        parts, offset = [], 0
        self._starts: list[int] = []
        for position, id in enumerate(ids):
            own = f"{contents.title(view, position)}\t{id}".lower().replace("\n", " ")
            self._starts.append(offset)
            parts.append(own)
            offset += len(own) + 1
        self._text = "\n".join(parts)

    def exact(self, words: str) -> int | None:
        """Return the item with just this title or id, None for none or several."""
        words = _plain(words)
        found = [k for k in self._places(words) if words in self._title(k).split("\t")]
        return found[0] if len(found) == 1 else None

    def find(self, words: str, n: int) -> list[int]:
        """Return items whose titles have all of these words, in their order."""
        parts = _plain(words).split()
        if not parts:
            return []
        found: list[int] = []
        for position in self._places(max(parts, key=len)):
            title = self._title(position)
            if all(part in title for part in parts):
                found.append(position)
            if len(found) == n:
                break
        return found

    def _places(self, letters: str) -> Iterator[int]:
        """Yield the items whose title has these letters."""
        start, n_looks = 0, 0
        while letters and n_looks < MAX_LOOKS:
            start = self._text.find(letters, start)
            if start < 0:
                return
            position = bisect_right(self._starts, start) - 1
            yield position
            n_looks += 1
            start = self._starts[position] + len(self._title(position)) + 1

    def _title(self, position: int) -> str:
        """Return the title and the id of an item, with a tab between them."""
        start = self._starts[position]
        end = self._text.find("\n", start)
        return self._text[start:] if end < 0 else self._text[start:end]


def _plain(words: str) -> str:
    """Return words as they stand in the text."""
    return " ".join(words.lower().split())

"""A first look at all items of a view: their hashes, and which cannot be read."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from linkspread.ground.progress import track
from linkspread.manifests.collection import ViewItems
from linkspread.manifests.contents import Problem, Seen, UnreadableContent, look_at

# Files that are handed to the threads together.
N_TOGETHER = 1024


@dataclass
class Survey:
    """Hold which items of a view can be read so far, and what is wrong with others."""

    view: str
    items: ViewItems
    seen: dict[int, Seen] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def leave_out(self, place: int, error: Exception) -> None:
        """Note why an item cannot be read, and forget it."""
        kind = str(getattr(error, "kind", "unreadable"))
        sentence = " ".join(str(error).split())
        name = str(self.items.ids[place])
        self.problems.append(Problem(name, self.view, kind, sentence))
        self.seen.pop(place, None)

    def contents(self) -> Iterator[Any]:
        """Yield the contents of the items that can be read."""
        return (self.items.contents[place] for place in self.seen)


def survey_view(
    view: str, items: ViewItems, *, n_threads: int = 1, verbose: bool = False
) -> Survey:
    """Hash the contents of a view, a few files at a time."""
    survey = Survey(view, items)

    def look(place: int) -> Seen | UnreadableContent:
        try:
            return look_at(items.contents[place], items.kind)
        except UnreadableContent as error:
            return error
        except OSError as error:  # a disk that fails in the middle of a file
            name = items.ids[place]
            message = f"{name!r} must be readable, got {error!s:.80}. Copy it again."
            return UnreadableContent(message)

    with ThreadPoolExecutor(n_threads) as pool:
        n, label = len(items.ids), f"{view}: reading"
        # A few at a time: a future of each of a million files would take a gigabyte.
        starts = range(0, n, N_TOGETHER)
        parts = (range(start, min(start + N_TOGETHER, n)) for start in starts)
        found = (own for part in parts for own in pool.map(look, part))
        for place, own in enumerate(
            track(found, total=n, label=label, verbose=verbose)
        ):
            if isinstance(own, Seen):
                survey.seen[place] = own
            else:
                survey.leave_out(place, own)
    return survey

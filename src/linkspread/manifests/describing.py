"""Rows of the items of a view, from the cache or from the transformer."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.ground.errors import UnreadablePicture
from linkspread.ground.progress import track
from linkspread.manifests.cache import RowCache
from linkspread.manifests.contents import UnreadableContent, read_text, unchanged
from linkspread.manifests.learning import leave_out
from linkspread.manifests.packed_texts import PackedTexts
from linkspread.manifests.row_files import RowFile, TextFile, pack_rows
from linkspread.manifests.states import fingerprint
from linkspread.manifests.survey import Survey

# Items whose rows are made together, and kept in the cache together. Texts are many
# and small, and a transformer of texts has its vocabulary to look up for each call.
BATCH = {"picture": 64, "text": 2048}
# Letters of a text that are kept to be shown.
MAX_SHOWN = 2000


class DescribedView:
    """Hold the rows of a view, and the items they are of."""

    def __init__(self, rows: Any, places: np.ndarray, contents: PackedTexts) -> None:
        self.rows = rows
        self.places = places
        self.contents = contents


def describe_view(
    transformer: Any,
    survey: Survey,
    cache: RowCache | None,
    *,
    root: Path,
    folder: Path | None = None,
    verbose: bool = False,
) -> DescribedView | None:
    """Return the rows of the items that can be read, or None where there are none."""
    made_by = fingerprint(transformer) if cache is not None else b""
    label, items = f"{survey.view}: features", survey.items
    batches = list(_batches(list(survey.seen), BATCH[items.kind]))
    places: list[int] = []
    with RowFile(folder) as rows, TextFile(folder) as texts:
        for batch in track(batches, total=len(batches), label=label, verbose=verbose):
            found = _rows_of(batch, transformer, survey, cache, made_by)
            for place in (place for place in batch if place in found):
                rows.append(found[place])
                texts.append(_shown(items.contents[place], items.kind, root))
                places.append(place)
        if not places:
            return None
        return DescribedView(rows.finish(), np.array(places), texts.finish())


def _batches(places: list[int], size: int) -> Iterator[list[int]]:
    """Yield a few positions at a time."""
    for start in range(0, len(places), size):
        yield places[start : start + size]


def _rows_of(
    batch: list[int],
    transformer: Any,
    survey: Survey,
    cache: RowCache | None,
    made_by: bytes,
) -> dict[int, bytes]:
    """Return the row of each item of a batch that can be read."""
    keys = {
        place: hashlib.sha256(made_by + survey.seen[place].digest).digest()
        for place in batch
    }
    known = cache.get(keys.values()) if cache is not None else {}
    missing = [place for place in batch if keys[place] not in known]
    made = _make_rows(missing, transformer, survey, cache)
    for place in [place for place in made if _has_changed(place, survey)]:
        del made[place]
    if cache is not None:
        cache.put({keys[place]: row for place, row in made.items()})
    return made | {p: known[keys[p]] for p in batch if keys[p] in known}


def _make_rows(
    places: list[int], transformer: Any, survey: Survey, cache: RowCache | None
) -> dict[int, bytes]:
    """Return rows of items; where one of them fails, each is tried by itself."""
    if not places:
        return {}
    try:
        contents = [_content(survey, place) for place in places]
        rows = pack_rows(transformer.transform(contents))
        return dict(zip(places, rows, strict=True))
    except (UnreadablePicture, UnreadableContent, OSError) as error:
        if len(places) == 1:
            leave_out(places[0], error, survey, cache)
            return {}
    made: dict[int, bytes] = {}
    for place in places:
        made |= _make_rows([place], transformer, survey, cache)
    return made


def _content(survey: Survey, place: int) -> Any:
    """Return what a transformer takes of an item."""
    content = survey.items.contents[place]
    return content if survey.items.kind == "picture" else read_text(content)


def _has_changed(place: int, survey: Survey) -> bool:
    """Leave out an item that is no longer what its hash is of."""
    content = survey.items.contents[place]
    if unchanged(content, survey.seen[place]):
        return False
    message = (
        f"{content.name!r} must stay as it is, and was changed meanwhile. Run again."
    )
    survey.leave_out(place, UnreadableContent(message, "changed"))
    return True


def _shown(content: Any, kind: str, root: Path) -> str:
    """Return what stands for an item: the beginning of a text, or a path."""
    if kind == "text":
        return read_text(content)[:MAX_SHOWN]
    path = content.absolute()
    base = root.absolute()
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else str(path)

"""What a transformer learns from a collection, learnt once.

A vocabulary is learnt from all texts, a codebook from a sample of the pictures. The
sample is drawn by the hashes of the contents, so that files that cannot be read make no
difference to it.
"""

import hashlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sklearn.base import clone

from linkspread.features import read_picture
from linkspread.ground.errors import UnreadablePicture
from linkspread.ground.progress import announce
from linkspread.manifests.cache import RowCache
from linkspread.manifests.contents import read_text
from linkspread.manifests.states import (
    is_fitted,
    make_transformer,
    pack_blob,
    recipe,
    take_state,
    unpack_blob,
    with_manners,
)
from linkspread.manifests.survey import Survey

# Pictures that are learnt from; more do not make a better codebook.
N_LEARNT = 1000
# Pictures that are tried together when some of a sample cannot be read.
N_TRIED = 32


def learn(
    transformer: Any,
    survey: Survey,
    cache: RowCache | None,
    *,
    n_threads: int = 1,
    verbose: bool = False,
) -> Any:
    """Return a fitted transformer: as it was given, from the cache, or fitted now."""
    if is_fitted(transformer):
        return transformer
    if survey.items.kind == "text":
        return _learn_from(transformer, survey, list(survey.seen), cache, verbose)
    drawn = sorted(survey.seen, key=lambda place: _order(survey, place))
    drawn = _without_known(survey, drawn, cache, n_threads)
    try:
        return _learn_from(transformer, survey, drawn[:N_LEARNT], cache, verbose)
    except UnreadablePicture:
        # Decoding all beforehand would cost every clean collection as much again.
        sample = _readable(survey, drawn, cache, n_threads)
        return _learn_from(transformer, survey, sample, cache, verbose)


def _learn_from(
    transformer: Any,
    survey: Survey,
    places: list[int],
    cache: RowCache | None,
    verbose: bool,
) -> Any:
    """Return a transformer fitted to items, or one that was fitted to them before."""
    if not places:
        return None
    # In the order of the collection: what is learnt from all is what `fit` learns.
    places = sorted(places)
    key = _learning_key(transformer, survey, places)
    found = _from_cache(cache, key)
    if found is None:
        announce(f"{survey.view}: learning from {len(places):,} items", verbose=verbose)
        found = _fit(clone(transformer), survey, places)
        if cache is not None and hasattr(found, "get_state"):
            cache.put({key: pack_blob(take_state(found))})
    return with_manners(found, transformer)


def _fit(transformer: Any, survey: Survey, places: list[int]) -> Any:
    """Fit a transformer to items, of which texts are read one after the other."""
    contents = [survey.items.contents[place] for place in places]
    if survey.items.kind == "text":
        return transformer.fit(read_text(content) for content in contents)
    return transformer.fit(contents)


def _order(survey: Survey, place: int) -> bytes:
    """Return a number by which pictures are drawn, whichever others there are."""
    return hashlib.sha256(b"sample" + survey.seen[place].digest).digest()


def _unreadable_key(survey: Survey, place: int) -> bytes:
    """Return the key under which a picture is known to be unreadable."""
    return hashlib.sha256(b"unreadable" + survey.seen[place].digest).digest()


def _without_known(
    survey: Survey, places: list[int], cache: RowCache | None, n_threads: int
) -> list[int]:
    """Return pictures without those that could not be read in an earlier run."""
    if cache is None:
        return places
    keys = {place: _unreadable_key(survey, place) for place in places}
    known = cache.get(keys.values())
    _try([place for place in places if keys[place] in known], survey, cache, n_threads)
    return [place for place in places if place in survey.seen]


def _readable(
    survey: Survey, places: list[int], cache: RowCache | None, n_threads: int
) -> list[int]:
    """Return the first pictures that can be decoded; others on the way are left out."""
    found: list[int] = []
    for start in range(0, len(places), N_TRIED):
        part = places[start : start + N_TRIED]
        _try(part, survey, cache, n_threads)
        found += [place for place in part if place in survey.seen]
        if len(found) >= N_LEARNT:
            break
    return found[:N_LEARNT]


def _try(
    places: Iterable[int], survey: Survey, cache: RowCache | None, n_threads: int
) -> None:
    """Decode pictures, and leave out those that cannot be."""

    def decode(place: int) -> UnreadablePicture | None:
        try:
            read_picture(survey.items.contents[place])
        except UnreadablePicture as error:
            return error
        return None

    places = list(places)
    with ThreadPoolExecutor(n_threads) as pool:
        for place, error in zip(places, pool.map(decode, places), strict=True):
            if error is not None:
                leave_out(place, error, survey, cache)


def leave_out(
    place: int, error: Exception, survey: Survey, cache: RowCache | None
) -> None:
    """Leave out an item, and remember that the like of it cannot be read."""
    key = _unreadable_key(survey, place)
    survey.leave_out(place, error)
    if cache is not None and isinstance(error, UnreadablePicture):
        cache.put({key: b"unreadable"})


def _learning_key(transformer: Any, survey: Survey, places: list[int]) -> bytes:
    """Return the key of what a transformer learns from these contents."""
    found = hashlib.sha256(b"learnt" + recipe(transformer).encode())
    for place in places:
        found.update(survey.seen[place].digest)
    return found.digest()


def _from_cache(cache: RowCache | None, key: bytes) -> Any:
    """Return a transformer that learnt the same before, or None."""
    blob = cache.get([key]).get(key) if cache is not None else None
    return None if blob is None else make_transformer(unpack_blob(blob))

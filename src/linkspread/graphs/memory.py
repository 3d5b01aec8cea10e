"""A cache of what was computed from a table, within a context."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import numpy as np
from scipy import sparse

Made = TypeVar("Made")

# Table, key and cached value.
_CACHE: ContextVar[list[tuple[Any, Any, Any]] | None] = ContextVar(
    "cache of tables", default=None
)


@contextmanager
def cache_tables() -> Iterator[None]:
    """Build no graph, search no neighbours and prepare no rows twice in this context.

    Graphs that depend on links are built each time, but their neighbours are searched
    once. Within another such context, its cache is used.
    """
    if is_caching():
        yield
        return
    token = _CACHE.set([])
    try:
        yield
    finally:
        _CACHE.reset(token)


def is_caching() -> bool:
    """Return whether `cached` keeps what it makes."""
    return _CACHE.get() is not None


def cached(X: Any, key: Any, make: Callable[[], Made]) -> Made:
    """Return what was made of a table, made now if it is not in the cache."""
    cache = _CACHE.get()
    if cache is None:
        return make()
    for table, other, made in cache:
        if key == other and same_table(table, X):
            return made
    made = make()
    cache.append((X, key, made))
    return made


def same_table(one: Any, other: Any) -> bool:
    """Return whether two tables are one, or two arrays over the same memory."""
    if one is other:
        return True
    if type(one) is not type(other) or np.shape(one) != np.shape(other):
        return False
    parts = [part.data if sparse.issparse(part) else part for part in (one, other)]
    if not all(isinstance(part, np.ndarray) for part in parts):
        return False
    first, second = (part.__array_interface__ for part in parts)
    return all(first[key] == second[key] for key in ("data", "strides", "typestr"))

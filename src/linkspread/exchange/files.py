"""Files of exports, read with one sentence if damaged."""

from collections.abc import Iterator
from contextlib import contextmanager

from linkspread.ground.errors import LinkspreadError, MissingDependencyError
from linkspread.storage.files import FilePath


@contextmanager
def reading(path: FilePath, *, what: str, writer: str) -> Iterator[None]:
    """Turn all that a missing, damaged or foreign file can cause into a sentence."""
    try:
        yield
    except MissingDependencyError:
        raise
    except FileNotFoundError as error:
        raise LinkspreadError(
            f"`path` must be {what}, but {str(path)!r} is no file. Correct the path."
        ) from error
    except Exception as error:  # damaged bytes can fail anywhere in a reader
        reason = str(error).partition("\n")[0][:120].rstrip(".") or type(error).__name__
        raise LinkspreadError(
            f"`path` must be {what} written by `{writer}`, and {str(path)!r} cannot be "
            f"read as one ({reason}). Export it anew."
        ) from error

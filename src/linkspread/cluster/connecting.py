"""A client of a scheduler that runs already."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from linkspread.ground.errors import LinkspreadError, require

TIMEOUT = "10s"


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """Connect to a Dask scheduler, and leave it running in the end.

    Parameters
    ----------
    address : str
        Such as "tcp://10.0.0.1:8786".

    Yields
    ------
    client : distributed.Client
    """
    distributed = require("distributed", extra="dask", purpose="a fit on a cluster")
    try:
        client = distributed.Client(address, timeout=TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise LinkspreadError(
            f"`scheduler` must be the address of a Dask scheduler that runs, got "
            f"{address!r} ({error!s:.80}). Start one with `dask scheduler`, and "
            "workers with `dask worker`."
        ) from error
    with client:
        yield client

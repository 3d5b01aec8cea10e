"""Whether something can be written, asked before anything is computed."""

import os
import tempfile
from pathlib import Path

from linkspread.ground.errors import LinkspreadError


def check_writable(path: Path) -> None:
    """Refuse a file or folder that could not be written, by trying beside it."""
    place = path.absolute()
    try:
        if not place.is_dir():
            place = place.parent
        while not place.exists():
            place = place.parent
        os.rmdir(tempfile.mkdtemp(prefix=".linkspread-", dir=place))
    except OSError as error:
        raise LinkspreadError(
            f"`--output` must be where files can be written, and {str(place)!r} "
            f"takes none: {error.strerror}. Give another path."
        ) from error

"""Pictures that people search with: checked, made small, kept for a while.

Workers share one folder. A picture is named by what it holds, and what is kept was
written by us, so that nothing of a stranger's file is ever served.
"""

import hashlib
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from linkspread.features import read_picture
from linkspread.features.pictures import open_picture_file
from linkspread.ground.errors import LinkspreadError
from linkspread.web.contents import to_png

N_KEPT = 200
SIDE = 1024
NAME = re.compile(r"[0-9a-f]{32}")


class Uploads:
    """A folder of pictures."""

    def __init__(self, folder: str | Path, *, max_pixels: int) -> None:
        self.folder = Path(folder)
        self.max_pixels = max_pixels

    def keep(self, data: bytes) -> str:
        """Keep a picture; return its name."""
        name = hashlib.sha256(data).hexdigest()[:32]
        if not self._path(name).exists():
            self._write(name, to_png(self._read(data), SIDE))
            self._forget_old()
        return name

    def bytes_of(self, name: str) -> bytes:
        """Return a picture as PNG."""
        try:
            if NAME.fullmatch(name):
                return self._path(name).read_bytes()
        except OSError:
            pass
        raise LinkspreadError(
            "a picture must have been sent a short while ago, and this one is no "
            "longer here. Send it again."
        )

    def open(self, name: str) -> Any:
        """Return a picture."""
        self.bytes_of(name)
        return read_picture(self._path(name))[0]

    def _read(self, data: bytes) -> Any:
        """Decode what a stranger sent, by what it holds."""
        with tempfile.NamedTemporaryFile(dir=self.folder, suffix=".new") as file:
            file.write(data)
            file.flush()
            with open_picture_file(file.name, "the picture") as opened:
                width, height = opened.size
            if width * height > self.max_pixels:
                raise LinkspreadError(
                    f"the picture must have at most {self.max_pixels:,} pixels, got "
                    f"{width:,} x {height:,}. Make it smaller."
                )
            return _decode(file.name)

    def _write(self, name: str, picture: bytes) -> None:
        """Write a picture in one step, as others may be reading."""
        with tempfile.NamedTemporaryFile(dir=self.folder, delete=False) as file:
            file.write(picture)
        os.replace(file.name, self._path(name))

    def _forget_old(self) -> None:
        """Remove all but the newest pictures."""
        found = sorted(self.folder.glob("*.png"), key=_age)
        for path in found[:-N_KEPT]:
            path.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        """Return where a picture lies."""
        return self.folder / f"{name}.png"


def _decode(path: str) -> Any:
    """Return the picture in a file, without naming the file in errors."""
    try:
        return read_picture(path)[0]
    except LinkspreadError as error:
        sentence = str(error).replace(path, "the picture")
        raise LinkspreadError(sentence) from error


def _age(path: Path) -> float:
    """Return when a picture was written; one that is gone is the oldest."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0

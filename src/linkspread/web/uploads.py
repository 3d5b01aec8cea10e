"""Caches of pictures: pictures of items in memory, uploaded ones on the disk.

Workers share one folder of uploads. A picture is named by its content and encoded
again, so that no received file is ever served.
"""

import hashlib
import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from linkspread.features.pictures import open_picture_file, read_picture
from linkspread.ground.errors import LinkspreadError
from linkspread.storage.files import temporary_file, write_file
from linkspread.web.contents import to_png

N_KEPT = 200
SIDE = 1024
NAME = re.compile(r"[0-9a-f]{32}")


class PictureCache:
    """The latest pictures, as PNG."""

    def __init__(self, max_bytes: int = 64_000_000) -> None:
        self.max_bytes = max_bytes
        self._kept: OrderedDict[tuple[Any, ...], bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: tuple[Any, ...], make: Callable[[], bytes]) -> bytes:
        """Return a picture from the cache, or make it."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        picture = make()
        with self._lock:
            self._size += len(picture) - len(self._kept.get(key, b""))
            self._kept[key] = picture
            while self._size > self.max_bytes:
                self._size -= len(self._kept.popitem(last=False)[1])
        return picture


class Uploads:
    """A folder of uploaded pictures; the oldest are deleted."""

    def __init__(self, folder: str | Path, *, max_pixels: int) -> None:
        self.folder, self.max_pixels = Path(folder), max_pixels

    def keep(self, data: bytes) -> str:
        """Store a picture; return its name."""
        name = hashlib.sha256(data).hexdigest()[:32]
        if not self._path(name).exists():
            picture = to_png(self._decode(data), SIDE)
            write_file(self.folder, lambda file: file.write(picture), f"{name}.png")
            for path in sorted(self.folder.glob("*.png"), key=_age)[:-N_KEPT]:
                path.unlink(missing_ok=True)
        return name

    def read(self, name: str) -> bytes:
        """Return a picture as PNG."""
        with suppress(OSError):
            if NAME.fullmatch(name):
                return self._path(name).read_bytes()
        raise LinkspreadError(
            "an uploaded picture is kept for a short time, and this one was deleted. "
            "Upload it again."
        )

    def open(self, name: str) -> Any:
        """Return a picture, decoded."""
        self.read(name)
        return read_picture(self._path(name))

    def _decode(self, data: bytes) -> Any:
        """Decode an upload by its content; errors do not name the file."""
        with temporary_file(self.folder) as file:
            file.write_bytes(data)
            with open_picture_file(file, "the picture") as opened:
                width, height = opened.size
            if width * height > self.max_pixels:
                raise LinkspreadError(
                    f"the picture must have at most {self.max_pixels:,} pixels, got "
                    f"{width:,} x {height:,}. Make it smaller."
                )
            try:
                return read_picture(file)
            except LinkspreadError as error:
                sentence = str(error).replace(str(file), "the picture")
                raise LinkspreadError(sentence) from error

    def _path(self, name: str) -> Path:
        """Return the path of a picture."""
        return self.folder / f"{name}.png"


def _age(path: Path) -> float:
    """Return when a picture was written, 0 for a deleted one."""
    with suppress(OSError):
        return path.stat().st_mtime
    return 0.0

"""Where the files of a collection may lie: within its folder, unless allowed."""

import os
from pathlib import Path

from linkspread.ground.errors import LinkspreadError

# Also of formats that cannot be read, so that their files are told of and not skipped.
PICTURE_SUFFIXES = frozenset(
    (
        *(".avif", ".bmp", ".dib", ".gif", ".heic", ".heif", ".j2k", ".jfif", ".jp2"),
        *(".jpe", ".jpeg", ".jpg", ".jpx", ".jxl", ".pbm", ".pgm", ".png", ".pnm"),
        *(".ppm", ".tif", ".tiff", ".webp"),
    )
)


def is_picture_name(name: str) -> bool:
    """Tell whether a file is called as pictures are."""
    return os.path.splitext(name)[1].lower() in PICTURE_SUFFIXES


class Places:
    """Turn names of files into paths, and refuse those that lead outside."""

    def __init__(self, root: Path, *, allow_outside: bool = False) -> None:
        self.root = root
        self._allowed = allow_outside
        self._real_root = os.path.realpath(root)
        # Files of a collection share a few folders: looking up each once is enough.
        self._real_folders: dict[str, str] = {}

    def path(self, name: str) -> Path:
        """Return the path of a file of the collection, whether it is there or not."""
        path = self.root / name
        if not self._allowed and ("\0" in name or not self._is_within(path)):
            raise LinkspreadError(
                f"files of a collection must lie in its folder {str(self.root)!r}, got "
                f"{name!r:.120}, which leads outside. Move it there, or allow it with "
                "`allow_outside=True` (--allow-outside)."
            )
        return path

    def _is_within(self, path: Path) -> bool:
        """Tell whether a path ends up in the folder, all links followed."""
        folder, name = os.path.split(path)
        if folder not in self._real_folders:
            self._real_folders[folder] = os.path.realpath(folder)
        real = os.path.join(self._real_folders[folder], name)
        if name in ("", ".", "..") or os.path.islink(real):
            real = os.path.realpath(path)
        return real.startswith(os.path.join(self._real_root, ""))

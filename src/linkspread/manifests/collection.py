"""A collection of files and texts; their content is not read here."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.ground.errors import LinkspreadError, ViewError

KINDS = ("picture", "text")
# With formats that cannot be read, so that their files are reported as problems.
_PICTURE_SUFFIXES = frozenset(
    ".avif .bmp .dib .gif .heic .heif .j2k .jfif .jp2 .jpe .jpeg .jpg .jpx .jxl .pbm "
    ".pgm .png .pnm .ppm .tif .tiff .webp".split()
)


@dataclass(frozen=True, eq=False, repr=False)
class ViewItems:
    """The items of one view, read on demand.

    Parameters
    ----------
    kind : {"picture", "text"}
    ids : ndarray of str of shape (n_items,)
        Unique within the view.
    contents : sequence of Path or str of length n_items
        Files of pictures; files of texts, or the texts themselves.
    labels : ndarray of str of shape (n_items,), default=None
        Class of each item, "" where it is unknown; None where no item has one.

    Examples
    --------
    >>> import numpy as np
    >>> from linkspread.manifests import ViewItems
    >>> ViewItems("text", np.array(["a", "b"]), ["one fish", "two fish"])
    ViewItems(2 texts)
    """

    kind: str
    ids: np.ndarray
    contents: Sequence[Any]
    labels: np.ndarray | None = None

    def __post_init__(self) -> None:
        n_labels = len(self.ids) if self.labels is None else len(self.labels)
        sizes = {len(self.ids), len(self.contents), n_labels}
        if self.kind not in KINDS or len(sizes) > 1:
            raise ViewError(
                "a view must be of pictures or texts with an id and a label for each, "
                f"got kind {self.kind!r} and sizes {sorted(sizes)}. Give one of each "
                "for every item."
            )
        if len(np.unique(self.ids)) < len(self.ids):
            raise ViewError(
                "ids must be unique within a view, got repeated ones. Number the items."
            )

    def __repr__(self) -> str:
        return f"ViewItems({len(self.ids):,} {self.kind}s)"


@dataclass(frozen=True, eq=False, repr=False)
class ItemCollection:
    """The views of a collection; items of two views with the same id are partners.

    Parameters
    ----------
    views : mapping from str to ViewItems
        An id that is missing in a view has no item there.
    root : Path
        The folder that all files lie in.
    layout : str, default="views"
        Name of the recognised layout.
    skipped : tuple of str, default=()
        Descriptions of skipped columns and files.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from linkspread.manifests import ItemCollection, ViewItems
    >>> texts = ViewItems("text", np.array(["a", "b"]), ["one fish", "two fish"])
    >>> ItemCollection({"text": texts}, Path())
    ItemCollection(text: 2 texts)
    """

    views: Mapping[str, ViewItems]
    root: Path
    layout: str = "views"
    skipped: tuple[str, ...] = ()

    def __repr__(self) -> str:
        sizes = [f"{v}: {len(own.ids):,} {own.kind}s" for v, own in self.views.items()]
        return f"ItemCollection({', '.join(sizes)})"


class Places:
    """Turn names of files into paths; refuse those that lead out of the folder."""

    def __init__(self, root: Path, *, allow_outside: bool = False) -> None:
        self.root = root
        self._allowed = allow_outside
        self._real_root = os.path.realpath(root)
        # Files of a collection are in a few folders, which are resolved once.
        self._real_folders: dict[str, str] = {}

    def path(self, name: str) -> Path:
        """Return the path of a file of the collection, whether it exists or not."""
        path = self.root / name
        if not self._allowed and ("\0" in name or not self._is_within(path)):
            raise LinkspreadError(
                f"files of a collection must lie in its folder {str(self.root)!r}, got "
                f"{name!r:.120}, which leads outside. Move it there, or allow it with "
                "`allow_outside=True` (--allow-outside)."
            )
        return path

    def _is_within(self, path: Path) -> bool:
        """Return whether a path is in the folder, with symbolic links resolved."""
        folder, name = os.path.split(path)
        if folder not in self._real_folders:
            self._real_folders[folder] = os.path.realpath(folder)
        real = os.path.join(self._real_folders[folder], name)
        if name in ("", ".", "..") or os.path.islink(real):
            real = os.path.realpath(path)
        return real.startswith(os.path.join(self._real_root, ""))


def is_picture_name(name: str) -> bool:
    """Return whether a file has the ending of a picture."""
    return os.path.splitext(name)[1].lower() in _PICTURE_SUFFIXES

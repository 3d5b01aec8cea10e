"""What items are: their texts, or the files of their pictures."""

from pathlib import Path
from typing import Any

from linkspread.cli.asking import tell
from linkspread.cli.model_folder import ModelFolder
from linkspread.ground.errors import LinkspreadError


class ItemContents:
    """Texts and pictures of items by view and id."""

    def __init__(self, features: Any = None) -> None:
        self._features = features
        self._places: dict[str, dict[str, int]] = {}

    def known(self, view: str) -> bool:
        """Tell whether items of a view have contents."""
        return self._features is not None and view in self._features.contents

    def is_picture(self, view: str) -> bool:
        """Tell whether items of a view are pictures."""
        return self.known(view) and self._features.kinds.get(view) == "picture"

    def find(self, view: str, item: Any) -> str | None:
        """Return the text of an item or the path of its picture, None if unknown."""
        if not self.known(view):
            return None
        if view not in self._places:
            ids = [str(own) for own in self._features.ids[view]]
            self._places[view] = {own: place for place, own in enumerate(ids)}
        place = self._places[view].get(str(item))
        if place is None:
            return None
        content = str(self._features.contents[view][place])
        if self.is_picture(view):
            # A path in full stays as it is.
            return str(Path(self._features.root) / content)
        return content


def read_contents(folder: ModelFolder | None) -> ItemContents:
    """Return what items are, or say why that is unknown and go on without."""
    if folder is None:
        return ItemContents()
    try:
        return ItemContents(folder.features())
    except (LinkspreadError, ImportError) as error:
        tell(f"linkspread: texts and pictures are not shown: {error}")
        return ItemContents()

"""Model folders: named arrays, a JSON tree and columns of ids.

Nothing in this room knows what a model is. It writes so that a save that is killed
leaves the old folder whole, and reads as if the folder came from a stranger: nothing
is executed, and nothing is used before it is checked.
"""

from linkspread.storage.encoding import Ids
from linkspread.storage.folder import Content, read_folder, write_folder
from linkspread.storage.objects import Registry, Stored

__all__ = ["Content", "Ids", "Registry", "Stored", "read_folder", "write_folder"]

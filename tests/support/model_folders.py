"""Models for tests of storage, and folders of them that are changed by hand."""

import hashlib
import json
import shutil
from functools import cache

import numpy as np

from linkspread import Links, LinkSpreading
from linkspread.datasets import make_views as make_synthetic
from linkspread.storage.tensors import DTYPES, checksum
from small_views import make_links, make_views

CODES = {dtype: name for name, dtype in DTYPES.items()}
GRAPHS = {"codes": "csr", "adjusted": "cwa"}


@cache
def model(kind):
    """Return a fitted model that tests may ask but not change."""
    if kind == "spread":
        data = make_synthetic(300, n_classes=4, random_state=0)
        pairs = [(f"t{i}", 1000 + i + j, 1.0 - 2 * (j % 2))
                 for i in range(30) for j in range(4)]  # fmt: skip
        links = Links.from_labels(data.labels)
        links += Links.from_pairs(pairs, between=("text", "image"))
        ids = {"text": [f"t{i}" for i in range(300)], "image": 1000 + np.arange(300)}
        return LinkSpreading(n_neighbors=10).fit(data.views(), links, ids=ids)
    fitted = LinkSpreading(n_neighbors=4, alpha=0.5, graph=GRAPHS[kind])
    return fitted.fit(make_views(), make_links("mixture"))


class Folder:
    """A model folder whose parts a test exchanges, with checksums made anew.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path):
        self.path = path
        self.manifest = json.loads((path / "manifest.json").read_text("utf-8"))

    @property
    def arrays_path(self):
        return self.path / self.manifest["arrays"]["name"]

    def header(self):
        """Return the header of the arrays and the bytes after it."""
        data = self.arrays_path.read_bytes()
        start = 8 + int.from_bytes(data[:8], "little")
        return json.loads(data[8:start]), data[start:]

    def arrays(self):
        """Return all arrays, by a plain reading of the format."""
        header, data = self.header()
        return {
            name: np.frombuffer(
                data[slice(*entry["data_offsets"])], DTYPES[entry["dtype"]]
            ).reshape(entry["shape"])
            for name, entry in header.items()
        }

    def write_arrays(self, arrays):
        """Write arrays, whatever they are, in the right form."""
        header, chunks, end = {}, [], 0
        for name, array in sorted(arrays.items(), key=lambda p: -p[1].itemsize):
            chunks.append(np.ascontiguousarray(array).tobytes())
            place = [end, end := end + len(chunks[-1])]
            code = CODES[array.dtype]
            header[name] = dict(dtype=code, shape=array.shape, data_offsets=place)
        self.write_header(header, b"".join(chunks))

    def write_header(self, header, data):
        """Write a file of arrays with this header."""
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        self.replace_arrays(len(text).to_bytes(8, "little") + text + data)

    def replace_arrays(self, data):
        """Replace the file of arrays, and what the manifest says of it."""
        self.arrays_path.unlink()
        self.manifest["arrays"] = self._entry(data)
        self.write_manifest()

    def write_manifest(self):
        """Write the manifest with its right checksum."""
        self.manifest.pop("sha256", None)
        self.manifest["sha256"] = checksum(self.manifest)
        text = json.dumps(self.manifest)
        (self.path / "manifest.json").write_text(text, "utf-8")

    def nodes(self, name):
        """Return the fields of all objects of a class."""
        objects = self.manifest["content"]["objects"]
        return [node["fields"] for node in objects if node["class"] == name]

    def _entry(self, data):
        found = hashlib.sha256(data).hexdigest()
        name = f"arrays-{found[:32]}.safetensors"
        (self.path / name).write_bytes(data)
        return {"name": name, "bytes": len(data), "sha256": found}


def copy_folder(saved, target):
    """Return a copy of a saved model to be changed."""
    shutil.copytree(saved, target)
    return Folder(target)

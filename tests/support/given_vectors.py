"""A model whose vectors and ids are given, for tests of what is done with them."""

import json

import numpy as np
from pyarrow import parquet

from linkspread.exchange.vectors import Embeddings
from linkspread.links import Items
from linkspread.models.vector_search import VectorSearch

BETWEEN = {"source": "text", "target": "image"}


class GivenVectors(VectorSearch):
    """Texts search images by the vectors given."""

    def __init__(self, searching, found, ids=None):
        self.searching, self.found, self.ids = searching, found, ids
        known = {"text": len(searching), "image": len(found), **(ids or {})}
        self.items_ = {view: Items(known[view], view=view) for view in known}

    def fit(self, views, links):
        raise NotImplementedError

    def _vectors_of_fitted(self, positions, source, target):
        return self.searching[positions]

    def _vectors_of_new(self, rows, source, target):
        raise NotImplementedError

    def _vectors_found(self, source, target):
        return self.found


def make_given(n_items, *, n_queries=3, width=4, names=None, dtype=np.float64, seed=0):
    """Return a model with random vectors; `names` are the ids of its images."""
    rng = np.random.default_rng(seed)
    searching, found = (
        rng.standard_normal((n, width)).astype(dtype) for n in (n_queries, n_items)
    )
    return GivenVectors(searching, found, names and {"image": names})


def same_embeddings(first, second):
    """Tell whether two exports hold the same, to the last bit."""
    arrays = [(first.ids, second.ids), (first.vectors, second.vectors)]
    same = [
        a.dtype.kind == b.dtype.kind and a.shape == b.shape and (a == b).all()
        for a, b in arrays
    ]
    names = ("view", "other_view", "role")
    equal = [getattr(first, name) == getattr(second, name) for name in names]
    return all(same + equal) and first.vectors.dtype == second.vectors.dtype


def read_vectors(path):
    """Read a parquet file or an archive as any program does."""
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as archive:
            ids, vectors = archive["ids"], archive["vectors"]
            about = json.loads(str(archive["linkspread"]))
    else:
        table = parquet.read_table(path)
        about = json.loads(table.schema.metadata[b"linkspread"])
        ids, vectors = np.array(table["id"].to_pylist()), table["vector"]
        width = vectors.type.list_size
        vectors = vectors.combine_chunks().flatten().to_numpy().reshape(-1, width)
    names = {name: about[name] for name in ("view", "other_view", "role")}
    return Embeddings(ids, vectors, **names)

"""Features of a collection, with all that is needed to search it."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.ground.checks import naming
from linkspread.ground.errors import ViewError
from linkspread.manifests.contents import Problem


@dataclass(frozen=True, eq=False, repr=False)
class FeatureSet:
    """Hold the rows of each view and what they are of.

    Parameters
    ----------
    views : dict from str to ndarray of float32 or csr_array
        Of shape (n_items, n_features), mapped into memory from a file.
    ids : dict from str to ndarray of str of shape (n_items,)
        The same id in two views is the same item.
    labels : dict from str to ndarray of str of shape (n_items,)
        "" where unknown; without the views that have none.
    metrics : dict from str to str
        The distance that suits each view.
    kinds : dict from str to {"picture", "text"}
    contents : dict from str to sequence of str of length n_items
        The first 2,000 letters of each text; the path of each picture, relative to
        `root` or absolute.
    root : Path
        The folder of the collection.
    transformers : dict from str to object
        What made the rows of each view, fitted.
    problems : sequence of Problem, default=()
        Items that were left out.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from linkspread.manifests import ItemCollection, ViewItems, featurize
    >>> ids = np.array(["a", "b", "c"])
    >>> texts = ViewItems("text", ids, ["one fish", "two fish", ""])
    >>> features = featurize(ItemCollection({"title": texts}, Path()))
    >>> features, features.problems[0].kind
    (FeatureSet(title: 2 x 3), 'empty')
    >>> features.transform("title", ["red fish"]).shape
    (1, 3)
    """

    views: dict[str, Any]
    ids: dict[str, np.ndarray]
    labels: dict[str, np.ndarray]
    metrics: dict[str, str]
    kinds: dict[str, str]
    contents: dict[str, Sequence[str]]
    root: Path
    transformers: dict[str, Any]
    problems: Sequence[Problem] = ()

    def transform(self, view: str, contents: Sequence[Any]) -> Any:
        """Return rows of new items, made as the rows of the view were.

        Parameters
        ----------
        view : str
        contents : sequence of str, path-like or PIL image
            Texts, or pictures.

        Returns
        -------
        X : ndarray of float32 or csr_array of shape (n_contents, n_features)
        """
        if view not in self.transformers:
            raise ViewError(
                f"`view` must be one of {', '.join(map(repr, self.views))}, got "
                f"{view!r:.60}. Choose one of these."
            )
        with naming(view):
            X = self.transformers[view].transform(contents)
        if sparse.issparse(X):
            return sparse.csr_array(X, dtype=np.float32)
        return np.asarray(X, dtype=np.float32)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the features to a folder, whole or not at all.

        Parameters
        ----------
        path : str or Path
            A folder that is new, empty, or holds older features, which are replaced.
        """
        # Only here: the folder makes what this module defines.
        from linkspread.manifests.feature_folder import save_features

        save_features(self, path)

    def count_problems(self) -> dict[str, int]:
        """Return how many items were left out, by kind, most frequent first.

        Returns
        -------
        counts : dict from str to int
        """
        return dict(Counter(problem.kind for problem in self.problems).most_common())

    def __repr__(self) -> str:
        shapes = [
            f"{v}: {X.shape[0]:,} x {X.shape[1]:,}" for v, X in self.views.items()
        ]
        return f"FeatureSet({', '.join(shapes)})"

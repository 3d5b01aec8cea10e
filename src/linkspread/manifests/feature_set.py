"""Features of a collection, with all that is needed to search it; saved as a folder."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
from scipy import sparse

from linkspread.features.pictures import read_picture
from linkspread.features.transformers import StoredTransformer
from linkspread.ground.checks import check_name, naming
from linkspread.ground.errors import ModelError, ViewError
from linkspread.ground.notebook import Results
from linkspread.manifests.collection import KINDS, ItemCollection, is_picture_name
from linkspread.manifests.contents import Problem, hash_content, refuse
from linkspread.manifests.rows import Texts
from linkspread.manifests.transformers import STORED, is_fitted, recipe, with_speed_of
from linkspread.storage.folder import FEATURES, check_target, read_folder, write_folder
from linkspread.storage.schema import AnyArray, AnyMatrix, Registry, Stored

_FORMAT = "features 3"


@dataclass(frozen=True, eq=False, repr=False)
class FeatureSet:
    """The features of each view, with its items and transformers.

    Parameters
    ----------
    views : dict from str to ndarray of float32 or csr_array
        Of shape (n_items, n_features), mapped into memory from a file.
    ids : dict from str to ndarray of str of shape (n_items,)
        Items of two views with the same id are partners.
    labels : dict from str to ndarray of str of shape (n_items,)
        "" where unknown; views without labels are missing.
    metrics : dict from str to str
        The metric that suits each view.
    kinds : dict from str to {"picture", "text"}
    contents : dict from str to sequence of str of length n_items
        The first 2,000 characters of each text; the path of each picture, relative to
        `root` or absolute.
    digests : dict from str to ndarray of uint8 of shape (n_items, 32)
        SHA-256 of the file of each picture.
    root : Path
        The folder of the collection.
    transformers : dict from str to object
        The fitted transformer of each view.
    problems : list of Problem
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
    digests: dict[str, np.ndarray]
    root: Path
    transformers: dict[str, Any]
    problems: list[Problem]

    def transform(self, view: str, contents: Sequence[Any]) -> Any:
        """Return the features of new items, by the transformer of the view.

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

    def picture(self, view: str, row: int) -> Any:
        """Return the picture of an item; refuse a file with another content.

        A folder from somebody else may name any file, but not with its content.

        Parameters
        ----------
        view : str
        row : int

        Returns
        -------
        image : PIL image
        """
        path = self.root / self.contents[view][row]
        digest = self.digests[view][row].tobytes()
        if hash_content(path, "picture").digest != digest:
            raise refuse(path, "replaced")
        return read_picture(path)

    def show(self, view: str, ids: Any, scores: Any) -> Results:
        """Return results of a search with their pictures or texts, for a notebook.

        Parameters
        ----------
        view : str
            The view that was searched.
        ids, scores : ndarray of shape (n_results,) or (n_queries, n_results)
            As `search` returns them.

        Returns
        -------
        results : Results
        """
        check_name(view, self.kinds, name="view")
        rows = {name: row for row, name in enumerate(self.ids[view])}
        if self.kinds[view] == "picture":
            return Results(
                ids, scores, picture=lambda item: self.picture(view, rows[item])
            )

        def caption(item: Any) -> str:
            return f"{item}: {self.contents[view][rows[item]][:200]}"

        return Results(ids, scores, caption)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the features to a folder, all or nothing.

        Parameters
        ----------
        path : str or Path
            A folder that is new, empty, or holds older features, which are replaced.
        """
        if not self.views:
            raise ModelError(
                "features to be saved must have at least one view, got none. See "
                "their `problems`."
            )
        sizes = {view: {"n_items": X.shape[0]} for view, X in self.views.items()}
        about = {"features": sizes, "problems": self.count_problems()}
        write_folder(path, _REGISTRY.encode(self, about=about), kind=FEATURES)

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


def load_features(path: str | os.PathLike[str], *, verify: bool = True) -> FeatureSet:
    """Load features that `linkspread featurize` or `FeatureSet.save` wrote.

    Nothing in the folder is executed, and everything is checked before it is used, so
    folders from others are safe to load.

    Parameters
    ----------
    path : str or Path
    verify : bool, default=True
        Compare the checksums of all files, which takes 1 to 2 s per GB.

    Returns
    -------
    features : FeatureSet
        Its arrays are mapped into memory and read on demand.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from linkspread.manifests import featurize, load_features
    >>> from linkspread.manifests import ItemCollection, ViewItems
    >>> texts = ViewItems("text", np.array(["a", "b"]), ["one fish", "two fish"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     featurize(ItemCollection({"title": texts}, Path())).save(folder)
    ...     features = load_features(folder)
    >>> features, features.contents["title"][0]
    (FeatureSet(title: 2 x 3), 'one fish')
    """
    try:
        content = read_folder(path, kind=FEATURES, verify=verify)
        return _REGISTRY.decode(content, of=FeatureSet)
    except ModelError as error:
        raise ModelError(
            f"{str(path)!r} must hold features as `linkspread featurize` writes them: "
            f"{error}"
        ) from error


def check_features_target(path: str | os.PathLike[str]) -> None:
    """Refuse a folder that holds a model or other files."""
    check_target(Path(path), kind=FEATURES)


def reuse_fitted(
    chosen: Mapping[str, Any], earlier: FeatureSet, collection: ItemCollection
) -> dict[str, Any]:
    """Return transformers, replaced by equal fitted ones of earlier features."""
    found = dict(chosen)
    if earlier.root == collection.root.absolute():
        for view in set(chosen) & set(earlier.transformers):
            own = earlier.transformers[view]
            if not is_fitted(chosen[view]) and recipe(own) == recipe(chosen[view]):
                found[view] = with_speed_of(own, chosen[view])
    return found


class FeatureState(TypedDict):
    """The stored form of a `FeatureSet`: numbers, texts, arrays and ids."""

    format: str
    root: str
    views: dict[str, AnyMatrix]
    ids: dict[str, AnyArray]
    labels: dict[str, AnyArray]
    metrics: dict[str, str]
    kinds: dict[str, str]
    contents: dict[str, Texts]
    digests: dict[str, AnyArray]
    transformers: dict[str, StoredTransformer]
    problems: dict[str, Texts]


def _take(features: FeatureSet) -> dict[str, Any]:
    """Return the attributes that are stored in another form."""
    columns = zip(*features.problems, strict=True) if features.problems else [()] * 4
    problems = dict(zip(Problem._fields, columns, strict=True))
    return {
        "format": _FORMAT,
        "root": str(features.root),
        "contents": {v: _as_texts(own) for v, own in features.contents.items()},
        "problems": {name: _as_texts(own) for name, own in problems.items()},
    }


def _as_texts(texts: Sequence[str]) -> Texts:
    """Return texts in the form in which they are stored."""
    return texts if isinstance(texts, Texts) else Texts.from_strings(texts)


def _restore(**state: Any) -> FeatureSet:
    """Return features whose parts fit each other."""
    if state.pop("format") != _FORMAT:
        raise ModelError(f"features must be of {_FORMAT!r}. Make them again.")
    for what in _misfits(state):
        raise ModelError(
            f"{what} of features must be of all views and of all their items, got "
            "others. Make the features again."
        )
    columns = [state["problems"][name] for name in Problem._fields]
    problems = [Problem(*own) for own in zip(*columns, strict=True)]
    return FeatureSet(**{**state, "root": Path(state["root"]), "problems": problems})


def _misfits(state: Mapping[str, Any]) -> Iterator[str]:
    """Yield the parts that are not of the views and their items."""
    sizes = {view: X.shape[0] for view, X in state["views"].items()}
    if not sizes or min(sizes.values()) == 0:
        yield "rows"
    for name in ("ids", "metrics", "kinds", "transformers"):
        if set(state[name]) != set(sizes):
            yield name
    for name in ("ids", "labels"):
        for view, own in state[name].items():
            is_flat = own.ndim == 1 and own.dtype.kind == "U"
            if not is_flat or len(own) != sizes.get(view):
                yield name
            if name == "ids" and len(np.unique(own)) < len(own):
                yield name
    if {view: len(own) for view, own in state["contents"].items()} != sizes:
        yield "contents"
    if not set(state["kinds"].values()) <= set(KINDS):
        yield "kinds"
    pictures = [view for view, own in state["kinds"].items() if own == "picture"]
    shapes = {view: (own.shape, own.dtype) for view, own in state["digests"].items()}
    if shapes != {view: ((sizes.get(view), 32), np.uint8) for view in pictures}:
        yield "digests"
    for view, own in state["contents"].items():
        # Pages show these files: nothing but pictures of the collection.
        if state["kinds"].get(view) == "picture" and any(
            not is_picture_name(path) or ".." in path.split("/") or "\0" in path
            for path in own
        ):
            yield "paths of pictures"


_REGISTRY = Registry(
    [*STORED, Stored(FeatureSet, take=_take, make=_restore, state=FeatureState)]
)

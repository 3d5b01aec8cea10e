"""From a collection to features: look at all items, learn, describe."""

import os
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from linkspread.ground.checks import naming
from linkspread.ground.cores import count_threads
from linkspread.manifests.cache import RowCache
from linkspread.manifests.choices import choose_transformers
from linkspread.manifests.collection import ItemCollection
from linkspread.manifests.contents import Problem
from linkspread.manifests.describing import DescribedView, describe_view
from linkspread.manifests.feature_set import FeatureSet
from linkspread.manifests.learning import learn
from linkspread.manifests.survey import Survey, survey_view


def featurize(
    collection: ItemCollection,
    *,
    transformers: Mapping[str, Any] | None = None,
    cache: str | os.PathLike[str] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    verbose: bool = False,
    folder: str | os.PathLike[str] | None = None,
) -> FeatureSet:
    """Return the features of all items that can be read.

    Pictures are read one after the other and rows written to a passing file, so that
    a collection may be larger than memory. Items that cannot be read are left out and
    told of in `problems`; the rows of the others are as if these had not been there.

    Parameters
    ----------
    collection : ItemCollection
    transformers : mapping from str to transformer, default=None
        For views that should not have the usual features. Fitted ones are used as
        they are, others are fitted to the view.
    cache : str or Path, default=None
        File in which rows and what was learnt are kept for the next time. None keeps
        nothing.
    random_state : int, default=0
        Seed of what is learnt, for transformers that are not given.
    n_jobs : int, default=None
        Threads; None and -1 mean every core.
    verbose : bool, default=False
        Show progress.
    folder : str or Path, default=None
        On whose disk rows are kept; None means that of temporary files.

    Returns
    -------
    features : FeatureSet

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from linkspread.manifests import ItemCollection, ViewItems, featurize
    >>> texts = ViewItems("text", np.array(["a", "b"]), ["one fish", "two fish"])
    >>> featurize(ItemCollection({"title": texts}, Path())).metrics
    {'title': 'cosine'}
    """
    chosen = choose_transformers(
        collection, transformers, random_state=random_state, n_jobs=n_jobs
    )
    n_threads = count_threads(n_jobs)
    root, where = collection.root, None if folder is None else Path(folder)
    problems: list[Problem] = []
    made: dict[str, tuple[Any, DescribedView]] = {}
    with nullcontext() if cache is None else RowCache(cache) as rows:
        for view, items in collection.views.items():
            survey = survey_view(view, items, n_threads=n_threads, verbose=verbose)
            with naming(view):
                done = _featurize_view(
                    chosen[view], survey, rows, root, where, n_threads, verbose
                )
            problems += survey.problems
            made |= {} if done is None else {view: done}
    return _gather(collection, made, problems)


def _featurize_view(
    transformer: Any,
    survey: Survey,
    cache: RowCache | None,
    root: Path,
    folder: Path | None,
    n_threads: int,
    verbose: bool,
) -> tuple[Any, DescribedView] | None:
    """Return the fitted transformer and the rows of a view, if it has any."""
    fitted = learn(transformer, survey, cache, n_threads=n_threads, verbose=verbose)
    if fitted is None:
        return None
    described = describe_view(
        fitted, survey, cache, root=root, folder=folder, verbose=verbose
    )
    return None if described is None else (fitted, described)


def _gather(
    collection: ItemCollection,
    made: Mapping[str, tuple[Any, DescribedView]],
    problems: list[Problem],
) -> FeatureSet:
    """Return the features of the views that have any."""
    items = {view: collection.views[view] for view in made}
    places = {view: own.places for view, (_, own) in made.items()}
    labels = {v: i.labels for v, i in items.items() if i.labels is not None}
    return FeatureSet(
        views={view: own.rows for view, (_, own) in made.items()},
        ids={view: own.ids[places[view]] for view, own in items.items()},
        labels={view: own[places[view]] for view, own in labels.items()},
        metrics={view: fitted.metric_ for view, (fitted, _) in made.items()},
        kinds={view: own.kind for view, own in items.items()},
        contents={view: own.contents for view, (_, own) in made.items()},
        root=collection.root.absolute(),
        transformers={view: fitted for view, (fitted, _) in made.items()},
        problems=problems,
    )

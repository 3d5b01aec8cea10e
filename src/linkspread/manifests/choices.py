"""Which transformer makes the rows of each view."""

from collections.abc import Mapping
from typing import Any

from linkspread.features import TRANSFORMERS, default_transformer
from linkspread.ground.checks import check_name
from linkspread.ground.errors import ViewError
from linkspread.manifests.collection import ItemCollection
from linkspread.manifests.feature_set import FeatureSet
from linkspread.manifests.states import is_fitted, recipe, with_manners

# Short names of the transformers for each kind.
NAMES = {
    "picture": ("histograms", "sift", "network"),
    "text": ("words", "topics", "tags", "sentences"),
}


def choose_transformers(
    collection: ItemCollection,
    given: Mapping[str, Any] | None = None,
    *,
    names: Mapping[str, str] | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> dict[str, Any]:
    """Return the transformer of each view of a collection."""
    chosen = dict(given or {})
    unknown = next((view for view in chosen if view not in collection.views), None)
    if unknown is not None:
        raise ViewError(
            f"`transformers` must be for views of the collection, which are "
            f"{', '.join(map(repr, collection.views))}, got {unknown!r:.60}. Name one "
            "of these."
        )
    for view, items in collection.views.items():
        if view not in chosen:
            own = _make(items.kind, (names or {}).get(items.kind))
            manners = {"random_state": random_state, "n_jobs": n_jobs}
            known = own.get_params(deep=False)
            own.set_params(**{k: v for k, v in manners.items() if k in known})
            chosen[view] = own
    return {view: chosen[view] for view in collection.views}


def take_learnt(
    chosen: Mapping[str, Any], earlier: FeatureSet, collection: ItemCollection
) -> dict[str, Any]:
    """Return transformers, fitted where earlier features of the collection had them."""
    if earlier.root != collection.root.absolute():
        return dict(chosen)
    found = dict(chosen)
    for view in set(chosen) & set(earlier.transformers):
        own = earlier.transformers[view]
        if not is_fitted(chosen[view]) and recipe(own) == recipe(chosen[view]):
            found[view] = with_manners(own, chosen[view])
    return found


def _make(kind: str, name: str | None) -> Any:
    """Return an unfitted transformer by its name, or the usual one of a kind."""
    if name is None:
        return default_transformer(kind)
    return TRANSFORMERS[check_name(name, NAMES[kind], name=kind)]()

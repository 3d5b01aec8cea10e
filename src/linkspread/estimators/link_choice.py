"""The links of a fit, from Links, from labels by view, or from labels alone."""

from collections.abc import Mapping
from typing import Any

from linkspread.exceptions import LinkError
from linkspread.links import Links

__all__ = ["choose_links"]


def choose_links(links: Any, tables: Mapping[str, Any]) -> Links:
    """Return links, made from labels if that is what was given.

    Parameters
    ----------
    links : Links, mapping from str to labels, or labels
        Labels without the name of a view are those of the only one.
    tables : mapping with the names of the views

    Returns
    -------
    links : Links
    """
    if isinstance(links, Links):
        return links
    if isinstance(links, Mapping):
        return Links.from_labels(links)
    if links is not None and len(tables) == 1:
        return Links.from_labels({next(iter(tables)): links})
    got = f"{type(links).__name__} for {len(tables)} views"
    if links is None:
        # The words with which scikit-learn asks for a target.
        got = "None (the fit requires y to be passed, but the target y is None)"
    raise LinkError(
        f"`links` must be Links or labels by view, got {got}. Make them with "
        "`Links.from_pairs` or `Links.from_labels`."
    )

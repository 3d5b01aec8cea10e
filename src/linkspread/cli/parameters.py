"""Parameters of a model as they are typed: one value for all, or ``view=value``."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from linkspread.cli.inputs import Inputs
from linkspread.estimators import LinkSpreading
from linkspread.estimators.graph_choice import fitting_neighbors
from linkspread.exceptions import LinkspreadError

__all__ = [
    "Alpha",
    "Balance",
    "Beta",
    "Graph",
    "Jobs",
    "Metric",
    "Neighbors",
    "PARAMETERS",
    "Rank",
    "Tol",
    "choose_model",
    "read_value",
]

BY_VIEW = ("graph", "n_neighbors", "metric", "alpha")
ONE = ("beta", "balance", "rank", "tol", "n_jobs")
PARAMETERS = (*BY_VIEW, *ONE)
DEFAULTS = LinkSpreading().get_params(deep=False)


def _option(help: str, name: str | None = None) -> Any:
    """Return an option that may be typed once for each view."""
    names = [name] if name else []
    return typer.Option(*names, metavar="[VIEW=]VALUE", help=help)


Graph = Annotated[list[str] | None, _option("knn, sr, cwa or csr.")]
Neighbors = Annotated[list[str] | None, _option("Neighbours.", "--n-neighbors")]
Metric = Annotated[list[str] | None, _option("euclidean, cosine, hellinger or chi2.")]
Alpha = Annotated[list[str] | None, _option("How far links spread within a view.")]
Beta = Annotated[
    float | None, typer.Option(help="How much the views' answers must agree.")
]
Balance = Annotated[
    str | None, typer.Option(help="Weight of cannot-links: auto, literal, a number.")
]
Rank = Annotated[int | None, typer.Option(help="Largest length of the vectors.")]
Tol = Annotated[float | None, typer.Option(help="Relative error of the scores.")]
Jobs = Annotated[
    int | None, typer.Option("--n-jobs", help="Threads; all cores if left out.")
]


def choose_model(options: Mapping[str, Any], inputs: Inputs) -> LinkSpreading:
    """Return the model of these options, not fitted.

    Parameters
    ----------
    options : mapping from str to object
        Parameters of `LinkSpreading` that were typed.
    inputs : Inputs
        Its views, and the distances that suit them.

    Returns
    -------
    model : LinkSpreading
    """
    given = {name: options[name] for name in ONE if name in options}
    if "balance" in given:
        given["balance"] = read_value(given["balance"])
    # A view may have fewer items than a graph has neighbours by default.
    usual: dict[str, Any] = {"n_neighbors": fitting_neighbors(inputs.views)}
    if inputs.metrics:
        usual["metric"] = dict.fromkeys(inputs.views, "euclidean") | inputs.metrics
    for name in set(BY_VIEW) & options.keys():
        default = usual.get(name, DEFAULTS[name])
        given[name] = _by_view(options[name], list(inputs.views), name, default)
    return LinkSpreading(**usual | given)


def read_value(text: Any) -> Any:
    """Return a number where a text is one, or else the text.

    Parameters
    ----------
    text : object
        What is no text stays as it is.

    Returns
    -------
    value : object
    """
    if not isinstance(text, str):
        return text
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip()


def _by_view(typed: Any, views: list[str], name: str, default: Any) -> Any:
    """Return one value for all views, or a value for each."""
    parts = [str(one).partition("=") for one in typed]
    for_all = [read_value(head) for head, sign, _ in parts if not sign]
    own = {head.strip(): read_value(value) for head, sign, value in parts if sign}
    option = f"--{name.replace('_', '-')}"
    unknown = [view for view in own if view not in views]
    if unknown or len(for_all) > 1:
        got = repr(unknown[0]) if unknown else f"{len(for_all)} values for all"
        raise LinkspreadError(
            f"`{option}` must be one value, or a value for each of the views "
            f"{', '.join(map(repr, views))}, got {got}. Write {option} VALUE or "
            f"{option} {views[0]}=VALUE."
        )
    if not own:
        return for_all[0]
    rest = for_all[0] if for_all else default
    others = rest if isinstance(rest, Mapping) else dict.fromkeys(views, rest)
    return {**others, **own}

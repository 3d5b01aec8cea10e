"""Parameters of a model as they are typed: one value for all, or ``view=value``."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from linkspread.cli.inputs import Inputs
from linkspread.ground.errors import LinkspreadError
from linkspread.models import CrossViewSearch, LinkSpreading
from linkspread.models.view_graphs import fitting_neighbors

BY_VIEW = ("graph", "n_neighbors", "metric", "alpha")
ONE = ("beta", "balance", "rank", "tol", "n_jobs")
PARAMETERS = (*BY_VIEW, *ONE)
SEARCH, SPREADING = MODELS = ("search", "spreading")
# What only LinkSpreading has, and what only it is fitted or measured by.
OF_SPREADING = (
    *("graph", "n_neighbors", "alpha", "beta", "balance", "rank", "tol"),
    *("shards", "quality", "no_quality"),
)


def _option(help: str, name: str | None = None) -> Any:
    """Return an option that may be typed once for each view."""
    names = [name] if name else []
    return typer.Option(*names, metavar="[VIEW=]VALUE", help=help)


ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="NAME",
        help="search, or spreading: the graph propagation of a paper, which the "
        "options of graphs and links belong to.",
    ),
]
Graph = Annotated[list[str] | None, _option("knn, sr, cwa or csr.")]
Neighbors = Annotated[list[str] | None, _option("Neighbours.", "--n-neighbors")]
Metric = Annotated[
    list[str] | None, _option("auto, euclidean, cosine, hellinger or chi2.")
]
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


def is_spreading(options: Mapping[str, Any]) -> bool:
    """Tell whether the options ask for `LinkSpreading`."""
    return options.get("model", SEARCH) == SPREADING


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse a model that there is not, and options that are none of it."""
    model = options.get("model", SEARCH)
    if model not in MODELS:
        raise LinkspreadError(
            f"`--model` must be {' or '.join(MODELS)}, got {model!r}. Leave it out for "
            "search."
        )
    for name in OF_SPREADING if model == SEARCH else ():
        if name in options:
            option = f"--{name.replace('_', '-')}"
            raise LinkspreadError(
                f"`{option}` must go with --model spreading, got it for the model "
                f"search. Leave {option} out, or add --model spreading."
            )


def choose_model(options: Mapping[str, Any], inputs: Inputs) -> Any:
    """Return the model of these options, not fitted."""
    check_options(options)
    given = {name: options[name] for name in ONE if name in options}
    if "balance" in given:
        given["balance"] = read_value(given["balance"])
    make = LinkSpreading if is_spreading(options) else CrossViewSearch
    usual: dict[str, Any] = {}
    if make is LinkSpreading:
        # A view may have fewer items than a graph has neighbours by default.
        usual["n_neighbors"] = fitting_neighbors(inputs.views)
    defaults = make().get_params(deep=False)
    if inputs.metrics:
        usual["metric"] = (
            dict.fromkeys(inputs.views, defaults["metric"]) | inputs.metrics
        )
    for name in set(BY_VIEW) & options.keys():
        default = usual.get(name, defaults[name])
        given[name] = _by_view(options[name], list(inputs.views), name, default)
    return make(**usual | given)


def read_value(text: Any) -> Any:
    """Return a number where a text is one, or else the text."""
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

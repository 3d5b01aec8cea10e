"""Grids of parameters: every setting, and settings that share a fit."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from linkspread.ground.errors import LinkspreadError
from linkspread.tables.validation import per_view

Parameters = dict[str, Any]


def expand_grid(grid: Mapping[str, Any]) -> list[Parameters]:
    """Return every setting of a grid, the last parameter changing fastest."""
    if not isinstance(grid, Mapping):
        raise LinkspreadError(
            f"`grid` must map names of parameters to lists of values, got "
            f'{grid!r:.60}. Write {{"alpha": [0.1, 0.5]}}.'
        )
    choices = [_choices(name, values) for name, values in grid.items()]
    return [dict(zip(grid, values, strict=True)) for values in product(*choices)]


def refine_stages(grid: Any) -> list[Mapping[str, Any]]:
    """Return the grids that are searched one after the other."""
    if isinstance(grid, str | Mapping) or not isinstance(grid, Sequence):
        one: Any = grid
        return [one]
    if not grid:
        raise LinkspreadError(
            "`grid` must have at least one stage, got an empty list. Leave it out for "
            "the default grid."
        )
    return list(grid)


def check_model(model: Any) -> Any:
    """Return a model whose parameters can be tried."""
    missing = [n for n in ("get_params", "fit", "scores") if not hasattr(model, n)]
    if missing:
        raise LinkspreadError(
            "`model` must be an estimator with fit(views, links) and scores, got "
            f"{model!r:.60} without {missing[0]!r}. Use LinkSpreading() or one of "
            "`linkspread.studies.baselines`."
        )
    return model


def check_names(grid: Any, model: Any) -> None:
    """Refuse a grid of parameters that the model does not have."""
    known = list(model.get_params(deep=False))
    unknown = [name for name in grid if name not in known]
    if isinstance(grid, Mapping) and unknown:
        raise LinkspreadError(
            f"`grid` must name parameters of {type(model).__name__}, {known}, got "
            f"{unknown[0]!r}. Correct the name."
        )


def own_setting(
    model: Any, stages: Sequence[Mapping[str, Any]], views: Mapping[str, Any]
) -> Parameters:
    """Return the model's own values of all that is tried, by view where grids are."""
    values = model.get_params(deep=False)
    by_view = {n for stage in stages for n, own in stage.items()
               if isinstance(own, Mapping)}  # fmt: skip
    return {
        name: per_view(values[name], views, name=name)
        if name in by_view
        else values[name]
        for stage in stages
        for name in stage
    }


def place_of(setting: Parameters, settings: Sequence[Parameters]) -> int | None:
    """Return where a setting stands among others, None for nowhere."""
    for k, other in enumerate(settings):
        if _equal(setting, other):
            return k
    return None


def group_settings(
    settings: Sequence[Parameters], together: Iterable[str]
) -> list[tuple[Parameters, list[int]]]:
    """Gather the settings that differ in some parameters only."""
    together = set(together)
    groups: list[tuple[Parameters, list[int]]] = []
    for k, setting in enumerate(settings):
        common = {n: v for n, v in setting.items() if n not in together}
        for known, members in groups:
            if _equal(known, common):
                members.append(k)
                break
        else:
            groups.append((common, [k]))
    return groups


def _choices(name: str, values: Any) -> list[Any]:
    """Return the values that one parameter takes."""
    if isinstance(values, Mapping):
        combinations = product(*(_choices(name, v) for v in values.values()))
        return [dict(zip(values, chosen, strict=True)) for chosen in combinations]
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise LinkspreadError(
            f"`grid` must have a list of values for {name!r}, got {values!r:.60}. "
            f"Write [{values!r:.60}] for a single one."
        )
    chosen = list(values)
    if not chosen:
        raise LinkspreadError(
            f"`grid` must have at least one value for {name!r}, got none. Remove it "
            "to keep the model's own."
        )
    return chosen


def _equal(one: Parameters, other: Parameters) -> bool:
    """Tell whether two settings are the same."""
    return one.keys() == other.keys() and all(_same(one[n], other[n]) for n in one)


def _same(one: Any, other: Any) -> bool:
    """Tell whether two values of a parameter are the same."""
    # Values may be arrays or functions: the same object is the same value.
    if one is other:
        return True
    plain = str | int | float | bool | dict | tuple | None
    return isinstance(one, plain) and isinstance(other, plain) and one == other

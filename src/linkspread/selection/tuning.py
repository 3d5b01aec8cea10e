"""The outcome of a search for parameters."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from linkspread.ground.errors import LinkspreadError, require
from linkspread.selection.grids import Parameters

Array = np.ndarray


@dataclass(frozen=True)
class Tuning:
    """Settings, how well each did on every fold, and which one is best.

    Attributes
    ----------
    model : estimator
        Not fitted, with the best parameters set.
    settings : tuple of dict
        Every setting that was tried.
    fold_scores : ndarray of shape (n_settings, n_folds)
    default : dict
        The model's own values of what was tried.
    default_fold_scores : ndarray of shape (n_folds,)
        NaN where these views are too small for the default.
    measure : str
        What the mean of a setting's scores is, in words.
    seconds : float
        Time of the search.
    protocol : str
        "transductive" or "inductive".
    """

    model: Any
    settings: tuple[Parameters, ...]
    fold_scores: Array
    default: Parameters
    default_fold_scores: Array
    measure: str
    seconds: float
    protocol: str

    def __str__(self) -> str:
        own = _mean_and_deviation(self.default_fold_scores)
        best = _mean_and_deviation(self.fold_scores[self.best_index])
        words = f"{self.measure} (± standard deviation over the folds)"
        if self.keeps_default:
            return f"default {own} stays, the best that was tried has {best}: {words}"
        if np.isnan(self.default_score):
            return (
                f"best {best}, and these views are too small for the default: {words}"
            )
        return f"default {own}, best {best}: {words}"

    @property
    def scores(self) -> Array:
        """Mean of the folds, for each setting."""
        return self.fold_scores.mean(axis=1)

    @property
    def default_score(self) -> float:
        """Mean of the folds, for the default."""
        return float(self.default_fold_scores.mean())

    @property
    def best_index(self) -> int:
        """Which of the settings that were tried is best; the first of equal ones."""
        return int(np.argmax(self.scores))

    @property
    def keeps_default(self) -> bool:
        """Whether no setting that was tried has a larger mean than the default."""
        return bool(self.scores[self.best_index] <= self.default_score)

    @property
    def best_parameters(self) -> Parameters:
        """The setting with the largest mean, the default if none has a larger one."""
        return self.default if self.keeps_default else self.settings[self.best_index]

    @property
    def best_score(self) -> float:
        """Its mean over the folds, a little flattered by the choice."""
        return float(np.nanmax([self.scores[self.best_index], self.default_score]))

    def columns(self) -> dict[str, list[Any]]:
        """Return the settings and their scores, a list for each column.

        Returns
        -------
        columns : dict from str to list
            Parameters by view have a column for each view, such as "alpha text".
        """
        rows = [flatten(setting) for setting in self.settings]
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns: dict[str, list[Any]] = {n: [r.get(n) for r in rows] for n in names}
        columns["mean"] = self.scores.tolist()
        columns["deviation"] = self.fold_scores.std(axis=1).tolist()
        for i in range(self.fold_scores.shape[1]):
            columns[f"fold {i + 1}"] = self.fold_scores[:, i].tolist()
        return columns

    def frame(self) -> Any:
        """Return the settings and their scores as a pandas DataFrame.

        Returns
        -------
        frame : DataFrame
            Best first.
        """
        pandas = require("pandas", extra="tables", purpose="A frame of scores")
        frame = pandas.DataFrame(self.columns())
        return frame.sort_values("mean", ascending=False, kind="stable")

    def curve(self, parameter: str) -> tuple[list[Any], Array]:
        """Return the scores against one parameter, others as in the best tried.

        Parameters
        ----------
        parameter : str
            Such as "beta", or "alpha text" for the alpha of one view.

        Returns
        -------
        values : list
            In the order of the grid.
        scores : ndarray of shape (n_values,)
        """
        rows = [flatten(setting) for setting in self.settings]
        best = rows[self.best_index]
        if parameter not in best:
            raise LinkspreadError(
                f"`parameter` must be one that was tried, {list(best)}, got "
                f"{parameter!r}. Correct the name."
            )
        others = [name for name in best if name != parameter]
        found: dict[Any, float] = {}
        for row, score in zip(rows, self.scores, strict=True):
            if row.keys() == best.keys() and all(row[n] == best[n] for n in others):
                found.setdefault(row[parameter], float(score))
        return list(found), np.array(list(found.values()))


def _mean_and_deviation(values: Array) -> str:
    """Return the mean of some folds and how much they differ."""
    return f"{values.mean():.3f} ± {values.std():.3f}"


def flatten(setting: Parameters) -> Parameters:
    """Return a setting with a name of its own for each view's value."""
    flat: Parameters = {}
    for name, value in setting.items():
        if isinstance(value, dict):
            flat |= {f"{name} {view}": own for view, own in value.items()}
        else:
            flat[name] = value
    return flat


def unflatten(flat: Parameters) -> Parameters:
    """Return the setting that `flatten` gave a name for each view's value."""
    setting: Parameters = {}
    for key, value in flat.items():
        # Names of parameters have no space; those of views may have some.
        name, is_by_view, view = key.partition(" ")
        if is_by_view:
            setting.setdefault(name, {})[view] = value
        else:
            setting[name] = value
    return setting

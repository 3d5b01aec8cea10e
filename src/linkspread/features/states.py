"""What a fitted transformer knows, as plain data that can be stored and read again.

>>> from linkspread.features import TextFeatures
>>> fitted = TextFeatures().fit(["one fish", "two fish"])
>>> again = TextFeatures.from_state(fitted.get_params(), fitted.get_state())
>>> (again.transform(["one two"]) != fitted.transform(["one two"])).nnz
0
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from linkspread.ground.errors import ModelError

COUNT = "a whole number of at least 0"
NAMES = "a list of different strings"
TEXT = "a string"
_REMEDY = "Write the features again."


def table(dtype: Any, ndim: int) -> tuple[np.dtype, int]:
    """Return the rule of an array of finite numbers."""
    return np.dtype(dtype), ndim


class StoredTransformer(TransformerMixin, BaseEstimator):
    """A transformer whose fit can be taken out as plain data and put in again.

    A class built on it names in `_stored` what `transform` needs and in `_metric` the
    distance that suits its features; what follows from these is made in `_complete`.
    """

    # What each of the fitted attributes must be: a constant of this module or `table`.
    _stored: ClassVar[dict[str, Any]]
    _metric: ClassVar[str]

    def get_state(self) -> dict[str, Any]:
        """Return what was learnt, as arrays, numbers, strings and lists of strings."""
        check_is_fitted(self)
        state = {name: getattr(self, name) for name in self._stored}
        is_names = {name for name, rule in self._stored.items() if rule == NAMES}
        return {n: v.tolist() if n in is_names else v for n, v in state.items()}

    @classmethod
    def from_state(cls, params: Mapping[str, Any], state: Mapping[str, Any]) -> Self:
        """Return a fitted transformer that transforms as the one the state is of."""
        unknown = sorted(set(params) - set(cls._get_param_names()))
        if unknown:
            raise ModelError(
                f"`params` must be those of {cls.__name__}, got {unknown[0]!r:.60}. "
                f"{_REMEDY}"
            )
        _check_names(cls.__name__, state, cls._stored)
        transformer = cls(**params)
        for name, rule in cls._stored.items():
            setattr(transformer, name, _checked(name, state[name], rule))
        transformer._complete()
        return transformer

    def _complete(self) -> None:
        """Set what follows from the stored attributes, after a look at their shapes."""
        self.metric_ = self._metric

    def _check_shape(self, name: str, *shape: int | None) -> None:
        """Refuse a stored array of another shape; None fits any length."""
        found = np.shape(getattr(self, name))
        if any(s not in (None, f) for s, f in zip(shape, found, strict=True)):
            expected = ", ".join("any" if s is None else str(s) for s in shape)
            raise ModelError(
                f"`{name}` of a stored {type(self).__name__} must have the shape "
                f"({expected}), got {found}. {_REMEDY}"
            )


def _check_names(owner: str, state: Mapping[str, Any], stored: Mapping) -> None:
    """Refuse a state with other names than those of a class."""
    if set(state) != set(stored):
        raise ModelError(
            f"`state` of {owner} must hold {', '.join(stored)}, got "
            f"{', '.join(map(str, state)) or 'nothing'}. {_REMEDY}"
        )


def _checked(name: str, value: Any, rule: Any) -> Any:
    """Return a stored value that obeys its rule, as the transformer holds it."""
    if isinstance(rule, tuple):
        return _checked_table(name, value, *rule)
    is_integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if rule == COUNT and is_integer and value >= 0:
        return int(value)
    if rule == TEXT and isinstance(value, str):
        return value
    if rule == NAMES and _are_names(value):
        return np.array(value, dtype=object)
    raise ModelError(
        f"`{name}` of a stored transformer must be {rule}, got "
        f"{type(value).__name__}. {_REMEDY}"
    )


def _are_names(value: Any) -> bool:
    """Tell whether a value is a list of different strings."""
    is_list = isinstance(value, list) and all(isinstance(v, str) for v in value)
    return is_list and len(set(value)) == len(value)


def _checked_table(name: str, value: Any, dtype: np.dtype, ndim: int) -> np.ndarray:
    """Return a copy of a stored array, whose rows lie as those of the fitted one."""
    is_array = isinstance(value, np.ndarray) and value.dtype == dtype
    is_whole = is_array and value.ndim == ndim and value.size > 0
    if not is_whole or not np.isfinite(value).all():
        got = type(value).__name__
        if isinstance(value, np.ndarray):
            got = f"{value.dtype} of the shape {value.shape}"
        raise ModelError(
            f"`{name}` of a stored transformer must be an array of finite {dtype} with "
            f"{ndim} dimensions, got {got}. {_REMEDY}"
        )
    return np.array(value, order="C")

"""The state of fitted transformers as plain data, to be stored and loaded.

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
_REMEDY = "Make the features again."


def table(dtype: Any, ndim: int) -> tuple[np.dtype, int]:
    """Return the rule of an array of finite numbers."""
    return np.dtype(dtype), ndim


class StoredTransformer(TransformerMixin, BaseEstimator):
    """A transformer whose fitted state is plain data.

    A subclass lists in `_stored` what `transform` needs; `_complete` computes what
    follows from it.
    """

    kind: ClassVar[str]  # of the items it describes: "picture" or "text"
    _metric: ClassVar[str]  # the distance that suits its features
    # The rule of each stored attribute: a constant of this module, or `table(...)`.
    _stored: ClassVar[dict[str, Any]]

    def get_state(self) -> dict[str, Any]:
        """Return the fitted state: arrays, numbers, strings and lists of strings."""
        check_is_fitted(self)
        state = {name: getattr(self, name) for name in self._stored}
        is_names = {name for name, rule in self._stored.items() if rule == NAMES}
        return {n: v.tolist() if n in is_names else v for n, v in state.items()}

    @classmethod
    def from_state(cls, params: Mapping[str, Any], state: Mapping[str, Any]) -> Self:
        """Return the fitted transformer of a state."""
        known = {"params": cls._get_param_names(), "state": list(cls._stored)}
        unknown = sorted(set(params) - set(known["params"]))
        if unknown or set(state) != set(known["state"]):
            name = "params" if unknown else "state"
            got = unknown or list(map(str, state)) or ["nothing"]
            raise ModelError(
                f"`{name}` of {cls.__name__} must hold {', '.join(known[name])}, got "
                f"{', '.join(got):.60}. {_REMEDY}"
            )
        transformer = cls(**params)
        for name, rule in cls._stored.items():
            setattr(transformer, name, _checked(name, state[name], rule))
        transformer._complete()
        return transformer

    def _complete(self) -> None:
        """Set what follows from the stored attributes, after checking their shapes."""
        self.metric_ = self._metric

    def _check_shape(self, name: str, *shape: int | None) -> None:
        """Refuse a stored array of another shape; None fits any length."""
        found = getattr(self, name).shape
        if any(s not in (None, f) for s, f in zip(shape, found, strict=True)):
            expected = ", ".join("any" if s is None else str(s) for s in shape)
            raise ModelError(
                f"`{name}` of a stored {type(self).__name__} must have the shape "
                f"({expected}), got {found}. {_REMEDY}"
            )


def _checked(name: str, value: Any, rule: Any) -> Any:
    """Return a stored value in the form of a fitted attribute; refuse a wrong one."""
    got = type(value).__name__
    is_count = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if isinstance(rule, tuple):
        dtype, ndim = rule
        if isinstance(value, np.ndarray):
            is_whole = value.dtype == dtype and value.ndim == ndim and value.size > 0
            if is_whole and np.isfinite(value).all():
                # In C order like the fitted one: another order changes the last bits.
                return np.array(value, order="C")
            got = f"{value.dtype} of the shape {value.shape}"
        rule = f"an array of finite {dtype} with {ndim} dimensions"
    elif rule == COUNT and is_count and value >= 0:
        return int(value)
    elif rule == TEXT and isinstance(value, str):
        return value
    elif rule == NAMES and isinstance(value, list):
        if all(isinstance(v, str) for v in value) and len(set(value)) == len(value):
            return np.array(value, dtype=object)
    raise ModelError(
        f"`{name}` of a stored transformer must be {rule}, got {got}. {_REMEDY}"
    )

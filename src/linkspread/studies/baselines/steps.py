"""Functions that are called one after the other, and can be stored."""

from collections.abc import Callable
from typing import Any


class Steps:
    """Call functions one after the other.

    A plain object and not a closure, so that a fitted model can be pickled.
    """

    def __init__(self, *functions: Callable[[Any], Any]) -> None:
        self.functions = functions

    def __call__(self, value: Any) -> Any:
        """Return what the last function makes of a value."""
        for function in self.functions:
            value = function(value)
        return value

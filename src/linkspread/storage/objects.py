"""Objects of known classes as a JSON tree and arrays, and back.

Only classes that a registry lists can be stored, and only what it lists of them. Each
object is a node of a flat list and stands after all that it holds, so that reading
needs no recursion into objects and can meet no circle.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.ground.errors import LinkspreadError, ModelError
from linkspread.storage.decoding import Decoder
from linkspread.storage.encoding import Encoder
from linkspread.storage.folder import Content
from linkspread.storage.kinds import Kind


@dataclass(frozen=True)
class Stored:
    """How objects of one class are stored."""

    of: type
    kinds: Mapping[str, Kind]
    take: Callable[[Any], Mapping[str, Any]] | None = None
    make: Callable[..., Any] | None = None
    check: Callable[[Any], bool] | None = None

    @property
    def name(self) -> str:
        """Name of the class in the tree."""
        return self.of.__name__

    def fields_of(self, value: Any) -> dict[str, Any]:
        """Return the fields of an object."""
        if self.take is not None:
            return dict(self.take(value))
        return {name: getattr(value, name) for name in self.kinds}

    def build(self, fields: Mapping[str, Any]) -> Any:
        """Return the object of these fields, if it can be one."""
        if set(fields) != set(self.kinds):
            raise ModelError(
                f"a {self.name} must have {', '.join(self.kinds)}, got "
                f"{', '.join(fields)!s:.80}. Save the model again."
            )
        for name, kind in self.kinds.items():
            if not kind.accepts(fields[name]):
                raise ModelError(
                    f"`{name}` of a {self.name} must be {kind.name}, got "
                    f"{_describe(fields[name])}. Save the model again."
                )
        value = (self.make or self.of)(**fields)
        if self.check is not None and not self.check(value):
            raise ModelError(
                f"the parts of a {self.name} must fit each other in size, and do not. "
                "Save the model again."
            )
        return value


class Registry:
    """The classes that can be stored."""

    def __init__(self, stored: Iterable[Stored]) -> None:
        self.by_name = {own.name: own for own in stored}

    def encode(self, root: Mapping[str, Any], *, about: dict[str, Any]) -> Content:
        """Return values by name as what a folder holds."""
        encoder = Encoder(self)
        tree = {name: encoder.encode(value, name) for name, value in root.items()}
        return Content(
            tree={"objects": encoder.nodes, "root": tree},
            arrays=encoder.arrays,
            ids=encoder.ids,
            about=about,
        )

    def decode(
        self, content: Content, *, finish: Callable[[dict[str, Any]], Any]
    ) -> Any:
        """Return what is made of a folder, each part checked before it is used."""
        try:
            return finish(Decoder(self, content).decode_all())
        except ModelError:
            raise
        except LinkspreadError as error:
            raise ModelError(f"{error} (in a stored model)") from error
        # What is stored may be of any form; whatever breaks on it, it is its fault.
        except (ArithmeticError, LookupError, RuntimeError, TypeError) as error:
            raise ModelError(_unreadable(error)) from error
        except (AttributeError, ValueError) as error:
            raise ModelError(_unreadable(error)) from error


def _unreadable(error: Exception) -> str:
    """Return the sentence about a tree on which the reader broke."""
    return (
        f"objects of a model must be as they were saved, and these cannot be put "
        f"together ({type(error).__name__}: {error!s:.80}). Save the model again."
    )


def _describe(value: Any) -> str:
    """Return a value for a message, but never an array."""
    if isinstance(value, np.ndarray) or sparse.issparse(value):
        return f"{value.dtype} of shape {value.shape}"
    return f"{type(value).__name__}"

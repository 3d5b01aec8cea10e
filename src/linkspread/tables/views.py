"""All views of a fit, as they were read."""

import warnings
from dataclasses import dataclass
from typing import Any

from linkspread.ground.errors import ColumnWarning
from linkspread.ground.progress import announce
from linkspread.tables.doubts import tell_doubts
from linkspread.tables.frames import Table


@dataclass(frozen=True)
class Views:
    """The views of a fit, checked.

    Attributes
    ----------
    read : dict from str to Table
        With values in float32 or float64, and with ids where items have any.
    """

    read: dict[str, Table]

    @property
    def tables(self) -> dict[str, Any]:
        """The numbers of each view, ndarray or csr_array."""
        return {view: own.values for view, own in self.read.items()}

    @property
    def ids(self) -> dict[str, Any]:
        """The ids of each view's items, or their number."""
        return {
            view: own.shape[0] if own.ids is None else own.ids
            for view, own in self.read.items()
        }

    @property
    def columns(self) -> dict[str, tuple[str, ...] | None]:
        """The names of the columns that are used; None where they have none."""
        return {view: own.columns for view, own in self.read.items()}

    def tell(self, *, verbose: bool = False) -> dict[str, str]:
        """Say which columns are used, and warn of those that may be no features.

        Parameters
        ----------
        verbose : bool, default=False
            Log at level INFO instead of DEBUG.

        Returns
        -------
        told : dict from str to str
            What is used of each view.
        """
        for view, own in self.read.items():
            announce(f"{view}: {own}", verbose=verbose)
            doubts = tell_doubts(own, view, leave_out=_leave_out)
            if doubts:
                warnings.warn(doubts, ColumnWarning, stacklevel=5)
        return {view: str(own) for view, own in self.read.items()}


def _leave_out(view: str, names: list[str]) -> str:
    """Return what leaves columns out of a fit."""
    return f"columns={{{view!r}: {names}}}"

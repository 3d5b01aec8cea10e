"""What can be asked for the scores of some pairs."""

from typing import Any, Protocol


class ScoreBlock(Protocol):
    """Scores of some items of a view against some items of another."""

    def __call__(self, source: str, target: str, *, rows: Any, cols: Any) -> Any:
        """Return the block of shape (n_rows, n_cols) for positions in the views."""

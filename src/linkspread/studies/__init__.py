"""The paper's experiments and fair baselines; the product does not need this room."""

from linkspread.studies import baselines

__all__ = ["baselines"]

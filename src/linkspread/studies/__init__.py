"""The paper's experiments and baselines; nothing outside this package needs them."""

from linkspread.studies import baselines

__all__ = ["baselines"]

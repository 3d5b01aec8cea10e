"""The paper's experiments and fair rivals; nothing of the product needs this room."""

from linkspread.studies import baselines

__all__ = ["baselines"]

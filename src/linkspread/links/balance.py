"""How much cannot-links weigh against must-links.

Taken literally, cannot-links outnumber must-links and the constant part of Z turns
a well-connected item into a high score. On the Wikipedia benchmark that costs a
fifth of the mean average precision, so ``balance="auto"`` is the default.
"""

import math
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from linkspread.ground.errors import LinkError

Array = np.ndarray
Balance = str | float


def check_balance(balance: Any) -> Balance:
    """Return `balance` if it is "auto", "literal" or a number of at least 0."""
    if isinstance(balance, str) and balance in ("auto", "literal"):
        return balance
    is_number = isinstance(balance, Real) and not isinstance(balance, bool)
    if is_number and math.isfinite(balance) and balance >= 0:
        return float(balance)
    raise LinkError(
        f"`balance` must be 'auto', 'literal' or a number of at least 0, got "
        f"{balance!r}. 'auto' suits most collections; 0 uses must-links only."
    )


def balance_classes(
    left_mass: Array, right_mass: Array, balance: Balance = "auto"
) -> Array:
    """Return the class-by-class core G of label links ``Z = U G V.T``.

    ``"auto"`` centres Z over the labelled items: what depends only on the row's
    class or only on the column's is removed, so that each row and column sums to
    zero. Where two rare classes would come out above chance their link is set to 0,
    so that a cannot-link never becomes a must-link. Where one side has a single class
    all rows, or columns, are alike and centring would leave nothing; cannot-links are
    then scaled until both kinds weigh the same in total.
    """
    identity = np.eye(len(left_mass))
    must = float(left_mass @ right_mass)
    cannot = float(left_mass.sum() * right_mass.sum()) - must
    if balance != "auto" or must <= 0 or cannot <= 0:
        # With links of one kind only there is nothing to balance.
        weight = balance if isinstance(balance, float) else 1.0
        return identity - weight * (1 - identity)
    if min(np.count_nonzero(left_mass), np.count_nonzero(right_mass)) == 1:
        return identity - must / cannot * (1 - identity)
    left_share = left_mass / left_mass.sum()
    right_share = right_mass / right_mass.sum()
    core = identity - right_share[:, None] - left_share[None, :]
    core += left_share @ right_share
    # The diagonal is at least (1 - left_share) * (1 - right_share), but for rounding.
    return np.where(identity > 0, np.maximum(core, 0.0), np.minimum(core, 0.0))


def balance_pairs(
    pairs: sparse.csr_array, balance: Balance = "auto"
) -> sparse.csr_array:
    """Scale the cannot-links of single judged pairs."""
    weight = cannot_weight(pairs, balance)
    balanced = pairs.copy()
    balanced.data = np.where(pairs.data < 0, weight * pairs.data, pairs.data)
    balanced.eliminate_zeros()
    return balanced


def cannot_weight(pairs: sparse.csr_array, balance: Balance = "auto") -> float:
    """Return what the cannot-links of single judged pairs are multiplied with."""
    must = float(pairs.data[pairs.data > 0].sum())
    cannot = float(-pairs.data[pairs.data < 0].sum())
    if balance == "auto" and must > 0 and cannot > 0:
        return must / cannot
    return balance if isinstance(balance, float) else 1.0

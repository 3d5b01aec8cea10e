"""What a propagation will take, said before it starts."""

import os

from linkspread.propagation.filter import fitted_response, separate, unseen_response

# Of one core, from `filtered_sums` on 300,000 shuffled items in float32: neighbours'
# entries gathered from memory per second. Updates of the running sums mostly hide
# behind them; their rate is a guess on the safe side.
GATHERS_PER_SECOND = 4e8
UPDATES_PER_SECOND = 2e9


def propagation_cost(
    sizes: tuple[int, int],
    n_neighbors: tuple[float, float],
    width: int,
    *,
    alpha: tuple[float, float],
    beta: float,
    tol: float,
    itemsize: int = 8,
) -> tuple[float, int]:
    """Estimate the time and the memory of `spread_links`."""
    right = unseen_response(alpha[::-1], beta)
    responses = (
        fitted_response(alpha, beta),
        unseen_response(alpha, beta),
        lambda l, m: right(m, l),
    )
    separable = separate(responses, tol=tol / 2)
    functions = (len(separable.left), len(separable.right))
    seconds = sum(
        degree * size * width * (edges / GATHERS_PER_SECOND + n / UPDATES_PER_SECOND)
        for degree, size, edges, n in zip(
            separable.degrees, sizes, n_neighbors, functions, strict=True
        )
    )
    sums = sum(n * size for n, size in zip(functions, sizes, strict=True))
    # The sums of both views, two blocks of the recurrence, and the shortened bases,
    # which are a few times wider than the links.
    n_bytes = itemsize * width * (sums + 2 * max(sizes) + 5 * sum(sizes))
    return seconds / (os.cpu_count() or 1), n_bytes

"""Correlation matching: project two views so that linked items agree."""

import sys
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from linkspread.ground.checks import check_count, check_name, check_positive
from linkspread.ground.errors import FewLinksError
from linkspread.links import Links
from linkspread.studies.baselines.correspondences import (
    Covariances,
    correspondences,
    covariances,
)
from linkspread.studies.baselines.matching import Chosen, PairMatching
from linkspread.studies.baselines.preparation import prepare_dense, prepared_rows
from linkspread.studies.baselines.projections import PROJECTIONS
from linkspread.studies.baselines.side import Side, unit_rows

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Projection:
    """Project the rows of one view."""

    prepared: Any
    mean: Array
    weights: Array
    strengths: Array

    def project(self, rows: Any) -> Array:
        """Return the components of rows."""
        return (self.prepared.transform(rows) - self.mean) @ self.weights

    def unit_vectors(self, rows: Any) -> Array:
        """Return the components of rows, scaled to length 1."""
        return unit_rows(self.project(rows))


class CorrelationMatching(PairMatching):
    """Match by correlation analysis: CA alone in [Rasiwasia2010].

    Both views are projected to components in which items that go together agree, and
    compared by their cosine there. Must-links between single items say what goes
    together; where there are none, items of the same class do [Rasiwasia2014].
    Cannot-links have no say.
    """

    PER_VIEW: ClassVar[tuple[str, ...]] = ("scaling", "max_features")

    def __init__(
        self,
        *,
        method: str = "cca",
        n_components: int | None = None,
        reg: float = 0.1,
        power: float = 0.0,
        scaling: Any = "standard",
        max_features: Any = 256,
        random_state: int = 0,
        hubs: int | None = None,
    ) -> None:
        self.method = method
        self.n_components = n_components
        self.reg = reg
        self.power = power
        self.scaling = scaling
        self.max_features = max_features
        self.random_state = random_state
        self.hubs = hubs

    def _learn_pair(
        self, tables: dict[str, Any], links: Links, chosen: Chosen, a: str, b: str
    ) -> tuple[Side, Side]:
        left, right = learn_projections(self, tables, links, chosen, a, b)
        return (
            Side.of(tables[a], left.unit_vectors),
            Side.of(tables[b], right.unit_vectors),
        )


def learn_projections(
    model: Any,
    tables: dict[str, Any],
    links: Links,
    chosen: Chosen,
    a: str,
    b: str,
) -> tuple[Projection, Projection]:
    """Learn the projections of two views from what goes together."""
    method, n_components = _check_parameters(model)
    key = a, b, model.random_state, repr(chosen)

    def learn_from() -> tuple[list[Any], Covariances]:
        prepared = [
            prepare_dense(tables[v], v, random_state=model.random_state, **chosen[v])
            for v in (a, b)
        ]
        X, Y = map(prepared_rows, (tables[a], tables[b]), prepared)
        return prepared, linked_covariances(X, Y, links, a, b)

    prepared, cov = model._once(("covariances", *key), learn_from)
    project = partial(PROJECTIONS[method], cov, reg=model.reg)
    if method == "pls":  # one component after the other
        left, right, strengths = project(n_components)
    else:
        made = model._once(
            ("projections", *key, method, model.reg), lambda: project(sys.maxsize)
        )
        left, right, strengths = (own[..., :n_components] for own in made)
    # Half of the weight on each side makes the whole of it in the inner product.
    weights = (strengths / strengths[0]) ** (model.power / 2)
    return (
        Projection(prepared[0], cov.mean_x, left * weights, strengths),
        Projection(prepared[1], cov.mean_y, right * weights, strengths),
    )


def linked_covariances(X: Array, Y: Array, links: Links, a: str, b: str) -> Covariances:
    """Return the covariances of two views over their must-links, which must vary."""
    cov = covariances(X, correspondences(links, a, b), Y)
    if not np.any(cov.xy):
        raise FewLinksError(
            f"views {a!r} and {b!r} must vary together over their must-links, and "
            f"nothing does, got {links!r}. Add must-links between other items."
        )
    return cov


def check_components(n_components: int | None) -> int:
    """Return the largest number of components; None is no limit."""
    if n_components is None:
        return sys.maxsize
    remedy = "None keeps all."
    return check_count(n_components, name="n_components", remedy=remedy)


def _check_parameters(model: Any) -> tuple[str, int]:
    """Return the method and the largest number of components."""
    method = check_name(model.method, PROJECTIONS, name="method")
    check_positive(model.reg, name="reg", remedy="The default is 0.1.", zero=True)
    check_positive(model.power, name="power", remedy="0 weighs none.", zero=True)
    return method, check_components(model.n_components)

"""Baselines that classify pairs of rows: logistic regression, dedupe and splink.

Each is fitted to judged pairs and gives the probability of any pairs. dedupe and splink
compare and classify as they do by default; their search for candidates is replaced by
the candidates of the study.
"""

import logging
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, Self

import numpy as np
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from linkspread.features.catalogues import read_numbers
from linkspread.features.tokens import tokenize
from linkspread.learning.maps import unit_rows

Array = np.ndarray

N_HUBS = 10
C_GRID = np.logspace(-3, 3, 10)


@dataclass
class Catalogue:
    """Two tables of texts, and the cosines of their rows."""

    views: Mapping[str, Any]
    columns: dict[str, Mapping[str, list[str]]]
    compare: Mapping[str, tuple[Any, Any]]

    @cached_property
    def cosines(self) -> Array:
        """Cosines of all rows; these catalogues are small."""
        one, other = map(unit_rows, self.views.values())
        return np.asarray((one @ other.T).todense())

    def cosine(self, i: Array, j: Array) -> Array:
        """Return the cosines of some pairs."""
        return self.cosines[i, j]

    @cached_property
    def tables(self) -> list[tuple[Array, Array, Array]]:
        """Cosines and corrected ones, both ways: values, ranks and two largest."""
        S = self.cosines
        near = [np.sort(own, axis=1)[:, -N_HUBS:].mean(axis=1) for own in (S, S.T)]
        corrected = 2 * S - near[0][:, None] - near[1]
        found = []
        for own in (S, S.T, corrected, corrected.T):
            ranks = np.argsort(np.argsort(-own, axis=1), axis=1)
            found.append((own, ranks, np.partition(own, -2, axis=1)[:, -2:]))
        return found

    def similarities(self, i: Array, j: Array) -> Array:
        """Return cosines, ranks, gaps and similarities by column of some pairs."""
        found = []
        for k, (own, ranks, top) in enumerate(self.tables):
            rows, columns = (j, i) if k % 2 else (i, j)
            value = own[rows, columns]
            rival = np.where(value == top[rows, 1], top[rows, 0], top[rows, 1])
            found += [np.log1p(ranks[rows, columns]), value - rival]
            found += [] if k % 2 else [value]
        for one, other in self.compare.values():
            if one.ndim == 1:
                with np.errstate(divide="ignore", invalid="ignore"):
                    ratio = np.abs(np.log(one[i] / other[j]))
                is_known = np.isfinite(ratio)
                found += [np.where(is_known, np.minimum(ratio, 2), 0), is_known]
            else:
                A, B = unit_rows(one)[i], unit_rows(other)[j]
                found.append(np.asarray(A.multiply(B).sum(axis=1)).ravel())
        return np.column_stack(found).astype(float)

    @cached_property
    def kinds(self) -> dict[str, bool]:
        """Columns of both tables, and whether they hold numbers."""
        first, second = self.columns.values()
        return {
            name: all(read_numbers(own[name]) is not None for own in (first, second))
            for name in first
            if name in second
        }


class LogisticPairs:
    """Logistic regression on similarities, regularised by cross-validation."""

    is_held_out = True

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    def fit(self, i: Array, j: Array, y: Array) -> Self:
        """Fit to judged pairs."""
        n_folds = int(min(5, y.sum(), (~y).sum()))
        model: Any = LogisticRegression(max_iter=2000)
        if n_folds >= 2:
            model = LogisticRegressionCV(
                Cs=C_GRID, cv=n_folds, scoring="neg_log_loss", max_iter=2000
            )
        self.model_ = make_pipeline(StandardScaler(), model)
        with warnings.catch_warnings():
            # Changes of defaults to come, and folds that hardly converge.
            warnings.simplefilter("ignore")
            self.model_.fit(self.catalogue.similarities(i, j), y)
        return self

    def probability(self, i: Array, j: Array) -> Array:
        """Return the probability of pairs."""
        return self.model_.predict_proba(self.catalogue.similarities(i, j))[:, 1]


class DedupePairs:
    """The comparisons and the classifier of dedupe, with its own choice of C."""

    is_held_out = True

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    def _distances(self, i: Array, j: Array) -> Array:
        """Return what dedupe compares records by."""
        from dedupe import variables
        from dedupe.datamodel import DataModel

        kept = vars(self.catalogue).get("dedupe")
        if kept is None:
            fields: list[Any] = []
            tables = list(self.catalogue.columns.values())
            for name, is_number in self.catalogue.kinds.items():
                if is_number:
                    fields.append(variables.Price(name, has_missing=True))
                    continue
                corpus = [text for own in tables for text in own[name] if text]
                fields.append(variables.String(name, has_missing=True))
                fields.append(variables.Text(name, has_missing=True, corpus=corpus))
            records = [self._records(own) for own in tables]
            known: dict[tuple[int, int], Array] = {}
            kept = vars(self.catalogue)["dedupe"] = DataModel(fields), records, known
        model, (left, right), known = kept
        missing = [
            own for own in zip(i.tolist(), j.tolist(), strict=True) if own not in known
        ]
        if missing:
            rows = model.distances([(left[a], right[b]) for a, b in missing])
            known |= dict(zip(missing, np.nan_to_num(rows), strict=True))
        return np.array(
            [known[own] for own in zip(i.tolist(), j.tolist(), strict=True)]
        )

    def _records(self, columns: Mapping[str, list[str]]) -> list[dict[str, Any]]:
        """Return the rows of a table as dedupe reads them."""
        cells: dict[str, list[Any]] = {}
        for name, is_number in self.catalogue.kinds.items():
            if is_number:
                numbers = read_numbers(columns[name])
                assert numbers is not None
                cells[name] = [own if own > 0 else None for own in numbers.tolist()]
            else:
                cells[name] = [own.strip().lower() or None for own in columns[name]]
        return [
            dict(zip(cells, row, strict=True))
            for row in zip(*cells.values(), strict=True)
        ]

    def fit(self, i: Array, j: Array, y: Array) -> Self:
        """Fit to judged pairs."""
        import dedupe
        from dedupe import variables
        from sklearn.base import clone

        linker = dedupe.RecordLink([variables.String("any")], num_cores=0)
        folds = int(min(5, y.sum(), (~y).sum()))
        self.model_ = clone(linker.classifier).set_params(n_jobs=1, cv=folds)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model_.fit(self._distances(i, j), y)
        return self

    def probability(self, i: Array, j: Array) -> Array:
        """Return the probability of pairs."""
        return self.model_.predict_proba(self._distances(i, j))[:, 1]


class SplinkPairs:
    """The weights of splink: u by random pairs, m by judged must-links."""

    # It fits few numbers, and takes too long for folds.
    is_held_out = False

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue

    def fit(self, i: Array, j: Array, y: Array) -> Self:
        """Keep judged pairs; splink reads them with the pairs it scores."""
        self.judged_ = i[y], j[y]
        self.share_ = float(y.mean())
        return self

    def probability(self, i: Array, j: Array) -> Array:
        """Return the probability of pairs."""
        import pandas as pd
        import splink.comparison_library as compared
        from splink import Linker, SettingsCreator, block_on
        from splink.backends.duckdb import DuckDBAPI

        logging.getLogger("splink").setLevel(logging.ERROR)
        database, frames = DuckDBAPI(), []
        texts = [
            name for name, is_number in self.catalogue.kinds.items() if not is_number
        ]
        for side, (own, columns) in enumerate(
            zip((i, j), self.catalogue.columns.values(), strict=True)
        ):
            n_rows = len(next(iter(columns.values())))
            order = np.argsort(own, kind="stable")
            stops = np.searchsorted(own[order], np.arange(n_rows + 1))
            frame: dict[str, Any] = {"unique_id": np.arange(n_rows)}
            for name in texts:
                frame[name] = [text.strip().lower() or None for text in columns[name]]
                words = [sorted(set(tokenize(text))) for text in columns[name]]
                frame[f"{name}_words"] = [found or None for found in words]
            frame["pairs"] = [order[a:b].tolist() for a, b in pairwise(stops)]
            frames.append(
                database.register(
                    pd.DataFrame(frame), dataset_display_name=("ours", "theirs")[side]
                )
            )
        comparisons: list[Any] = []
        for name in texts:
            if name != "description":  # of hundreds of letters
                levels = [0.95, 0.85, 0.7]
                comparisons.append(compared.JaroWinklerAtThresholds(name, levels))
            comparisons.append(
                compared.ArrayIntersectAtSizes(f"{name}_words", [6, 4, 3, 2, 1])
            )
        settings = SettingsCreator(
            link_type="link_only",
            comparisons=comparisons,
            blocking_rules_to_generate_predictions=[
                block_on("pairs", arrays_to_explode=["pairs"])
            ],
            probability_two_random_records_match=min(max(self.share_, 1e-4), 0.999),
        )
        labels = pd.DataFrame(
            {
                "source_dataset_l": "ours",
                "unique_id_l": self.judged_[0],
                "source_dataset_r": "theirs",
                "unique_id_r": self.judged_[1],
                "clerical_match_score": 1.0,
            }
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            linker = Linker(frames, settings, log_level=None)
            linker.training.estimate_u_using_random_sampling(max_pairs=1e5, seed=1)
            known = database.register(labels, dataset_display_name="labels")
            training: Any = linker.training
            training.estimate_m_from_pairwise_labels(known)
            scored: Any = linker.inference.predict()
            found = scored.as_pandas_dataframe()
        size = int(j.max()) + 1
        keys = found["unique_id_l"].to_numpy() * size + found["unique_id_r"].to_numpy()
        order = np.argsort(keys)
        places = np.searchsorted(keys[order], i * size + j)
        # Probabilities near 1 round to it; weights keep the order.
        weights = found["match_weight"].to_numpy()[order][places]
        return 1 / (1 + np.exp2(-weights / 4))


CLASSIFIERS: dict[str, Any] = {"logistic regression": LogisticPairs}
# Optional packages; a study without them says so.
for _name, _make in (("dedupe", DedupePairs), ("splink", SplinkPairs)):
    if find_spec(_name) is not None:
        CLASSIFIERS[_name] = _make

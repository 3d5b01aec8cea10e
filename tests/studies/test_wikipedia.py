"""Baselines on the Wikipedia benchmark reach what was published, or more."""

import numpy as np
import pytest

from linkspread import Links
from linkspread.datasets import load_wikipedia
from linkspread.metrics import mean_average_precision
from linkspread.studies.baselines import (
    CorrelationSemantics,
    LabelSpreadingMatching,
    SemanticMatching,
)

HISTOGRAMS = {"text": "hellinger", "image": "chi2"}


@pytest.fixture(scope="module")
def wikipedia(data_folder):
    return load_wikipedia(data_folder / "wikipedia")


def average_map(model, wikipedia):
    """Return the MAP of both directions, test items against test items."""
    test, labels = wikipedia.test, wikipedia.labels.copy()
    labels[test] = -1
    links = Links.from_labels({"text": labels, "image": labels})
    links = links + Links.from_matched(("text", "image"), len(wikipedia.train))
    model.fit(wikipedia.views, links)
    y = wikipedia.labels[test]
    scores = model.scores("image", "text", rows=test, cols=test)
    both = mean_average_precision(scores, y, y), mean_average_precision(scores.T, y, y)
    return np.mean(both)


@pytest.mark.parametrize(
    ("method", "published"), [("cca", 0.252), ("cfa", 0.247), ("pls", 0.220)]
)
def test_correlation_then_semantics_reaches_table_1(method, published, wikipedia):
    found = average_map(CorrelationSemantics(method=method), wikipedia)
    assert published < found < published + 0.05


def test_label_spreading_reaches_what_was_measured_before(wikipedia):
    model = LabelSpreadingMatching(metric=HISTOGRAMS)
    assert average_map(model, wikipedia) > 0.278


@pytest.mark.slow
def test_support_vector_machines_reach_what_was_measured_before(wikipedia):
    model = SemanticMatching(classifier="svm", kernel=HISTOGRAMS)
    assert average_map(model, wikipedia) > 0.289

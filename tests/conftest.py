"""Fixtures that every test may use."""

import os
from pathlib import Path

import hypothesis
import numpy as np
import pytest

# A picture must not need a screen, and a slow machine must not fail a property.
os.environ.setdefault("MPLBACKEND", "Agg")
hypothesis.settings.register_profile("house", deadline=None, derandomize=True)
hypothesis.settings.load_profile("house")


@pytest.fixture
def rng():
    """Return a generator of one test's own, always in the same state."""
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def data_folder():
    """Return the folder of benchmark data sets, or skip the test without it."""
    folder = os.environ.get("LINKSPREAD_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("set LINKSPREAD_DATA to the folder of the data sets to run this")
    return Path(folder)

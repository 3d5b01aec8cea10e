"""Saves that are killed: the folder holds the old model or the new one, always."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "support" / "kill_saves.py"


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Return what was found after each kill."""
    if not hasattr(os, "fork"):
        pytest.skip("processes cannot be forked here")
    folder = tmp_path_factory.mktemp("kills") / "model"
    threads = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(PROGRAM), str(folder)],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, **dict.fromkeys(threads, "1")},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_fifty_kills_at_random_moments_leave_a_model(told):
    # That the model is one of the two, to the bit, was seen before it was told.
    assert len(told["random"]) == 50
    n_killed = sum(killed for _, _, killed in told["random"])
    n_replaced = sum(before != after for before, after, _ in told["random"])
    assert n_killed >= 5
    assert 0 < n_replaced < 50


@pytest.mark.slow
def test_a_kill_before_any_operation_on_files_leaves_a_model(told):
    *killed, last = told["each"]
    assert len(killed) > 10
    assert all(was_killed for _, _, was_killed in killed)
    before, after, was_killed = last
    assert not was_killed
    assert before != after
    # There is one moment from which on the new model is there.
    replaced = [before != after for before, after, _ in told["each"]]
    assert replaced == sorted(replaced)


@pytest.mark.slow
def test_the_next_save_clears_up_after_killed_ones(told):
    manifest, *data = sorted(told["left"], reverse=True)
    assert manifest == "manifest.json"
    assert len(data) == 1
    assert all(re.match(r"arrays-[0-9a-f]{32}\.", name) for name in data)

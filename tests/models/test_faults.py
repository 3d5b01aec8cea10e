"""Work on files, killed or out of space at each point where it changes one.

By default every seventh point of long pieces of work is tried; with LINKSPREAD_FAULTS=1
every point of all. `pytest -s` prints how many there are.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[1] / "support"
STEPS = {
    "judge": 2,
    "undo": 2,
    "apply": 2,
    "save": 2,
    "export": 2,
    "fit": 7,
    "refit": 7,
    "featurize": 7,
}
# One thread each, none of OpenMP: the program is forked at each point.
THREADS = {
    "NUMBA_NUM_THREADS": "1",
    "NUMBA_THREADING_LAYER": "workqueue",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Return the compiled library that interrupts a program."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("no C compiler, or another system: nothing can be interrupted")
    path = tmp_path_factory.mktemp("faults") / "faults.so"
    source = SUPPORT / "faults.c"
    options = ["-shared", "-fPIC", "-O1", "-o", path, source, "-ldl"]
    subprocess.run([compiler, *options], check=True)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("work", STEPS)
def test_nothing_is_lost_wherever_it_is_interrupted(work, library, tmp_path):
    step = 1 if os.environ.get("LINKSPREAD_FAULTS") else STEPS[work]
    program = SUPPORT / "fault_points.py"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", program, tmp_path, work, str(step)],
        capture_output=True,
        text=True,
        timeout=1800,
        env={**os.environ, **THREADS, "LD_PRELOAD": str(library)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    print(f"{work}: {found['points']} points, interrupted {found['tried']} times")
    assert found["points"] > 10
    assert found["wrong"] == []

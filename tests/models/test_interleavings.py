"""Several processes judge, undo, apply, load and refit: each judgement counts once.

Each "process" has the folder open by its path, with the model that it loaded last, or
serves it as a page does. They take turns in any order that hypothesis thinks of; at
the end the model has exactly the judgements that count in the store.
"""

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

import linkspread as ls
from judged_models import BETWEEN, PAIRS, fit_model, make_folder
from link_store_places import execute
from postgres_server import running_server

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

PROCESS = st.integers(0, 2)
PERSON = st.sampled_from(["ann", "bob"])
ITEM = st.integers(0, 3)
VERDICT = st.sampled_from(["must", "cannot", "unsure"])


class Processes(RuleBasedStateMachine):
    """Three processes share a model folder and its store."""

    def place(self):
        """Return the place of the store, None for a file in the folder."""
        return None

    def __init__(self):
        super().__init__()
        self.cleaning = ExitStack()
        root = Path(tempfile.mkdtemp(prefix="linkspread-turns"))
        self.cleaning.callback(shutil.rmtree, root, ignore_errors=True)
        self.path, self.store = make_folder(root / "model"), self.place()
        if self.store is not None:
            shutil.rmtree(self.path)
            given = {BETWEEN: PAIRS}
            ls.ModelFolder.create(self.path, fit_model(), pairs=given, store=self.store)
        self.folders = [self.open() for _ in range(3)]
        self.ids = []

    def open(self):
        return ls.ModelFolder(self.path, store=self.store)

    @rule(process=PROCESS, who=PERSON, left=ITEM, right=ITEM, verdict=VERDICT)
    def judge(self, process, who, left, right, verdict):
        pair = f"t{left}", f"i{right}"
        id = self.folders[process].judge(*pair, verdict, between=BETWEEN, who=who)
        self.ids.append(id)

    @precondition(lambda self: self.ids)
    @rule(process=PROCESS, which=st.integers(0, 99))
    def undo(self, process, which):
        id = self.ids.pop(which % len(self.ids))
        self.folders[process].undo(id, who="ann")

    @rule(process=PROCESS)
    def apply(self, process):
        self.folders[process].apply()
        assert self.folders[process].pending() == 0
        self.compare(self.folders[process].model)

    @rule(process=PROCESS)
    def load(self, process):
        self.folders[process] = self.open()
        assert self.folders[process].model.links_.judged(*BETWEEN).nnz

    @rule(process=PROCESS)
    def refit(self, process):
        """Fit again to the whole store, as `linkspread fit --overwrite` does."""
        with self.folders[process].store() as store:
            judged = store.pairs()
        ((between, columns),) = judged.columns.items()
        pairs = list(zip(*columns, strict=True))
        pairs = [(a, b, w) for a, b, w in pairs]
        assert set(between) == set(BETWEEN)
        if between != BETWEEN:
            pairs = [(b, a, w) for a, b, w in pairs]
        ls.ModelFolder.create(
            self.path, fit_model(pairs), applied=judged.number, store=self.store
        )

    def compare(self, model):
        """Check that a model has the latest judgement of each person once."""
        with self.open().store() as store:
            columns = store.pairs().columns
        wanted = np.zeros((40, 30))
        for between, own in columns.items():
            for a, b, w in zip(*own, strict=True):
                a, b = (a, b) if between == BETWEEN else (b, a)
                wanted[int(a[1:]), int(b[1:])] += w
        found = model.links_.judged(*BETWEEN)
        np.testing.assert_array_equal(found.toarray(), wanted)

    def teardown(self):
        folder = self.open()
        folder.apply()
        self.compare(ls.load(self.path))
        self.cleaning.close()


class ProcessesOverPostgres(Processes):
    """The same with a store in PostgreSQL."""

    server = ""

    def place(self):
        name = f"turns{uuid4().hex[:12]}"
        execute(self.server, f"CREATE DATABASE {name}")
        drop = f"DROP DATABASE {name} WITH (FORCE)"
        self.cleaning.callback(execute, self.server, drop)
        return self.server.replace("/postgres?", f"/{name}?")


def turns(n_examples):
    """Return how often, and how many turns each time."""
    checks = list(HealthCheck)
    return settings(
        max_examples=n_examples,
        stateful_step_count=25,
        deadline=None,
        derandomize=True,
        suppress_health_check=checks,
    )


class TestProcesses(Processes.TestCase):
    settings = turns(40)


def test_the_same_with_postgres():
    from hypothesis.stateful import run_state_machine_as_test

    with running_server() as server:
        ProcessesOverPostgres.server = server
        run_state_machine_as_test(ProcessesOverPostgres, settings=turns(8))

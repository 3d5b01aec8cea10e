"""Several processes share a model and its store: each judgement counts once.

They judge, undo, apply, load, serve and refit.

`pytest -s` prints how many interleavings were tried.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from contextlib import ExitStack, contextmanager
from functools import partial
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
from linkspread.ground.errors import LinkspreadError
from linkspread.models import model_folder
from linkspread.storage import LinkStore
from linkspread.web.live_model import LiveModel
from postgres_server import running_server

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

PROCESS = st.integers(0, 2)
PERSON = st.sampled_from(["ann", "bob"])
ITEM = st.integers(0, 3)
VERDICT = st.sampled_from(["must", "cannot", "unsure"])


def refit(folder):
    """Fit again to the whole store, as `linkspread fit --overwrite` does."""
    with folder.store() as store:
        judged = store.pairs()
    pairs = []
    for between, columns in judged.columns.items():
        assert set(between) == set(BETWEEN)
        for a, b, w in zip(*columns, strict=True):
            pairs.append((a, b, w) if between == BETWEEN else (b, a, w))
    given = {"applied": judged.number, "store": folder.place}
    ls.ModelFolder.create(folder.path, fit_model(pairs), **given)


def compare(model, folder):
    """Check that a model has the latest judgement of each person once."""
    with folder.store() as store:
        columns = store.pairs().columns
    wanted = np.zeros((40, 30))
    for between, own in columns.items():
        for a, b, w in zip(*own, strict=True):
            a, b = (a, b) if between == BETWEEN else (b, a)
            wanted[int(a[1:]), int(b[1:])] += w
    found = model.links_.judged(*BETWEEN)
    np.testing.assert_array_equal(found.toarray(), wanted)


class Processes(RuleBasedStateMachine):
    """Three processes share a model folder and its store, and take turns.

    Each has the folder open by its path, with the model that it loaded last, or serves
    it as a page does.
    """

    n_turns = 0

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
        self.ids, self.pages = [], {}

    def open(self):
        return ls.ModelFolder(self.path, store=self.store)

    @rule(process=PROCESS, who=PERSON, left=ITEM, right=ITEM, verdict=VERDICT)
    def judge(self, process, who, left, right, verdict):
        pair = f"t{left}", f"i{right}"
        id = self.folders[process].judge(*pair, verdict, between=BETWEEN, who=who)
        self.ids.append(id)
        Processes.n_turns += 1

    @precondition(lambda self: self.ids)
    @rule(process=PROCESS, which=st.integers(0, 99))
    def undo(self, process, which):
        id = self.ids.pop(which % len(self.ids))
        self.folders[process].undo(id, who="ann")

    @rule(process=PROCESS)
    def apply(self, process):
        self.folders[process].apply()
        assert self.folders[process].pending() == 0
        compare(self.folders[process].model, self.folders[process])

    @rule(process=PROCESS)
    def load(self, process):
        self.folders[process] = self.open()
        assert self.folders[process].model.links_.judged(*BETWEEN).nnz

    @rule(process=PROCESS)
    def serve(self, process):
        if process in self.pages:
            self.pages.pop(process).store.close()
        folder = self.open()
        model, number = folder.load()
        self.pages[process] = LiveModel(model, folder.store(), absorbed=number)
        self.follow(process)

    @precondition(lambda self: self.pages)
    @rule(process=PROCESS)
    def follow(self, process):
        for page in [self.pages[process]] if process in self.pages else []:
            page.follow()
            compare(page.shown.model, self.open())

    @rule(process=PROCESS)
    def refit(self, process):
        refit(self.folders[process])

    def teardown(self):
        folder = self.open()
        folder.apply()
        compare(ls.load(self.path), folder)
        for process in list(self.pages):
            self.follow(process)
            self.pages[process].store.close()
        self.cleaning.close()


class ProcessesOverPostgres(Processes):
    """The same with a store in PostgreSQL."""

    server = ""

    def place(self):
        return new_database(self.server, self.cleaning)


def new_database(server, cleaning):
    """Return the URL of a new database of a server, dropped at the end."""
    name = f"turns{uuid4().hex[:12]}"
    execute(server, f"CREATE DATABASE {name}")
    cleaning.callback(execute, server, f"DROP DATABASE {name} WITH (FORCE)")
    return server.replace("/postgres?", f"/{name}?")


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


# What a process does in between what another does, at every step of that one.
NEW = [("t30", "i1", 1.0), ("t31", "i2", -1.0)]


def do_judge(folder):
    folder.judge("t32", "i3", "must", between=BETWEEN, who="bob")


def do_undo(folder):
    with folder.store() as store:
        folder.undo(next(r.id for r in store.judgements() if r.who == "ann"), who="ann")


def do_apply(folder):
    folder.apply()


def do_repair(folder):
    folder.repair()


def do_create(folder):
    """Fit again in Python, to the same pairs as the first time."""
    given = {"pairs": {BETWEEN: PAIRS}, "store": folder.place}
    ls.ModelFolder.create(folder.path, fit_model(), **given)


def do_serve(folder):
    model, number = folder.load()
    with folder.store() as store:
        live = LiveModel(model, store, absorbed=number)
        live.follow()
        # What it shows is of one moment, whatever was judged since.
        tables = live.shown.model.links_.pair_tables
        rows = store.pairs(until=live.shown.number).columns.values()
        n_found = sum(len(table.weights) for _, table in tables)
        assert n_found == sum(len(own.weight) for own in rows)


WORKS = [do_judge, do_undo, do_apply, do_repair, refit, do_create, do_serve]
STEPS = {
    model_folder: ("load", "_checksum", "_read_state", "_write_state"),
    LinkStore: ("changes", "last_number", "pairs", "add", "add_many", "undo"),
    ls.LinkSpreading: ("save",),
}


class Between:
    """Runs something in another thread before a chosen step of this one.

    The thread goes on alone until it is done or waits for a lock.
    """

    def __init__(self, monkeypatch):
        self.main, self.seen, self.chosen = threading.get_ident(), 0, -1
        self.work, self.thread, self.stands = None, None, threading.Event()
        self.errors = []
        for owner, names in STEPS.items():
            for name in names:
                own = getattr(owner, name)
                monkeypatch.setattr(owner, name, self.stepping(own))
        lock = model_folder.locked

        @contextmanager
        def locked(path, *, wait):
            if threading.get_ident() != self.main:
                try:
                    with lock(path, wait=False):
                        pass
                except LinkspreadError:
                    self.stands.set()
            with lock(path, wait=wait):
                yield

        monkeypatch.setattr(model_folder, "locked", locked)

    def stepping(self, own):
        def step(*given, **how):
            if threading.get_ident() == self.main and self.work is not None:
                self.seen += 1
                if self.seen - 1 == self.chosen:
                    self.thread = threading.Thread(target=self.other)
                    self.thread.start()
                    assert self.stands.wait(60)
            return own(*given, **how)

        return step

    def other(self):
        try:
            self.work()
        except BaseException as error:
            self.errors.append(repr(error))
        finally:
            self.stands.set()

    def run(self, first, second, chosen):
        """Do something, with something else at a step; return the steps there are."""
        self.seen, self.chosen, self.thread = 0, chosen, None
        self.stands.clear()
        self.work = second
        try:
            first()
        finally:
            self.work = None
            if self.thread is not None:
                self.thread.join(60)
        assert not self.errors, self.errors
        return self.seen


@pytest.mark.parametrize("first", WORKS, ids=lambda own: own.__name__)
def test_at_every_step_of_one_another_may_do_anything(first, tmp_path, monkeypatch):
    between, n_tried = Between(monkeypatch), 0
    ready = make_folder(tmp_path / "ready")
    ls.ModelFolder(ready).judge_pairs(NEW, between=BETWEEN, who="ann")
    for second in WORKS:
        chosen, n_steps = 0, 1
        while chosen < n_steps:
            path = tmp_path / "model"
            shutil.copytree(ready, path)
            one, other = ls.ModelFolder(path), ls.ModelFolder(path)
            other.load()
            n_steps = between.run(partial(first, one), partial(second, other), chosen)
            folder = ls.ModelFolder(path)
            folder.apply()
            compare(ls.load(path), folder)
            n_judged = 2 + (first is do_judge) + (second is do_judge)
            with folder.store() as store:
                found = [row.who for row in store.judgements(active_only=False)]
                assert sum(who in ("ann", "bob") for who in found) == n_judged
            shutil.rmtree(path)
            chosen, n_tried = chosen + 1, n_tried + 1
    print(f"{n_tried} interleavings of {first.__name__} and another")
    assert n_tried >= 2 * len(WORKS)


N_PROCESSES, N_WORKS = 3, 12


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_processes_at_once(kind, tmp_path):
    program = Path(__file__).parents[1] / "support" / "judge_at_once.py"
    with ExitStack() as cleaning:
        place = None
        if kind == "postgres":
            server = cleaning.enter_context(running_server())
            place = new_database(server, cleaning)
        path, given = tmp_path / "model", {BETWEEN: PAIRS}
        ls.ModelFolder.create(path, fit_model(), pairs=given, store=place)
        running = [
            subprocess.Popen(
                [sys.executable, "-W", "ignore", program, path, place or "", str(seed)],
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "LINKSPREAD_WORKS": str(N_WORKS)},
            )
            for seed in range(N_PROCESSES)
        ]
        said = [own.communicate(timeout=600)[0] for own in running]
        assert [own.returncode for own in running] == [0] * N_PROCESSES
        done = [json.loads(own.splitlines()[-1]) for own in said]
        folder = ls.ModelFolder(path, store=place)
        folder.apply()
        compare(ls.load(path), folder)
        with folder.store() as store:
            stored = [row.id for row in store.changes()]
        ids = [id for own in done for id in own["ids"]]
        assert len(ids) == len(set(ids)) and set(ids) <= set(stored)
        assert len(stored) == len(ids) + len(PAIRS)
        works = sum(map(Counter, (own["works"] for own in done)), Counter())
        print(f"{N_PROCESSES} processes at once over {kind}: {dict(works)}")

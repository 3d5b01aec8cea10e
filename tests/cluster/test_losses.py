"""A worker that is killed in the middle of a fit changes nothing in its result."""

import os
import signal

import numpy as np
import pytest

import linkspread as ls
from cluster_cases import largest_difference, local_cluster, problem
from linkspread import cluster
from linkspread.cluster.session import Session

distributed = pytest.importorskip("distributed")
SchedulerPlugin = distributed.SchedulerPlugin
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client():
    with local_cluster(3) as client:
        yield client


def kill_holder(client, futures):
    """Kill the worker that holds the first result, as the system would."""
    distributed.wait(futures, return_when="FIRST_COMPLETED")
    done = next(future for future in futures if future.done())
    (holders,) = client.who_has([done]).values()
    (pid,) = client.run(os.getpid, workers=[holders[0]]).values()
    os.kill(pid, signal.SIGKILL)
    return pid


class Murder:
    """Kill a worker when a stage of the fit begins to give results."""

    def __init__(self, client, stage):
        self.client, self.stage, self.killed = client, stage, []

    def __call__(self, method):
        def watched(session, futures, label):
            if label == self.stage and not self.killed:
                self.killed.append(kill_holder(self.client, futures))
            return method(session, futures, label)

        return watched


STAGES = [
    ("knn", "neighbours of text"),
    ("knn", "edges of text"),
    ("knn", "normalising the graph of text"),
    ("knn", "neighbours of image"),
    ("knn", "spreading over text"),
    ("knn", "spreading over image"),
    ("csr", "sparse codes of image"),
    ("cwa", "adjusting the graph of image"),
]


@pytest.mark.parametrize(("graph", "stage"), STAGES)
def test_a_killed_worker_changes_nothing(client, monkeypatch, graph, stage):
    client.wait_for_workers(3, timeout=120)
    murder = Murder(client, stage)
    for name in ("finish", "wait"):
        monkeypatch.setattr(Session, name, murder(getattr(Session, name)))
    views, links = problem()
    parameters = {"n_neighbors": 10, "graph": graph}
    one = ls.LinkSpreading(**parameters).fit(views, links)
    other = cluster.fit(ls.LinkSpreading(**parameters), views, links, client=client)
    assert len(murder.killed) == 1
    assert largest_difference(one, other) < 1e-6
    assert np.array_equal(
        other.graphs_["text"].affinity_.indptr, one.graphs_["text"].affinity_.indptr
    )


STAGES_OF_MAPS = [
    "neighbours of text",
    "spreading over text",
    "heat of text",
    "features of image",
]


@pytest.mark.parametrize("stage", STAGES_OF_MAPS)
def test_a_killed_worker_changes_nothing_in_the_learner(client, monkeypatch, stage):
    client.wait_for_workers(3, timeout=120)
    murder = Murder(client, stage)
    for name in ("finish", "wait"):
        monkeypatch.setattr(Session, name, murder(getattr(Session, name)))
    views, labels = problem()
    links = ls.Links.from_labels(labels)
    one = ls.CrossViewSearch().fit(views, links)
    other = cluster.fit(ls.CrossViewSearch(), views, links, client=client)
    assert len(murder.killed) == 1
    assert largest_difference(one, other) < 1e-5


@pytest.mark.parametrize("stage", ["spreading over image", "vectors of text"])
def test_a_killed_worker_changes_nothing_in_shards(
    client, monkeypatch, tmp_path, stage
):
    client.wait_for_workers(3, timeout=120)
    murder = Murder(client, stage)
    for name in ("finish", "wait"):
        monkeypatch.setattr(Session, name, murder(getattr(Session, name)))
    views, links = problem()
    one = ls.LinkSpreading(n_neighbors=10).fit(views, links)
    shards = cluster.fit_shards(
        ls.LinkSpreading(n_neighbors=10),
        views,
        links,
        client=client,
        output=tmp_path,
    )
    assert len(murder.killed) == 1
    assert largest_difference(one, shards) < 1e-6
    pair = shards.pairs_["text", "image"]
    kept = {file.name for file in (*pair.left.files, *pair.right.files)}
    assert {path.name for path in (tmp_path / "vectors").iterdir()} == kept


class Counting(SchedulerPlugin):
    """Count the blocks of rows that were searched."""

    name = "counting"

    def __init__(self):
        self.n_searches = 0

    def transition(self, key, start, finish, *args, **kwargs):
        is_search = str(key).startswith("_search_block")
        self.n_searches += is_search and finish == "memory"


def test_only_what_was_lost_is_searched_again(client, monkeypatch):
    client.wait_for_workers(3, timeout=120)
    client.register_plugin(Counting())
    murder = Murder(client, "spreading over image")
    monkeypatch.setattr(Session, "wait", murder(Session.wait))
    views, links = problem()
    cluster.fit(ls.LinkSpreading(n_neighbors=10), views, links, client=client)
    n_searches = client.run_on_scheduler(
        lambda dask_scheduler: dask_scheduler.plugins["counting"].n_searches
    )
    n_blocks = 6 + 4  # of 64 rows, of 330 texts and of 210 images
    assert len(murder.killed) == 1
    assert n_blocks < n_searches <= n_blocks + 6

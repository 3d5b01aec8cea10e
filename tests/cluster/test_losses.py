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


@pytest.fixture
def lose_a_worker(client, monkeypatch):
    """Return what kills the holder of the first result of a stage of a fit."""
    client.wait_for_workers(3, timeout=120)
    killed = []

    def kill_holder(futures):
        distributed.wait(futures, return_when="FIRST_COMPLETED")
        done = next(future for future in futures if future.done())
        (holders,) = client.who_has([done]).values()
        (pid,) = client.run(os.getpid, workers=[holders[0]]).values()
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)

    def prepare(stage):
        def watched(session, futures, label):
            if label.startswith(stage) and not killed:
                kill_holder(futures)
            return finish(session, futures, label)

        finish = Session.finish
        monkeypatch.setattr(Session, "finish", watched)

    yield prepare
    assert len(killed) == 1


# Both views go through the same stages; a loss in one view is enough.
STAGES = [
    ("knn", "neighbours of text"),
    ("knn", "edges of text"),
    ("knn", "normalising the graph of text"),
    ("knn", "propagating along text"),
    ("csr", "sparse codes of image"),
    ("cwa", "adjusting the graph of image"),
]


@pytest.mark.parametrize(("graph", "stage"), STAGES)
def test_a_killed_worker_changes_nothing(client, lose_a_worker, graph, stage):
    lose_a_worker(stage)
    views, links = problem()
    parameters = {"n_neighbors": 10, "graph": graph}
    one = ls.LinkSpreading(**parameters).fit(views, links)
    other = cluster.fit(ls.LinkSpreading(**parameters), views, links, client=client)
    assert largest_difference(one, other) < 1e-6
    assert np.array_equal(
        other.graphs_["text"].affinity_.indptr, one.graphs_["text"].affinity_.indptr
    )


# Neighbours and propagation are those of `LinkSpreading`.
@pytest.mark.parametrize("stage", ["heat of text", "features of image"])
def test_a_killed_worker_changes_nothing_in_the_learner(client, lose_a_worker, stage):
    lose_a_worker(stage)
    views, labels = problem()
    links = ls.Links.from_labels(labels)
    one = ls.CrossViewSearch().fit(views, links)
    other = cluster.fit(ls.CrossViewSearch(), views, links, client=client)
    assert largest_difference(one, other) < 1e-5


@pytest.mark.parametrize("stage", ["propagating along image", "vectors of text"])
def test_a_killed_worker_changes_nothing_in_shards(
    client, lose_a_worker, tmp_path, stage
):
    lose_a_worker(stage)
    views, links = problem()
    model = ls.LinkSpreading(n_neighbors=10)
    shards = cluster.fit_shards(model, views, links, client=client, output=tmp_path)
    assert largest_difference(model.fit(views, links), shards) < 1e-6
    kept = {file.name for file in shards.pairs_["text", "image"].files}
    assert {path.name for path in (tmp_path / "vectors").iterdir()} == kept


class Counting(SchedulerPlugin):
    """Count the blocks of rows that were searched."""

    name = "counting"

    def __init__(self):
        self.n_searches = 0

    def transition(self, key, start, finish, *args, **kwargs):
        is_search = str(key).startswith("_search_block")
        self.n_searches += is_search and finish == "memory"


def test_only_what_was_lost_is_searched_again(client, lose_a_worker):
    client.register_plugin(Counting())
    lose_a_worker("propagating along image")
    views, links = problem()
    cluster.fit(ls.LinkSpreading(n_neighbors=10), views, links, client=client)
    n_searches = client.run_on_scheduler(
        lambda dask_scheduler: dask_scheduler.plugins["counting"].n_searches
    )
    n_blocks = 6 + 4  # of 64 rows, of 330 texts and of 210 images
    assert n_blocks < n_searches <= n_blocks + 6

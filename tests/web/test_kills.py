"""A server that is killed: what it acknowledged is there, once, and in its model."""

import os
import threading
import time
import uuid

import pytest
from numpy.testing import assert_allclose

import linkspread as ls
from linkspread.storage import LinkStore
from ports import free_port
from servers import NOT_ANSWERED, Server, ask
from web_sites import N_PICTURES, N_TEXTS, fit_model

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs groups of processes"),
]

N_JUDGES = 4
# Acknowledgements that are awaited before the server is killed, and after it is back.
N_BEFORE, N_AFTER = 25, 10


class Judge(threading.Thread):
    """Judge pair after pair; what is not acknowledged is sent again, by its key."""

    def __init__(self, port, name, acknowledged, stopped):
        super().__init__(daemon=True)
        self.port, self.who = port, name
        self.acknowledged, self.stopped, self.n_again = acknowledged, stopped, 0

    def run(self):
        for k in range(10**6):
            pair = (k * 7) % N_TEXTS, (k * 11 + int(self.who)) % N_PICTURES
            body = {"who": self.who, "verdict": "must", "key": str(uuid.uuid4())}
            body |= {"source": "text", "source_id": f"t{pair[0]}"}
            body |= {"target": "image", "target_id": f"i{pair[1]}"}
            while not self.stopped.is_set():
                try:
                    kept = ask(self.port, "/api/judgements", body)
                    self.acknowledged.append(kept["id"])
                    break
                except NOT_ANSWERED:
                    self.n_again += 1
                    time.sleep(0.05)
            if self.stopped.is_set():
                return


def wait_until(is_true):
    """Wait for something that other threads do."""
    deadline = time.monotonic() + 120
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Return what was acknowledged around a kill, the store, and what is searched."""
    folder = tmp_path_factory.mktemp("killed") / "colours"
    fit_model(tol=1e-7).save(folder)
    port, acknowledged, stopped = free_port(), [], threading.Event()
    servers = [Server(folder, port)]
    judges = [Judge(port, str(k), acknowledged, stopped) for k in range(N_JUDGES)]
    try:
        servers[0].wait()
        for judge in judges:
            judge.start()
        wait_until(lambda: len(acknowledged) >= N_BEFORE)
        servers[0].kill()
        n_before = len(acknowledged)
        servers.append(Server(folder, port))
        servers[1].wait()
        wait_until(lambda: len(acknowledged) >= n_before + N_AFTER)
        stopped.set()
        for judge in judges:
            judge.join(60)
        with LinkStore.open(folder / "judgements.db") as store:
            rows, last = list(store.changes()), store.last_number()
        wait_until(lambda: servers[1].ask("/api/state")["number"] == last)
        path = f"/api/search?source=text&target=image&item=t5&n={N_PICTURES}"
        found = servers[1].ask(path)["results"]
    finally:
        stopped.set()
        for server in servers:
            server.kill()
    n_again = sum(judge.n_again for judge in judges)
    return acknowledged, rows, found, n_again


def test_what_was_acknowledged_is_there_once(killed):
    acknowledged, rows, _, n_again = killed
    # The kill was felt: some judgements had to be sent again.
    assert n_again > 0
    assert len(set(acknowledged)) == len(acknowledged)
    stored = [row.id for row in rows]
    assert set(acknowledged) <= set(stored)
    assert len(set(stored)) == len(stored)
    # What was stored but not acknowledged was sent again and counts once, so that
    # nothing is there that nobody was told of, but what the end cut short.
    assert len(stored) - len(acknowledged) <= N_JUDGES
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))


# Some of the pairs that are judged here were cannot-links of the fit: they add up.
@pytest.mark.filterwarnings("ignore::linkspread.ground.errors.ConflictWarning")
def test_the_model_of_the_restarted_server_knows_all_of_them(killed):
    _, rows, found, _ = killed
    said = {(row.who, row.left_id, row.right_id) for row in rows}
    pairs = [(left, right, 1.0) for _, left, right in sorted(said)]
    model = fit_model(tol=1e-7)
    model.add_links(ls.Links.from_pairs(pairs, between=("text", "image")))
    wanted = model.search("t5", source="text", target="image", n_results=N_PICTURES)
    scores = dict(zip(wanted[0].tolist(), wanted[1].tolist(), strict=True))
    assert_allclose(
        [hit["score"] for hit in found], [scores[hit["id"]] for hit in found], atol=1e-4
    )

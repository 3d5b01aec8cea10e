"""A fit beside the page: compared on what no model knows, taken by a button."""

import time

import numpy as np
import pytest
from fastapi.testclient import TestClient
from numpy.testing import assert_allclose

import linkspread as ls
from linkspread.selection.refitting import share_right
from linkspread.storage import PairColumns
from linkspread.web import create_app
from linkspread.web.refit import FOLDER, Refit, RefitState, _write, fit
from web_sites import (
    PAIRS,
    ROOT,
    fit_model,
    fit_search,
    form_token,
    make_data,
    save_model,
)

VIEWS = ("text", "image")


def judged_folder(folder, model, n=40):
    """Return the folder of a model with judgements that no fit knows."""
    rng, labels = np.random.default_rng(1), make_data()[2]
    given = {own[:2] for own in PAIRS}
    pairs = []
    while len(pairs) < n:
        i, j = int(rng.integers(60)), int(rng.integers(50))
        weight = 1.0 if labels["text"][i] == labels["image"][j] else -1.0
        if (f"t{i}", f"i{j}") not in given:
            given.add((f"t{i}", f"i{j}"))
            pairs.append((f"t{i}", f"i{j}", weight))
    saved = save_model(model, folder)
    saved.judge_pairs(pairs, between=VIEWS, who="ann")
    return saved


@pytest.mark.parametrize("make", [fit_search, fit_model])
def test_the_new_fit_is_compared_taken_and_loaded_by_all_servers(tmp_path, make):
    folder = judged_folder(tmp_path / "model", make())
    servers = [create_app(folder).state.site for _ in range(2)]
    site = servers[0]
    fit(str(folder.path))
    state = site.refit.state()
    assert state.kind == "ready", state.problem
    assert state.number == site.live.shown.number == 40
    assert 2 <= state.n_held_out <= 16
    assert 0.5 < state.after <= 1.0
    wanted = ls.load(folder.path / FOLDER)
    # Judged after the fit was begun.
    folder.judge("t50", "i40", "cannot", between=VIEWS, who="bob")
    site.refit.take()
    assert site.refit.state().kind == "none"
    pair = ls.Links.from_pairs([("t50", "i40", -1.0)], between=VIEWS)
    for other in servers:
        before = other.live.shown.model
        assert other.live.reload()
        assert not other.live.reload()
        assert other.live.shown.model is not before
        assert other.live.shown.number == 41
        told = wanted.snapshot().add_links(pair)
        own = other.live.shown.model.scores(*VIEWS)
        assert_allclose(own, told.scores(*VIEWS), atol=1e-4)
        other.stop()
    # The folder has it as well, with the judgements that it knows.
    assert ls.ModelFolder(folder.path).check_store() == 40


def test_a_model_of_other_items_is_not_shown(tmp_path):
    folder = save_model(fit_model(), tmp_path / "model")
    site = create_app(folder).state.site
    data = ls.datasets.make_views(40, n_classes=3, random_state=0)
    other = ls.CrossViewSearch().fit(data.views(), ls.Links.from_labels(data.labels))
    other.save(folder.path)
    assert not site.live.reload()
    assert site.items["text"].n_items == 60
    site.stop()


def test_few_judgements_are_refused_in_a_sentence(tmp_path):
    folder = save_model(fit_model(), tmp_path / "model")
    fit(str(folder.path))
    state = Refit(folder).state()
    assert (state.kind, "needs 20" in state.problem) == ("failed", True)


def test_a_killed_fit_does_not_run_for_ever(tmp_path):
    folder = save_model(fit_model(), tmp_path / "model")
    _write(folder.path, RefitState("running", since=time.time() - 400))
    assert Refit(folder).state().kind == "none"
    (folder.path / "refit.json").write_text('{"kind": 3, "x": []}')
    assert Refit(folder).state().kind == "none"


def test_comparisons_are_counted():
    class Model:
        def scores(self, source, target, *, rows, cols):
            table = {"a": [3.0, 1.0], "b": [2.0, 1.0]}
            return np.array([[table[i]["xy".index(j)] for j in cols] for i in rows])

    def held(*weights):
        left, right = np.array(["a", "b", "a"]), np.array(["x", "x", "y"])
        return {VIEWS: PairColumns(left, right, np.array(weights))}

    # 3 and 2 against 1; then 3 and 1 against 2.
    assert share_right(Model(), held(1, 1, -1)) == 1.0
    assert share_right(Model(), held(1, -1, 1)) == 0.5


def test_the_page_starts_a_fit_and_takes_it(tmp_path):
    folder = judged_folder(tmp_path / "model", fit_search())
    app = create_app(folder)
    with TestClient(app, base_url=ROOT) as client:

        def press(what):
            form = {"form_token": form_token(client.get("/team").text), "refit": what}
            return client.post("/team", data=form)

        assert press("take").status_code == 400
        assert "Fitting for" in press("start").text
        deadline = time.monotonic() + 120
        while app.state.site.refit.state().kind == "running":
            assert time.monotonic() < deadline
            time.sleep(0.2)
        assert app.state.site.refit.state().problem == ""
        assert "Use the new fit" in client.get("/team").text
        before = app.state.site.live.shown.model
        assert "Fit again" in press("take").text
        while app.state.site.live.shown.model is before:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert client.get("/?source=text&target=image&item=t5").status_code == 200

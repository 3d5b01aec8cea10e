"""Model folders: a judgement is stored first, absorbed once, and never twice."""

import json

import numpy as np
import pytest

import linkspread as ls
from judged_models import BETWEEN, PAIRS, fit_model, make_folder, run
from linkspread.cli.model_folder import AbsorbedCounts, ModelFolder
from linkspread.cli.pending import tell_pending
from linkspread.ground.errors import ModelError, StoreError
from linkspread.storage import Judgement, LinkStore


@pytest.fixture
def path(tmp_path):
    """Return a folder as `linkspread fit` leaves it: all pairs stored and absorbed."""
    return make_folder(tmp_path / "model")


def judge(who, left, right, verdict="must", **rest):
    pair = dict(left_view="text", left_id=left, right_view="image", right_id=right)
    return Judgement(who=who, verdict=verdict, **pair, **rest)


def assert_scores_as_fitted_to(model, pairs):
    wanted = fit_model(pairs).scores(*BETWEEN)
    np.testing.assert_allclose(model.scores(*BETWEEN), wanted, atol=2e-6)


def test_a_folder_without_a_model_is_one_sentence(tmp_path):
    with pytest.raises(ModelError, match="must be the folder of a model.*Correct the"):
        ModelFolder(tmp_path)


def test_a_fresh_folder_has_nothing_pending_and_makes_no_store(tmp_path):
    fit_model().save(tmp_path)
    folder = ModelFolder(tmp_path)
    assert (folder.absorbed, folder.pending()) == (0, 0)
    assert not (tmp_path / "judgements.db").exists()


def test_pairs_that_are_kept_again_are_stored_once(path):
    folder = ModelFolder(path)
    assert folder.keep_pairs(PAIRS, BETWEEN) == []
    assert len(folder.keep_pairs([("t0", "i0", 1.0)], BETWEEN)) == 1  # was cannot
    with folder.store() as store:
        assert store.count() == len(PAIRS) + 1
        store.undo(next(store.judgements()).id, who="ann")
    # Importing the same file does not bring back what was taken back.
    assert folder.keep_pairs(PAIRS[1:2], BETWEEN) == []


def test_absorbing_scores_as_a_fit_to_all_that_counts(path):
    folder = ModelFolder(path)
    with folder.store() as store:
        rows = list(store.judgements())
        store.undo(rows[3].id, who="ann")
        # A change of mind, and two people on one pair.
        store.add(judge("import", "t5", PAIRS[5][1], "cannot"))
        store.add(judge("ann", "t30", "i4"))
        store.add(judge("bob", "t30", "i4", weight=0.5))
        store.add(judge("bob", "t31", "i4", "unsure"))
    model = folder.load()
    assert folder.pending() == 5
    assert folder.absorb(model) == AbsorbedCounts(added=3, removed=2, unknown=0)
    assert folder.pending() == 0
    kept = [pair for k, pair in enumerate(PAIRS) if k not in (3, 5)]
    new = [(*PAIRS[5][:2], -1.0), ("t30", "i4", 1.0), ("t30", "i4", 0.5)]
    assert_scores_as_fitted_to(model, kept + new)
    assert_scores_as_fitted_to(ls.load(path), kept + new)
    assert folder.absorb(model) == AbsorbedCounts(0, 0, 0)


def test_people_who_disagree_add_up_without_a_warning(path):
    folder = ModelFolder(path)
    with folder.store() as store:
        store.add_many([judge("ann", "t30", "i4"), judge("bob", "t30", "i4", "cannot")])
    folder.absorb(folder.load())
    folder.keep_pairs([("t31", "i5", 1.0)], BETWEEN, who="cem")
    assert folder.absorb(folder.load()).added == 1


def test_items_that_the_model_lacks_are_left_out_and_counted(path):
    folder = ModelFolder(path)
    with folder.store() as store:
        store.add(judge("ann", "t99", "i4"))
        store.add(judge("ann", "t30", "i4"))
        other = dict(left_view="sound", left_id="s1", right_view="text", right_id="t1")
        store.add(Judgement(who="ann", verdict="must", **other))
    assert folder.absorb(folder.load()) == AbsorbedCounts(1, 0, 2)
    assert folder.pending() == 0


@pytest.mark.parametrize("moment", ["before the save", "after the save"])
def test_a_kill_around_the_save_absorbs_each_judgement_once(path, monkeypatch, moment):
    class Killed(BaseException):
        pass

    folder = ModelFolder(path)
    folder.keep_pairs([("t30", "i4", 1.0)], BETWEEN, who="ann")
    save = ls.LinkSpreading.save

    def killed_save(model, where):
        if moment == "after the save":
            save(model, where)
        raise Killed

    monkeypatch.setattr(ls.LinkSpreading, "save", killed_save)
    with pytest.raises(Killed):
        folder.absorb(folder.load())
    monkeypatch.undo()
    again = ModelFolder(path)
    assert again.pending() == (1 if moment == "before the save" else 0)
    again.absorb(again.load())
    assert_scores_as_fitted_to(ls.load(path), [*PAIRS, ("t30", "i4", 1.0)])


def test_what_is_pending_is_told_with_the_remedy(path, capsys):
    folder = ModelFolder(path)
    tell_pending(folder)
    assert capsys.readouterr() == ("", "")
    folder.keep_pairs([("t30", "i4", 1.0), ("t30", "i5", 1.0)], BETWEEN, who="ann")
    tell_pending(folder)
    told = capsys.readouterr()
    assert "2 judgements are not in the model yet" in told.err
    assert f"linkspread links absorb {path}" in told.err
    assert told.out == ""


def test_a_store_that_cannot_be_read_does_not_stop_a_search(path, capsys):
    (path / "judgements.db").write_bytes(b"no database at all" * 99)
    assert run("search", path, "--id", "t7", "--json") == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["queries"]
    assert "unknown whether the model has all judgements: a link store" in told.err
    assert run("links", "list", path) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_store_that_is_not_there_is_not_made_by_looking(path, tmp_path, capsys):
    place = tmp_path / "elsewhere.db"
    assert run("links", "list", path, "--store", place) == 1
    assert run("search", path, "--id", "t7", "--store", place) == 0
    assert not place.exists()


def test_a_model_that_cannot_take_links_says_how_to_rebuild(path):
    folder = ModelFolder(path)
    (path / "run.toml").write_text("")
    with folder.store() as store:
        for judgement in list(store.judgements()):
            store.undo(judgement.id, who="ann")
        store.add(judge("ann", "t30", "i4"))
    model = folder.load()
    model.remove_links(ls.Links.from_pairs(PAIRS[:1], between=BETWEEN))
    before = model.scores(*BETWEEN)
    remedy = f"linkspread fit --config {path / 'run.toml'} --overwrite"
    with pytest.raises(ModelError, match=f"live.*The judgements are kept.*{remedy}"):
        folder.absorb(model)
    np.testing.assert_allclose(model.scores(*BETWEEN), before, atol=2e-6)
    assert folder.absorbed == len(PAIRS)


def test_a_model_that_another_process_saved_meanwhile_is_refused(path):
    mine, theirs = ModelFolder(path), ModelFolder(path)
    model = mine.load()
    theirs.keep_pairs([("t30", "i4", 1.0)], BETWEEN, who="ann")
    theirs.absorb(theirs.load())
    with pytest.raises(ModelError, match="another process has saved.*Load it again"):
        mine.absorb(model)


def test_another_store_is_told_from_the_own(path, tmp_path):
    place = tmp_path / "other.db"
    with LinkStore.open(place) as store:
        store.add_many([judge("ann", f"t{i}", "i4") for i in range(30)])
    with pytest.raises(StoreError, match="row 24 of this one is another judgement"):
        ModelFolder(path, store=str(place)).pending()


def test_a_damaged_number_is_one_sentence(path):
    for text in ("{", "[]", '{"number": -1}', '{"number": true}', "{}"):
        (path / "absorbed.json").write_text(text)
        with pytest.raises(ModelError, match='must hold {"number": n}.*Fit the model'):
            ModelFolder(path).absorbed  # noqa: B018


def test_the_number_of_the_interface_is_enough(path):
    (path / "absorbed.json").write_text('{"number": 7}')
    folder = ModelFolder(path)
    assert (folder.absorbed, folder.pending()) == (7, len(PAIRS) - 7)
    folder.set_absorbed(9)
    assert json.loads((path / "absorbed.json").read_text())["number"] == 9


def test_a_run_file_names_the_features(path, monkeypatch):
    folder = ModelFolder(path)
    assert folder.features() is None
    (path / "run.toml").write_text("graph = 'knn'\n")
    assert folder.features() is None
    (path / "run.toml").write_text("graph = \n")
    with pytest.raises(ModelError, match="run.toml must be a TOML file"):
        folder.features()

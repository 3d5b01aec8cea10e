"""Model folders: a judgement is stored first, applied once, and never twice."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import coo_array

import linkspread as ls
from judged_models import BETWEEN, PAIRS, fit_model, make_folder
from linkspread.ground.errors import LinkError, ModelError, StoreError
from linkspread.models import model_folder
from linkspread.storage import Judgement, LinkStore


@pytest.fixture
def path(tmp_path):
    """Return a folder whose pairs are all stored and applied."""
    return make_folder(tmp_path / "model")


def judge(who, left, right, verdict="must", **rest):
    pair = dict(left_view="text", left_id=left, right_view="image", right_id=right)
    return Judgement(who=who, verdict=verdict, **pair, **rest)


def assert_scores_as_fitted_to(model, pairs):
    wanted = fit_model(pairs).scores(*BETWEEN)
    np.testing.assert_allclose(model.scores(*BETWEEN), wanted, atol=2e-6)


class Killed(BaseException):
    """What no code expects."""


def kill_saves(monkeypatch, *, after):
    """Let saves end the program, before or after they are made."""
    save = ls.LinkSpreading.save

    def killed_save(model, where):
        if after:
            save(model, where)
        raise Killed

    monkeypatch.setattr(ls.LinkSpreading, "save", killed_save)


def test_a_judgement_is_stored_applied_and_taken_back(path):
    folder = ls.ModelFolder(path)
    given = {"between": BETWEEN, "who": "ann"}
    first = folder.judge("t30", "i4", weight=2.0, note="same barn", **given)
    folder.judge("t31", "i4", "cannot", **given)
    folder.judge("t32", "i4", "unsure", **given)
    assert (folder.pending(), folder.applied) == (3, len(PAIRS))
    assert folder.apply() == (2, 0, 0)
    assert (folder.pending(), folder.applied) == (0, len(PAIRS) + 3)
    wanted = [*PAIRS, ("t30", "i4", 2.0), ("t31", "i4", -1.0)]
    assert_scores_as_fitted_to(folder.model, wanted)
    assert_scores_as_fitted_to(ls.load(path), wanted)
    folder.undo(first, who="bob")
    assert folder.apply() == (0, 1, 0)
    assert_scores_as_fitted_to(ls.load(path), [*PAIRS, wanted[-1]])
    with folder.store() as store:
        assert [own.note for own in store.judgements(active_only=False, after=24)] == [
            "same barn", "", "",
        ]  # fmt: skip


def test_judgements_of_what_the_model_lacks_are_refused(path):
    folder = ls.ModelFolder(path)
    with pytest.raises(LinkError, match="not have 't99'"):
        folder.judge("t99", "i4", between=BETWEEN, who="ann")
    with pytest.raises(LinkError, match="'sound'"):
        folder.judge("t9", "i4", between=("text", "sound"), who="ann")
    with pytest.raises(LinkError, match="`verdict`"):
        folder.judge("t9", "i4", "maybe", between=BETWEEN, who="ann")
    with pytest.raises(LinkError, match="`weight`"):
        folder.judge("t9", "i4", between=BETWEEN, who="ann", weight=float("nan"))
    assert folder.pending() == 0


def test_a_folder_without_a_model_is_one_sentence(tmp_path):
    with pytest.raises(ModelError, match="must be the folder of a model.*Correct the"):
        ls.ModelFolder(tmp_path)


def test_a_fresh_folder_has_nothing_pending_and_makes_no_store(tmp_path):
    fit_model().save(tmp_path)
    folder = ls.ModelFolder(tmp_path)
    assert (folder.applied, folder.pending(), folder.has_store()) == (0, 0, False)
    assert not (tmp_path / "judgements.db").exists()


def test_pairs_that_are_given_again_are_stored_once(path):
    folder = ls.ModelFolder(path)
    assert folder.judge_pairs(PAIRS, between=BETWEEN) == []
    # It was cannot.
    assert len(folder.judge_pairs([("t0", "i0", 1.0)], between=BETWEEN)) == 1
    with folder.store() as store:
        assert store.count() == len(PAIRS) + 1
        store.undo(next(store.judgements()).id, who="ann")
    # Giving the same file does not bring back what was taken back.
    assert folder.judge_pairs(PAIRS[1:2], between=BETWEEN) == []


def test_applying_scores_as_a_fit_to_all_that_counts(path):
    folder = ls.ModelFolder(path)
    with folder.store() as store:
        rows = list(store.judgements())
        store.undo(rows[3].id, who="ann")
        # A change of mind, and two people on one pair.
        store.add(judge("import", "t5", PAIRS[5][1], "cannot"))
        store.add(judge("ann", "t30", "i4"))
        store.add(judge("bob", "t30", "i4", weight=0.5))
        store.add(judge("bob", "t31", "i4", "unsure"))
    assert folder.pending() == 5
    assert folder.apply() == (3, 2, 0)
    assert folder.pending() == 0
    kept = [pair for k, pair in enumerate(PAIRS) if k not in (3, 5)]
    new = [(*PAIRS[5][:2], -1.0), ("t30", "i4", 1.0), ("t30", "i4", 0.5)]
    assert_scores_as_fitted_to(folder.model, kept + new)
    assert_scores_as_fitted_to(ls.load(path), kept + new)
    assert folder.apply() == (0, 0, 0)


def test_people_who_disagree_add_up_without_a_warning(path):
    folder = ls.ModelFolder(path)
    with folder.store() as store:
        store.add_many([judge("ann", "t30", "i4"), judge("bob", "t30", "i4", "cannot")])
    folder.apply()
    folder.judge_pairs([("t31", "i5", 1.0)], between=BETWEEN, who="cem")
    assert folder.apply().added == 1


def test_items_that_the_model_lacks_are_left_out_and_counted(path):
    folder = ls.ModelFolder(path)
    with folder.store() as store:
        store.add(judge("ann", "t99", "i4"))
        store.add(judge("ann", "t30", "i4"))
        other = dict(left_view="sound", left_id="s1", right_view="text", right_id="t1")
        store.add(Judgement(who="ann", verdict="must", **other))
    assert folder.apply() == (1, 0, 2)
    assert folder.pending() == 0


@pytest.mark.parametrize("after", [False, True])
def test_a_kill_around_the_save_applies_each_judgement_once(path, monkeypatch, after):
    folder = ls.ModelFolder(path)
    folder.judge("t30", "i4", between=BETWEEN, who="ann")
    kill_saves(monkeypatch, after=after)
    with pytest.raises(Killed):
        folder.apply()
    monkeypatch.undo()
    again = ls.ModelFolder(path)
    assert again.pending() == (0 if after else 1)
    again.apply()
    assert_scores_as_fitted_to(ls.load(path), [*PAIRS, ("t30", "i4", 1.0)])


@pytest.mark.parametrize("after", [False, True])
def test_a_save_that_failed_is_tried_again_with_each_judgement_once(
    path, monkeypatch, after
):
    folder = ls.ModelFolder(path)
    folder.judge("t30", "i4", between=BETWEEN, who="ann")
    kill_saves(monkeypatch, after=after)
    with pytest.raises(Killed):
        folder.apply()
    monkeypatch.undo()
    folder.apply()
    assert_scores_as_fitted_to(folder.model, [*PAIRS, ("t30", "i4", 1.0)])


@pytest.mark.slow
def test_killed_at_any_moment_each_judgement_is_applied_once(path, rng):
    n_judged = 0
    for _ in range(4):
        script = Path(__file__).parents[1] / "support" / "kill_applying.py"
        command = [sys.executable, str(script), str(path), str(n_judged)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            time.sleep(rng.uniform(0, 0.5))
            process.kill()
            last = [n_judged, *map(int, process.stdout.read().split())][-1]
        n_judged = last + 1
        folder = ls.ModelFolder(path)
        folder.apply()
    with folder.store() as store:
        columns = store.pairs().columns["image", "text"]
    assert len(columns.weight) in (len(PAIRS) + n_judged, len(PAIRS) + n_judged + 1)
    model = ls.load(path)
    i = model.items_["image"].positions(columns.left)
    j = model.items_["text"].positions(columns.right)
    wanted = coo_array((columns.weight, (i, j)), shape=(30, 40)).toarray()
    kept = model.links_.judged("image", "text").toarray()
    np.testing.assert_array_equal(kept, wanted)


def test_a_model_that_cannot_take_links_says_how_to_rebuild(path):
    folder = ls.ModelFolder(path)
    (path / "run.toml").write_text("")
    with folder.store() as store:
        for judgement in list(store.judgements()):
            store.undo(judgement.id, who="ann")
        store.add(judge("ann", "t30", "i4"))
    model = folder.model
    model.remove_links(ls.Links.from_pairs(PAIRS[:1], between=BETWEEN))
    before = model.scores(*BETWEEN)
    remedy = f"linkspread fit --config {path / 'run.toml'} --overwrite"
    with pytest.raises(
        ModelError, match=f"judgements must be links.*The judgements are kept.*{remedy}"
    ):
        folder.apply()
    np.testing.assert_allclose(model.scores(*BETWEEN), before, atol=2e-6)
    assert folder.applied == len(PAIRS)


def test_what_another_process_saved_meanwhile_is_loaded_first(path):
    mine, theirs = ls.ModelFolder(path), ls.ModelFolder(path)
    older = mine.model
    theirs.judge("t30", "i4", between=BETWEEN, who="ann")
    theirs.apply()
    mine.judge("t31", "i4", between=BETWEEN, who="bob")
    assert mine.apply() == (1, 0, 0)
    assert mine.model is not older
    wanted = [*PAIRS, ("t30", "i4", 1.0), ("t31", "i4", 1.0)]
    assert_scores_as_fitted_to(ls.load(path), wanted)


def test_another_store_is_told_from_the_own(path, tmp_path):
    place = tmp_path / "other.db"
    with LinkStore.open(place) as store:
        store.add_many([judge("ann", f"t{i}", "i4") for i in range(30)])
    with pytest.raises(StoreError, match="another judgement in row 24"):
        ls.ModelFolder(path, store=place).pending()


@pytest.fixture
def restored(path):
    """Return a folder with a store of before its last judgements, and a later one."""
    backup = (path / "judgements.db").read_bytes()
    folder = ls.ModelFolder(path)
    folder.judge("t30", "i4", between=BETWEEN, who="ann", weight=2.0)
    folder.judge("t30", "i4", between=BETWEEN, who="bob")
    folder.apply()
    for own in path.glob("judgements.db*"):
        own.unlink()
    (path / "judgements.db").write_bytes(backup)
    return path


@pytest.mark.parametrize("row", ["kept", "missing"])
def test_a_store_restored_from_a_backup_is_refused(restored, row):
    if row == "missing":
        (restored / "absorbed.json").write_text(f'{{"number": {len(PAIRS) + 2}}}')
    for ask in ("check_store", "pending", "apply"):
        with pytest.raises(StoreError, match="row 26.*links apply .* --repair"):
            getattr(ls.ModelFolder(restored), ask)()
    (restored / "judgements.db").unlink()
    with pytest.raises(StoreError, match="row 26, or with none"):
        ls.ModelFolder(restored).check_store()


def test_a_repair_keeps_the_judgements_of_model_and_store(restored):
    with LinkStore.open(restored / "judgements.db") as store:
        store.add_many([judge("cem", "t31", "i5"), judge("cem", "t32", "i5", "unsure")])
    folder = ls.ModelFolder(restored)
    assert folder.repair() == (1, 0, 0)
    later = [("t30", "i4", 2.0), ("t30", "i4", 1.0), ("t31", "i5", 1.0)]
    assert_scores_as_fitted_to(ls.load(restored), [*PAIRS, *later])
    assert (folder.check_store(), folder.pending()) == (len(PAIRS) + 4, 0)
    with folder.store() as store:
        found = {(own.who, own.verdict, own.weight) for own in store.judgements()}
    assert found >= {("restored", "must", 1.0), ("restored 2", "must", 2.0)}
    assert folder.repair() == folder.apply() == (0, 0, 0)
    assert folder.applied == len(PAIRS) + 4


def test_a_damaged_number_is_one_sentence_and_a_new_model_replaces_it(path):
    deep = '{"number":' + "[" * 100_000
    wrong = ('{"number": -1}', '{"number": true}', '{"number": 1, "row": 2}')
    for text in ("{", "[]", "{}", '{"next": 3}', deep, "\0" * 100_000, None, *wrong):
        (path / "absorbed.json").unlink()
        if text is None:
            os.mkfifo(path / "absorbed.json")
        else:
            (path / "absorbed.json").write_text(text)
        with pytest.raises(ModelError, match='must hold {"number": n}.*Fit the model'):
            ls.ModelFolder(path).applied  # noqa: B018
    folder = ls.ModelFolder.create(path, fit_model(), applied=len(PAIRS))
    assert (folder.applied, folder.pending()) == (len(PAIRS), 0)


def test_the_number_alone_is_enough(path):
    (path / "absorbed.json").write_text('{"number": 7}')
    folder = ls.ModelFolder(path)
    assert (folder.applied, folder.pending()) == (7, len(PAIRS) - 7)


def test_a_new_folder_has_the_pairs_that_its_model_knows(tmp_path):
    path = tmp_path / "deep" / "model"
    pairs = {BETWEEN: PAIRS, ("image", "image"): []}
    folder = ls.ModelFolder.create(path, fit_model(), pairs=pairs, run="beta = 0.5\n")
    assert (folder.pending(), folder.applied) == (0, len(PAIRS))
    assert (path / "run.toml").read_text() == "beta = 0.5\n"
    with folder.store() as store:
        assert {row.who for row in store.judgements()} == {"import"}
        assert store.count() == len(PAIRS)
    bare = ls.ModelFolder.create(tmp_path / "bare", fit_model())
    assert (bare.pending(), bare.has_store()) == (0, False)


def test_a_kill_after_the_save_of_a_new_fit_applies_nothing_again(path, monkeypatch):
    ls.ModelFolder(path).judge("t30", "i4", between=BETWEEN, who="ann")
    model = fit_model([*PAIRS, ("t30", "i4", 1.0)])
    kill_saves(monkeypatch, after=True)
    with pytest.raises(Killed):
        ls.ModelFolder.create(path, model, applied=len(PAIRS) + 1)
    monkeypatch.undo()
    again = ls.ModelFolder(path)
    assert again.pending() == 0 and again.apply() == (0, 0, 0)


@pytest.mark.parametrize("there", ["nothing", "an empty folder"])
@pytest.mark.parametrize("fails", ["run.toml", "absorbed.json"])
def test_a_full_disk_leaves_no_half_of_a_folder(tmp_path, monkeypatch, there, fails):
    def fail(folder, write, name):
        if fails == name:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(model_folder, "write_file", fail)
    path = tmp_path / "model"
    if there == "an empty folder":
        path.mkdir()
    with pytest.raises(ModelError, match="No space left on device"):
        ls.ModelFolder.create(path, fit_model(), run="beta = 0.5\n")
    assert path.exists() == (there == "an empty folder")
    assert not path.exists() or list(path.iterdir()) == []
    assert [own.name for own in tmp_path.iterdir()] in ([], ["model"])


def test_an_interrupt_waits_for_steps_that_belong_together():
    done, before = [], signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            with model_folder._delayed_interrupt():
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.01)
                done.append("all of it")
        assert done == ["all of it"]
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_a_copy_taken_while_others_judge_and_apply_restores(path, tmp_path):
    """Files copied one by one are of different moments: rows counted twice."""
    is_done, acknowledged = threading.Event(), []

    def work():
        other, k = ls.ModelFolder(path), 0
        while not is_done.is_set():
            pair = f"t{24 + k % 16}", f"i{k % 30}"
            acknowledged.append(other.judge(*pair, between=BETWEEN, who=f"ann {k}"))
            k += 1
            if k % 2:
                other.apply()

    worker = threading.Thread(target=work)
    worker.start()
    known = []
    for k in range(6):
        known.append(len(acknowledged))
        ls.ModelFolder(path).backup(tmp_path / f"copy {k}")
    is_done.set()
    worker.join()
    for k, n_known in enumerate(known):
        folder = ls.ModelFolder(tmp_path / f"copy {k}")
        folder.apply()
        with folder.store() as store:
            rows = {row.id for row in store.judgements()}
            wanted = sum(len(own.weight) for own in store.pairs().columns.values())
        assert set(acknowledged[:n_known]) <= rows
        tables = ls.load(folder.path).links_.pair_tables
        assert sum(len(table.weights) for _, table in tables) == wanted
    with pytest.raises(ModelError, match="`path` must be a new folder"):
        folder.backup(folder.path)


def test_a_refit_in_python_keeps_the_judgements_of_others(path):
    """`create` with pairs said that the model had all rows of its store."""
    ls.ModelFolder(path).judge("t30", "i4", between=BETWEEN, who="ann")
    folder = ls.ModelFolder.create(path, fit_model(), pairs={BETWEEN: PAIRS})
    assert folder.pending() == 0
    assert_scores_as_fitted_to(folder.model, [*PAIRS, ("t30", "i4", 1.0)])

"""Model folders that were damaged, or made up with right checksums: all refused."""

import re
import signal
import tracemalloc

import numpy as np
import pytest

import linkspread as ls
from linkspread.ground.errors import LinkspreadError
from linkspread.storage.folder import MAX_MANIFEST
from model_folders import copy_folder, model
from spoilt_files import flip
from spoilt_manifests import CASES

pytestmark = pytest.mark.slow

MB = 1 << 20


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the folders of the models that are spoilt."""
    root = tmp_path_factory.mktemp("models")
    for kind in {of for of, _, _ in CASES.values()}:
        model(kind).save(root / kind)
    return root


@pytest.fixture
def impatience():
    """Fail what hangs."""

    def fail(number, frame):
        raise AssertionError("loading hangs")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def allowed_bytes(path):
    """Return the memory that a folder may take: twice its size, JSON somewhat more."""
    sizes = {own.name: own.stat().st_size for own in path.iterdir()}
    manifest = min(sizes.get("manifest.json", 0), MAX_MANIFEST)
    return 2 * sum(sizes.values()) + 10 * manifest + MB // 2


def names_a_file(message):
    """Tell whether a message begins with the name of a file of a model."""
    return re.match(r"(manifest\.json|arrays-\w+\.\w+): ", message)


def test_there_are_hundreds_of_ways_to_spoil_a_folder():
    assert len(CASES) >= 200


@pytest.mark.parametrize("name", CASES)
def test_a_spoilt_folder_is_refused(name, saved, tmp_path, impatience):
    of, spoil, argument = CASES[name]
    folder = copy_folder(saved / of, tmp_path / "model")
    spoil(folder, argument)
    limit = allowed_bytes(tmp_path / "model")
    tracemalloc.start()
    try:
        with pytest.raises(LinkspreadError) as raised:
            ls.load(tmp_path / "model")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    message = str(raised.value)
    assert names_a_file(message), message
    assert len(message) < 600
    assert peak < limit
    assert not (tmp_path / "model" / "executed").exists()


@pytest.mark.parametrize("kind", ["spread", "adjusted", "codes"])
def test_a_folder_that_is_only_rewritten_is_loaded(kind, saved, tmp_path):
    # Else everything could be refused for the wrong reason.
    folder = copy_folder(saved / kind, tmp_path / "model")
    folder.write_arrays(folder.arrays())
    again = ls.load(tmp_path / "model")
    assert np.array_equal(
        again.scores("text", "image"), model(kind).scores("text", "image")
    )


@pytest.mark.parametrize("seed", range(20))
def test_without_checksums_damage_never_crashes(seed, saved, tmp_path, impatience):
    folder = copy_folder(saved / "codes", tmp_path / "model")
    for k in range(3):
        flip(folder.arrays_path, 100 * seed + k)
    try:
        again = ls.load(tmp_path / "model", verify=False)
    except LinkspreadError as error:
        assert names_a_file(str(error))
    else:
        # A flipped bit of a number gives another model, which is as safe to ask.
        with np.errstate(all="ignore"):
            assert again.scores("text", "image").shape == (40, 30)

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from linkspread.features import SentenceFeatures, sentences
from linkspread.ground.errors import LinkspreadError, MissingDependencyError, ModelError

REASON = "vectors of sentences need the packages of linkspread[sentences]"
TEXTS = [
    "A boat on a lake",
    "a ship at sea, 1999!",
    "Der Ball ist im Tor",
    "北京 2008 😀",
    "x",
    "  two   spaces\n\tand lines ",
    "word " * 300,
]


@pytest.fixture(scope="module")
def tokenizers():
    if importlib.util.find_spec("wordllama") is None:
        pytest.skip(REASON)
    pytest.importorskip("safetensors", reason=REASON)
    return pytest.importorskip("tokenizers", reason=REASON)


@pytest.fixture(scope="module")
def fitted(tokenizers):
    return SentenceFeatures().fit([])


def test_rows_are_those_of_the_package(fitted):
    wordllama = pytest.importorskip("wordllama")
    folder = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    X = fitted.transform(TEXTS)
    assert X.shape == (len(TEXTS), 256) and X.dtype == np.float32
    assert_allclose(X, model.embed(TEXTS), atol=2e-6)


def test_like_sentences_lie_near_each_other(fitted):
    X = fitted.transform(["a boat on a lake", "a ship at sea", "football match"])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    near, far = X[0] @ X[1], X[0] @ X[2]
    assert near > far + 0.2 and fitted.metric_ == "cosine"


def test_texts_without_anything_are_rows_of_zeros(fitted):
    X = fitted.transform([None, "", float("nan"), "a"])
    assert_array_equal(X.any(axis=1), [False, False, False, True])


def test_half_a_pair_of_surrogates_is_no_trouble(fitted):
    assert_array_equal(*fitted.transform(["a\ud800", "a?"]))


@pytest.mark.parametrize("batch_size", [1, 2, 7])
def test_a_stream_is_read_once_and_in_parts(fitted, batch_size):
    expected = fitted.transform(TEXTS)
    features = SentenceFeatures(batch_size=batch_size).fit([])
    stream = iter(TEXTS)
    assert_array_equal(features.transform(stream), expected)
    assert next(stream, "read") == "read"


def test_a_wrong_batch_size_is_refused():
    message = "`batch_size` must be a whole number of at least 1, got 0"
    with pytest.raises(LinkspreadError, match=message):
        SentenceFeatures(batch_size=0).fit([])


def test_fitting_does_not_read_the_texts(tokenizers):
    assert SentenceFeatures().fit_transform(iter(TEXTS)).shape == (7, 256)


def test_what_is_no_text_is_named_by_its_position(tokenizers):
    fitted = SentenceFeatures(batch_size=2).fit([])
    with pytest.raises(LinkspreadError, match="text 3 must be a string, got int. Turn"):
        fitted.transform(["a", "b", "c", 4])
    with pytest.raises(LinkspreadError, match="must hold at least one text, got none"):
        fitted.transform([])
    with pytest.raises(LinkspreadError, match="must be several texts in a row, got st"):
        fitted.transform("one")


def test_logging_of_the_program_stays_as_it_is(tokenizers):
    """The package sets up logging where it is imported, so it must not be."""
    program = (
        "import logging, sys; from linkspread.features import SentenceFeatures; "
        "SentenceFeatures().fit([]).transform(['a']); "
        "print('wordllama' in sys.modules, logging.getLogger().handlers)"
    )
    # A place without a network, so that a download could not pass unnoticed.
    offline = os.environ | {"HTTPS_PROXY": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=offline
    )
    assert done.stdout.strip() == "False []", done.stderr


def test_other_vectors_are_refused(tokenizers):
    features = SentenceFeatures.from_state({}, {"weights_": "f" * 64})
    with pytest.raises(ModelError, match="SentenceFeatures must have the weights"):
        features.transform(["a"])


def test_transform_needs_a_fit():
    with pytest.raises(NotFittedError):
        SentenceFeatures().transform(["a"])


@pytest.mark.parametrize("package", ["tokenizers", "safetensors.numpy"])
def test_a_missing_package_is_named(tokenizers, monkeypatch, package):
    for function in (sentences._vectors, sentences._tokenizer):
        function.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    message = rf"needs the package {package[:9]}.*linkspread\[sentences\]"
    with pytest.raises(MissingDependencyError, match=message):
        SentenceFeatures().fit([])


def test_a_missing_wordllama_is_named(tokenizers, monkeypatch):
    sentences._vectors.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    message = r"SentenceFeatures needs the package wordllama, .* 'linkspread\[sentences"
    with pytest.raises(MissingDependencyError, match=message):
        SentenceFeatures().fit([])

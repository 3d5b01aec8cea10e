import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import LatentDirichletAllocation
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from linkspread.features import TagFeatures, TextFeatures, TopicFeatures, tokenize
from linkspread.graphs import knn_graph
from linkspread.ground.errors import LinkspreadError

TEXTS = [
    "the sea and the sky",
    "the sea, the boat and a sail",
    "snow on the mountain",
    "天气很好，去海边",
    "山上的天气不好",
    "",
    "goal! goal! the team won",
]
KINDS = {
    "words": TextFeatures(),
    "topics": TopicFeatures(3, max_df=1.0, random_state=0),
    "tags": TagFeatures(),
}


@pytest.fixture(params=KINDS)
def features(request):
    return clone(KINDS[request.param])


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


@pytest.mark.parametrize(
    "limits", [{}, {"min_df": 2}, {"max_features": 5}, {"min_df": 2, "max_features": 1}]
)
def test_words_match_scikit_learn(limits):
    X = TextFeatures(**limits).fit_transform(TEXTS)
    # scikit-learn takes the tokens that occur most, here those that most texts have.
    names = TextFeatures(**limits).fit(TEXTS).get_feature_names_out()
    vectorizer = TfidfVectorizer(
        analyzer=tokenize, sublinear_tf=True, vocabulary=list(names)
    )
    assert sparse.issparse(X) and X.format == "csr"
    assert_allclose(X.toarray(), vectorizer.fit_transform(TEXTS).toarray(), atol=1e-15)
    if "max_features" not in limits:
        vectorizer = TfidfVectorizer(analyzer=tokenize, **limits).fit(TEXTS)
        assert_array_equal(names, vectorizer.get_feature_names_out())


@given(st.lists(st.text("ab c漢字กข"), min_size=1).filter(lambda t: "".join(t).split()))
@settings(max_examples=50)
def test_words_of_any_texts_match_scikit_learn(texts):
    vectorizer = TfidfVectorizer(analyzer=tokenize, sublinear_tf=True)
    expected = vectorizer.fit_transform(texts).toarray()
    assert_allclose(TextFeatures().fit_transform(texts).toarray(), expected, atol=1e-14)


def test_the_tokens_of_most_texts_are_kept_and_ties_go_by_name():
    texts = ["d d d d c b", "c b a", "c d"]  # c in 3 texts, b and d in 2
    assert TextFeatures(max_features=2).fit(texts).vocabulary_.tolist() == ["b", "c"]


@pytest.mark.parametrize(("n_texts", "kept"), [(999, True), (1000, False)])
def test_single_tokens_are_left_out_of_large_collections(n_texts, kept):
    texts = ["once"] + ["often"] * (n_texts - 1)
    features = TextFeatures().fit(texts)
    assert ("once" in features.vocabulary_) == kept
    assert features.n_empty_ == (0 if kept else 1)


def test_topics_match_scikit_learn():
    features = TopicFeatures(3, max_df=0.5, random_state=7)
    X = features.fit_transform(TEXTS)
    counter = CountVectorizer(analyzer=tokenize, max_df=0.5)
    counts = counter.fit_transform(TEXTS)
    lda = LatentDirichletAllocation(3, max_iter=30, random_state=7)
    expected = lda.fit_transform(counts)
    expected[5] = 0  # the empty text
    assert_allclose(X, expected, rtol=1e-12)
    assert_array_equal(features.vocabulary_, counter.get_feature_names_out())
    assert_allclose(features.topics_.sum(axis=1), 1)
    assert_allclose(features.topics_ * lda.components_.sum(1)[:, None], lda.components_)


def test_topics_are_named_by_their_frequent_tokens():
    texts = ["sun sun sun rain rain wind", "goal goal goal ball ball team"] * 8
    features = TopicFeatures(2, random_state=0).fit(texts)
    names = features.get_feature_names_out()
    assert [name.partition(": ")[0] for name in names] == ["topic 0", "topic 1"]
    words = {name.partition(": ")[2] for name in names}
    assert words == {"sun, rain, wind", "goal, ball, team"}
    first = features.transform(texts)[0].argmax()
    assert "sun" in names[first]


def test_topics_tell_texts_apart(rng):
    subjects = np.array([list("abcdefgh"), list("stuvwxyz")])
    topics = np.arange(40) % 2
    texts = [" ".join(rng.choice(subjects[topic], 12)) for topic in topics]
    X = TopicFeatures(2, random_state=0).fit_transform(texts)
    found = X.argmax(axis=1)
    assert_array_equal(found == found[0], topics == topics[0])
    assert X.max(axis=1).min() > 0.9


def test_tags_match_a_plain_loop():
    items = [["Sea", "#sea", "New York"], "new-york, taxi; Sea", "sea sky", [], None]
    read = [["sea", "sea", "new york"], ["new york", "taxi", "sea"], ["sea", "sky"]]
    names = ["new york", "sea", "sky", "taxi"]
    expected = [[tags.count(n) / len(tags) for n in names] for tags in read]
    features = TagFeatures()
    X = features.fit_transform(items)
    assert features.get_feature_names_out().tolist() == names
    assert_allclose(X.toarray(), [*expected, [0] * 4, [0] * 4])
    assert features.n_empty_ == 2


def test_the_most_frequent_tags_are_kept():
    items = ["a b c", "a b", "a d", "b d", "d e e e"]
    assert TagFeatures(3).fit(items).vocabulary_.tolist() == ["a", "b", "d"]
    assert TagFeatures(min_df=2).fit(items).vocabulary_.tolist() == ["a", "b", "d"]
    assert len(TagFeatures().fit([[str(i)] for i in range(999)]).vocabulary_) == 999
    many = TagFeatures(min_df=1).fit([[str(i)] for i in range(1500)])
    assert len(many.vocabulary_) == 1000


def test_tags_of_unknown_name_do_not_count():
    features = TagFeatures().fit(["a b"])
    assert features.transform(["a z", ["z"]]).toarray().tolist() == [[1, 0], [0, 0]]


@pytest.mark.parametrize("separator", [",", "; ", " | ", "\n", "\t", "，", "、", "،"])
def test_separated_tags_may_have_several_words(separator):
    features = TagFeatures().fit([separator.join(["New York", "taxi", "red car"])])
    assert features.vocabulary_.tolist() == ["new york", "red car", "taxi"]


def test_missing_tags_in_a_list_are_left_out():
    X = TagFeatures().fit_transform([["a", None, "b"], ["a", float("nan")], {"b"}])
    assert X.toarray().tolist() == [[0.5, 0.5], [1, 0], [0, 1]]


def test_a_generator_is_read_once(features):
    expected = dense(features.fit(TEXTS).transform(TEXTS))
    again = clone(features)
    assert_array_equal(dense(again.fit_transform(text for text in TEXTS)), expected)
    assert_array_equal(dense(again.transform(text for text in TEXTS)), expected)
    again = clone(features).fit(text for text in TEXTS)
    assert_array_equal(dense(again.transform(iter(TEXTS))), expected)


def test_texts_are_not_held_while_they_are_read(features):
    class Text(str):
        alive = 0

        def __init__(self, value):
            Text.alive += 1

        def __del__(self):
            Text.alive -= 1

    most = []
    for method in (features.fit_transform, features.transform):
        method(most.append(Text.alive) or Text(text) for text in TEXTS * 20)
    assert max(most) <= 2


def test_permuting_texts_permutes_rows(features, rng):
    order = rng.permutation(len(TEXTS))
    X = dense(features.fit(TEXTS).transform(TEXTS))
    assert_allclose(dense(features.transform([TEXTS[i] for i in order])), X[order])


def test_the_order_of_texts_does_not_change_words_and_tags(rng):
    order = rng.permutation(len(TEXTS))
    mixed = [TEXTS[i] for i in order]
    for features in (TextFeatures(max_features=9), TagFeatures(9)):
        X = dense(features.fit_transform(TEXTS))[order]
        assert_allclose(dense(features.fit_transform(mixed)), X)


@pytest.mark.parametrize("missing", [None, float("nan"), np.nan, pd.NA, pd.NaT, " ..."])
def test_missing_texts_are_rows_of_zeros(features, missing):
    X = dense(features.fit_transform(["sea sky", missing, "sea"]))
    assert_array_equal(X[1], 0)
    assert (X[[0, 2]].sum(axis=1) > 0).all()
    assert features.n_empty_ == 1
    assert_array_equal(dense(features.transform([missing, "unheard"])), 0)


@pytest.mark.parametrize("kind", ["array", "pandas", "polars", "pyarrow", "tuple"])
def test_columns_of_many_kinds_are_texts(features, kind):
    column = {
        "array": np.array,
        "pandas": pd.Series,
        "polars": pytest.importorskip("polars").Series,
        "pyarrow": pytest.importorskip("pyarrow").array,
        "tuple": tuple,
    }[kind](TEXTS)
    expected = dense(features.fit_transform(TEXTS))
    assert_array_equal(dense(features.fit_transform(column)), expected)


def test_the_metric_of_the_features_makes_a_graph(features):
    X = features.fit_transform(TEXTS)
    W = knn_graph(X, n_neighbors=2, metric=features.metric_)
    assert W.shape == (7, 7)
    expected = {"TextFeatures": "cosine"}
    assert features.metric_ == expected.get(type(features).__name__, "hellinger")


def test_names_are_as_many_as_columns(features):
    X = features.fit_transform(TEXTS)
    names = features.get_feature_names_out()
    assert len(names) == len(set(names)) == X.shape[1]


def test_the_same_seed_gives_the_same_bits(features):
    first, second = (dense(clone(features).fit_transform(TEXTS)) for _ in range(2))
    assert_array_equal(first, second)


def test_pickled_features_are_the_same(features):
    X = dense(features.fit_transform(TEXTS))
    copied = pickle.loads(pickle.dumps(features))
    assert_array_equal(dense(copied.transform(TEXTS)), X)


@pytest.mark.parametrize(
    "wrong", ["a text", b"ab", {"a": 1}, {"a"}, 7, pd.DataFrame({"text": TEXTS})]
)
def test_several_texts_are_needed(features, wrong):
    got = type(wrong).__name__
    message = f"`texts` must be a sequence of texts, got {got}. Give a list"
    with pytest.raises(LinkspreadError, match=message):
        features.fit(wrong)


def test_no_text_at_all_is_refused(features):
    with pytest.raises(LinkspreadError, match="at least one text, got none"):
        features.fit([])
    with pytest.raises(LinkspreadError, match="at least one text, got none"):
        features.fit(TEXTS).transform(iter(()))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (b"sea", "text 1 must be a string, got bytes. Decode"),
        (5, "text 1 must be a string, got int. .* None where there is no text"),
        (["sea"], "text 1 must be a string, got list"),
    ],
)
def test_what_is_no_text_is_named(wrong, message):
    features = TextFeatures().fit(TEXTS)
    for method in (features.fit, features.transform, features.fit_transform):
        with pytest.raises(LinkspreadError, match=message):
            method(["sea", wrong])


@pytest.mark.parametrize(
    ("wrong", "got"),
    [(b"sea", "bytes"), (5, "int"), (["a", 5], "int"), ([b"a"], "bytes"), ({}, "dict")],
)
def test_what_is_no_tag_is_named(wrong, got):
    message = f"tags of item 1 must be strings, got {got}. Give a list of strings"
    with pytest.raises(LinkspreadError, match=message):
        TagFeatures().fit(["sea", wrong])


@pytest.mark.parametrize(
    ("model", "texts", "message"),
    [
        (TextFeatures(), ["", "!"], "at least one token, got 2 texts"),
        (TextFeatures(min_df=2), ["a", "b"], "none is in at least 2 of the 2"),
        (TagFeatures(min_df=3), ["a", "a"], "in at least 3 of the 2 texts. Lower"),
        (TopicFeatures(), ["a"], "and in at most 50% of them. Lower .*, or raise `max"),
        (TextFeatures(min_df=0), ["a"], "`min_df` must be a positive integer, got 0"),
        (TagFeatures(min_df=0.5), ["a"], "`min_df` must be a positive .*, got 0.5"),
        (TextFeatures(max_features=0), ["a"], "`max_features` must be a .*, got 0"),
        (TopicFeatures(0), ["a"], "`n_topics` must be a positive integer, got 0"),
        (TopicFeatures(max_features=0), ["a"], "`max_features` must be a .*, got 0"),
        (TopicFeatures(max_df=5), ["a"], "`max_df` must be at most 1, got 5. Give"),
        (TopicFeatures(max_df=0), ["a"], "`max_df` must be a positive number, got 0"),
        (TagFeatures(0), ["a"], "`n_tags` must be a positive integer, got 0"),
    ],
)
def test_wrong_parameters_and_empty_vocabularies_are_refused(model, texts, message):
    with pytest.raises(LinkspreadError, match=message):
        model.fit(texts)


def test_transform_and_names_need_a_fit(features):
    with pytest.raises(NotFittedError):
        features.transform(TEXTS)
    with pytest.raises(NotFittedError):
        features.get_feature_names_out()

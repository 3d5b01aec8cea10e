"""Texts of any script find their neighbours without an option."""

import numpy as np
import pytest

from linkspread.manifests import featurize, read_collection

CHINESE = {
    "weather": [
        "明天有大雨和大风",
        "大雨过后气温下降",
        "今天气温很低，有大风",
        "北方有大雪，气温低",
    ],
    "sport": [
        "球队赢了这场比赛",
        "这场比赛球队输了",
        "球员在比赛中进了两球",
        "球队换了新的球员",
    ],
    "food": [
        "这家餐厅的面条很好吃",
        "面条和饺子都好吃",
        "餐厅的饺子做得好",
        "好吃的面条在哪家餐厅",
    ],
}
MIXED = {
    "en": ["heavy rain and strong wind", "rain and snow with wind", "wind brings rain"],
    "ru": ["сильный дождь и ветер", "дождь и снег", "Ветер принёс дождь"],
    "zh": ["大雨和大风", "大雨转小雨", "大风带来大雨"],
    "ja": ["大雨と強風です", "強風で大雨です", "大雨のち強風"],
    "th": ["ฝนตกหนักและลมแรง", "ฝนตกและลมแรง", "ลมแรงทำให้ฝนตก"],
    "ar": ["مطر غزير ورياح", "مطر وثلج ورياح", "رياح مع مطر"],
}


def write(folder, texts):
    """Write each text as a file, in a folder for each class."""
    for label, own in texts.items():
        (folder / label).mkdir()
        for i, text in enumerate(own):
            (folder / label / f"{i}.txt").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize("texts", [CHINESE, MIXED], ids=["chinese", "mixed"])
def test_the_nearest_text_is_of_the_same_class(tmp_path, texts):
    features = featurize(read_collection(write(tmp_path, texts)))
    X, labels = features.views["text"], features.labels["text"]
    assert features.problems == [] and features.metrics == {"text": "cosine"}
    likeness = (X @ X.T).toarray()
    np.fill_diagonal(likeness, -1)
    assert (labels[likeness.argmax(axis=1)] == labels).mean() >= 0.9
    assert (likeness.max(axis=1) > 0).all()


def test_byte_order_marks_and_utf_16_make_no_difference(tmp_path):
    text = "天气很好, café"
    for name, encoding in (("a", "utf-8"), ("b", "utf-8-sig"), ("c", "utf-16")):
        (tmp_path / f"{name}.txt").write_text(text, encoding=encoding)
    features = featurize(read_collection(tmp_path))
    assert list(features.contents["text"]) == [text] * 3
    assert np.ptp(features.views["text"].toarray(), axis=0).max() == 0

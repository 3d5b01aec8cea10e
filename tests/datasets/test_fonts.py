import sys
import unicodedata

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from linkspread.datasets import load_fonts, make_glyph_image
from linkspread.datasets.unicode_blocks import family
from linkspread.ground.errors import LinkspreadError, MissingDependencyError
from reference import recall_at_one


@pytest.fixture(scope="module")
def fonts():
    return load_fonts()


def letters(data):
    """Return the letters of the ids."""
    return [chr(int(code.removeprefix("U+"), 16)) for code in data.ids["sans"]]


def test_row_i_is_the_same_letter_in_both_fonts(fonts):
    n = len(fonts.pairs)
    assert 1500 < n < 2000
    assert_array_equal(fonts.pairs, np.column_stack([np.arange(n)] * 2))
    assert_array_equal(fonts.ids["sans"], fonts.ids["serif"])
    i = letters(fonts).index("Ж")
    for view, font in {"sans": "DejaVuSans", "serif": "DejaVuSerif"}.items():
        drawn = make_glyph_image("Ж", 16, font=font).ravel()
        assert_allclose(fonts.views[view][i], drawn / np.linalg.norm(drawn), rtol=1e-6)
    assert fonts.labels[i] == family("Ж") == "Cyrillic"


def test_views_share_a_space_and_rows_have_length_one(fonts):
    assert fonts.shared_space and fonts.metrics == {"sans": "cosine", "serif": "cosine"}
    for X in fonts.views.values():
        assert X.shape == (len(fonts.pairs), 256) and X.dtype == np.float32
        assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-5)


def test_of_letters_drawn_alike_the_first_is_kept(fonts):
    kept = letters(fonts)
    assert "A" in kept and "\u0391" not in kept and "\u0410" not in kept
    assert all(unicodedata.category(c).startswith("L") for c in kept)
    for X in fonts.views.values():
        assert len(np.unique(X, axis=0)) == len(X)


def test_the_plain_cosine_finds_most_partners_but_far_from_all(fonts):
    assert recall_at_one(fonts) == pytest.approx((0.681, 0.708), abs=0.01)


def test_two_calls_give_the_same_bits(fonts):
    again = load_fonts()
    for view, X in fonts.views.items():
        assert_array_equal(again.views[view], X)


def test_size_must_be_positive():
    with pytest.raises(LinkspreadError, match="`size` must be.*got 0"):
        load_fonts(size=0)


def test_an_unknown_font_is_named():
    with pytest.raises(LinkspreadError, match="`font` must.*got 'Nowhere'"):
        make_glyph_image("A", font="Nowhere")


def test_missing_matplotlib_is_one_sentence_with_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.ft2font", None)
    with pytest.raises(MissingDependencyError, match=r"linkspread\[demo\]"):
        load_fonts()

import numpy as np
from scipy import sparse

from linkspread import Links
from linkspread.links.counts import LabelCount, PairCount, count_links


def test_pairs_are_counted_once_by_their_sum():
    one = [(0, 1, 1.0), (0, 1, 2.0), (1, 1, -1.0), (2, 2, -1.0)]
    links = Links.from_pairs(one, between=("a", "b"))
    links += Links.from_pairs([(2, 0, 1.0)], between=("b", "a"))
    links += Links.from_pairs([(0, 1, 1.0), (1, 2, -1.0)], between=("a", "a"))
    counts = count_links(links.resolve({"a": 3, "b": 3}))
    assert [(set(c.between), c.n_must, c.n_cannot) for c in counts] == [
        ({"a", "b"}, 2, 2),
        ({"a"}, 1, 1),
    ]


def test_labels_are_counted_by_view(rng):
    y = {"a": np.array([0, 1, -1, 1]), "b": np.array([2, -1])}
    counts = count_links(Links.from_labels(y))
    assert counts == [LabelCount("a", 3, 2), LabelCount("b", 1, 1)]
    soft = sparse.csr_array(np.array([[0.2, 0.8], [0, 0]]))
    assert count_links(Links.from_labels({"a": soft})) == [LabelCount("a", 1, 2)]
    assert str(PairCount(("a", "b"), 1, 2000)) == "a and b: 1 must, 2,000 cannot"
    assert str(LabelCount("a", 1, 1)) == "a: 1 labels of 1 class"

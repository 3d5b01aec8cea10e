"""A small collection in the form of the Wikipedia benchmark, for tests of studies."""

import numpy as np
from scipy.io import savemat

from linkspread.datasets.collection import Collection

N_CLASSES = 3


def histograms(n_items, n_columns, labels, rng):
    """Return noisy histograms whose classes favour different columns."""
    favoured = rng.random((N_CLASSES, n_columns)) ** 3
    rows = rng.gamma(0.3 + 4 * favoured[labels])
    return rows / rows.sum(axis=1, keepdims=True)


def small_collection(n_items=150, seed=0):
    """Return matched texts and images of three classes."""
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n_items) % N_CLASSES)
    views = {
        "text": histograms(n_items, 6, labels, rng),
        "image": histograms(n_items, 20, labels, rng),
    }
    return Collection(views, labels, ("art", "sport", "war"))


def write_wikipedia(folder, n_train=110):
    """Write the small collection as files of the Wikipedia benchmark."""
    data = small_collection()
    text, image, y = data.views["text"], data.views["image"], data.labels
    tables = {
        "T_tr": text[:n_train],
        "T_te": text[n_train:],
        "I_tr": image[:n_train],
        "I_te": image[n_train:],
    }
    savemat(folder / "raw_features.mat", tables)
    (folder / "categories.list").write_text("\n".join(data.label_names) + "\n")
    lines = [f"t{i}\ti{i}\t{label + 1}\n" for i, label in enumerate(y)]
    (folder / "trainset_txt_img_cat.list").write_text("".join(lines[:n_train]))
    (folder / "testset_txt_img_cat.list").write_text("".join(lines[n_train:]))

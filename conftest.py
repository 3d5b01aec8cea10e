"""What tests of all folders share: which files have no examples to run here."""

from importlib.util import find_spec

# Kernels for a GPU are compiled by a package that comes with torch for one.
collect_ignore = []
if find_spec("triton") is None:
    collect_ignore.append("src/linkspread/compiled/gpu/fused.py")

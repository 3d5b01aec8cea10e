"""Collections to try linkspread on: published, drawn or synthetic."""

from linkspread.datasets.benchmarks import load_corel5k, load_wikipedia
from linkspread.datasets.glyphs import load_fonts, load_glyphs
from linkspread.datasets.partners import load_catalogues, load_digits_views
from linkspread.datasets.synthetic import make_views

__all__ = [
    "load_catalogues",
    "load_corel5k",
    "load_digits_views",
    "load_fonts",
    "load_glyphs",
    "load_wikipedia",
    "make_views",
]

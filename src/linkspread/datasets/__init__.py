"""Collections to try linkspread on: published, drawn or synthetic."""

from linkspread.datasets.benchmarks import load_corel5k, load_wikipedia
from linkspread.datasets.collection import Collection, Partners
from linkspread.datasets.glyphs import load_fonts, load_glyphs, make_glyph_image
from linkspread.datasets.partners import load_catalogues, load_digits_views
from linkspread.datasets.synthetic import (
    SyntheticViews,
    make_neighbor_graph,
    make_views,
)

__all__ = [
    "Collection",
    "Partners",
    "SyntheticViews",
    "load_catalogues",
    "load_corel5k",
    "load_digits_views",
    "load_fonts",
    "load_glyphs",
    "load_wikipedia",
    "make_glyph_image",
    "make_neighbor_graph",
    "make_views",
]

"""Collections to try linkspread on: real, from a benchmark, or made to measure."""

from linkspread.datasets.catalogues import load_catalogues
from linkspread.datasets.collection import Collection, Partners
from linkspread.datasets.corel5k import Corel5k, load_corel5k
from linkspread.datasets.digits import load_digits_views
from linkspread.datasets.fonts import load_fonts
from linkspread.datasets.glyphs import Glyphs, load_glyphs, make_glyph_image
from linkspread.datasets.neighborhoods import make_neighbor_graph
from linkspread.datasets.synthetic import SyntheticViews, make_views
from linkspread.datasets.wikipedia import Wikipedia, load_wikipedia

__all__ = [
    "Collection",
    "Corel5k",
    "Glyphs",
    "Partners",
    "SyntheticViews",
    "Wikipedia",
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

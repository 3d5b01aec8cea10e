"""Tables, figures and pages that show how well a search works."""

from linkspread.studies.report.comparison import (
    choose_labeled,
    choose_queries,
    compare_chance,
    compare_label_spreading,
    compare_scores,
    keep_hidden,
)
from linkspread.studies.report.figures import budget_figures
from linkspread.studies.report.page import build_page, ink_data_uri, picture_data_uri
from linkspread.studies.report.study import (
    Budget,
    Card,
    Cell,
    Hit,
    ParameterCurve,
    Run,
    Search,
    Study,
    check_folder,
    read_study,
    write_page,
    write_study,
)
from linkspread.studies.report.tables import (
    details_markdown,
    parameters_markdown,
    results_markdown,
    results_table,
)

__all__ = [
    "Budget",
    "Card",
    "Cell",
    "Hit",
    "ParameterCurve",
    "Run",
    "Search",
    "Study",
    "budget_figures",
    "build_page",
    "check_folder",
    "choose_labeled",
    "choose_queries",
    "compare_chance",
    "compare_label_spreading",
    "compare_scores",
    "details_markdown",
    "ink_data_uri",
    "keep_hidden",
    "parameters_markdown",
    "picture_data_uri",
    "read_study",
    "results_markdown",
    "results_table",
    "write_page",
    "write_study",
]

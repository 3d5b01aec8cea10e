"""Tables, figures and pages that show how well a search works."""

from linkspread.studies.report.budget_curves import budget_figures
from linkspread.studies.report.budgets import Budget, BudgetCell, BudgetStudy
from linkspread.studies.report.comparison import (
    ComparisonRow,
    compare_chance,
    compare_label_spreading,
    compare_scores,
)
from linkspread.studies.report.explanation_picture import explanation_picture
from linkspread.studies.report.figures import (
    class_figures,
    parameter_figures,
    recall_figures,
)
from linkspread.studies.report.files import check_folder
from linkspread.studies.report.markdown import (
    details_markdown,
    parameters_markdown,
    replace_between,
    results_markdown,
)
from linkspread.studies.report.page import Card, Hit, Search, build_page, write_page
from linkspread.studies.report.pictures import ink_data_uri, picture_data_uri
from linkspread.studies.report.protocol import (
    choose_labeled,
    choose_queries,
    expected_by_chance,
    keep_hidden,
)
from linkspread.studies.report.results import (
    MethodResult,
    ParameterCurve,
    Run,
    TableStudy,
)
from linkspread.studies.report.study_files import (
    from_json,
    read_study,
    to_json,
    write_study,
)
from linkspread.studies.report.study_page import build_study_page

__all__ = [
    "Budget",
    "BudgetCell",
    "BudgetStudy",
    "Card",
    "ComparisonRow",
    "Hit",
    "MethodResult",
    "ParameterCurve",
    "Run",
    "Search",
    "TableStudy",
    "budget_figures",
    "build_page",
    "build_study_page",
    "check_folder",
    "choose_labeled",
    "choose_queries",
    "class_figures",
    "compare_chance",
    "compare_label_spreading",
    "compare_scores",
    "details_markdown",
    "expected_by_chance",
    "explanation_picture",
    "from_json",
    "ink_data_uri",
    "keep_hidden",
    "parameter_figures",
    "parameters_markdown",
    "picture_data_uri",
    "read_study",
    "recall_figures",
    "replace_between",
    "results_markdown",
    "to_json",
    "write_page",
    "write_study",
]

"""The self-contained page of a study, and pictures for it.

A page has no scripts and no external files, so it can be mailed or opened from a
folder. Every text is escaped; pictures are data URIs, figures are SVG.
"""

import base64
import io
import os
from pathlib import Path
from typing import Any

import numpy as np

from linkspread.ground.errors import ViewError, require
from linkspread.studies.report.figures import (
    budget_figures,
    class_figures,
    parameter_figures,
    recall_figures,
)
from linkspread.studies.report.study import Study
from linkspread.studies.report.tables import (
    details_table,
    parameter_list,
    results_table,
    seconds_table,
)

FOLDER = Path(__file__).parent


def build_page(study: Study) -> str:
    """Build the page of a study."""
    jinja = require("jinja2", purpose="Writing a page")
    templates = jinja.Environment(
        loader=jinja.FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    figures = {"budgets": {} if study.directions else budget_figures(study)}
    if study.directions:
        figures["recall"] = recall_figures(study)
        figures["classes"] = class_figures(study)
        figures["parameters"] = parameter_figures(study)
    return templates.get_template("page.html").render(
        study=study,
        style=(FOLDER / "page.css").read_text(encoding="utf-8"),
        results=results_table(study),
        details=details_table(study),
        seconds=seconds_table(study),
        parameters=parameter_list(study),
        figures=figures,
    )


def ink_data_uri(image: np.ndarray) -> str:
    """Encode a drawing as a data URI, black ink on a transparent background."""
    if image.ndim != 2 or not (0 <= image.min() and image.max() <= 1):
        raise ViewError(
            "`image` must have two dimensions and ink between 0 and 1, got shape "
            f"{image.shape} with values from {image.min():g} to {image.max():g}. "
            "Divide grey levels by 255."
        )
    pil = require("PIL.Image", purpose="Writing pictures")
    ink = pil.fromarray(np.round(image * 255).astype(np.uint8))
    picture = pil.new("LA", ink.size)
    picture.putalpha(ink)
    return _data_uri(picture)


def picture_data_uri(path: str | os.PathLike[str], *, size: int = 160) -> str:
    """Encode a picture file, reduced in size, as a data URI."""
    pil = require("PIL.Image", purpose="Reading pictures")
    try:
        with pil.open(path) as picture:
            picture.thumbnail((size, size))
            return _data_uri(picture.convert("RGB"))
    except Exception as error:  # damaged bytes can fail anywhere in a reader
        raise ViewError(
            f"a picture must be a readable picture file, got {str(path)!r} "
            f"({type(error).__name__}). Correct the path or save it again."
        ) from error


def _data_uri(picture: Any) -> str:
    file = io.BytesIO()
    picture.save(file, format="PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"

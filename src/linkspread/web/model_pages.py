"""What a score is made of, and what the model is made of."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from linkspread.ground.errors import LinkspreadError
from linkspread.web.charts import curve_chart
from linkspread.web.explaining import explain
from linkspread.web.overview import item_map, look, recall_chart
from linkspread.web.parameters import Id, View, Words
from linkspread.web.rendering import render
from linkspread.web.search_pages import read_query
from linkspread.web.searching import resolve
from linkspread.web.visitors import Anyone, Here

model_pages = APIRouter(default_response_class=HTMLResponse, include_in_schema=False)


@model_pages.get("/why")
def why_page(
    request: Request,
    site: Here,
    visitor: Anyone,
    found: Id,
    source: View = "",
    target: View = "",
    item: Id = "",
    q: Words = "",
    upload: View = "",
) -> HTMLResponse:
    """Explain one score."""
    query = read_query(site, source, target, item, q, upload)
    asked = resolve(site, query)
    if asked is None:
        raise LinkspreadError(
            "a score has a query and a result, and this address has no query. Search "
            "first, then click a score."
        )
    why = explain(site, query, asked, found)
    values = {"query": query, "asked": asked, "why": why}
    return render("why.html", request, site, visitor, **values)


@model_pages.get("/look")
def look_page(
    request: Request,
    site: Here,
    visitor: Anyone,
    source: View = "",
    target: View = "",
) -> HTMLResponse:
    """Show what the model is made of."""
    query = read_query(site, source, target, "", "", "")
    return render(
        "look.html",
        request,
        site,
        visitor,
        query=query,
        overview=look(site),
        recall=recall_chart(site),
        curve=curve_chart(site.curve.points),
    )


@model_pages.get("/map")
def map_part(
    request: Request, site: Here, visitor: Anyone, source: View, target: View
) -> HTMLResponse:
    """Draw the map, which takes a second or two."""
    drawn = item_map(site, source, target)
    values = {"map": drawn, "views": (source, target)}
    return render("_map.html", request, site, visitor, **values)

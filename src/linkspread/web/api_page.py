"""A page about the JSON, made from the description that programs read."""

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from linkspread.web.rendering import render
from linkspread.web.visitors import Anyone, Here

api_page = APIRouter(include_in_schema=False)


@api_page.get("/api")
def describe_api(request: Request, site: Here, visitor: Anyone) -> HTMLResponse:
    """List what programs can ask."""
    schema = request.app.openapi()
    calls = [
        _call(schema, path, method, about)
        for path, methods in schema["paths"].items()
        for method, about in methods.items()
    ]
    return render("api.html", request, site, visitor, calls=calls)


def _call(
    schema: dict[str, Any], path: str, method: str, about: dict[str, Any]
) -> dict[str, Any]:
    """Describe one address."""
    return {
        "method": method.upper(),
        "path": path,
        "about": about.get("description", ""),
        "fields": [
            (own["name"], own["in"], own["required"])
            for own in about.get("parameters", [])
        ]
        + _body_fields(schema, about),
    }


def _body_fields(
    schema: dict[str, Any], about: dict[str, Any]
) -> list[tuple[str, str, bool]]:
    """Return the fields of the JSON that an address takes."""
    body = about.get("requestBody", {}).get("content", {}).get("application/json")
    if body is None:
        return []
    name = body["schema"]["$ref"].rpartition("/")[2]
    found = schema["components"]["schemas"][name]
    required = found.get("required", [])
    return [(field, "body", field in required) for field in found["properties"]]

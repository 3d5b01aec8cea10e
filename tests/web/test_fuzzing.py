"""Requests that nobody wrote by hand: none of them is a fault of ours."""

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance

from web_sites import EVIL, ROOT, fit_model, form_token, many_browsers


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with many_browsers(fit_model(), tmp_path_factory.mktemp) as make:
        yield make(requests_per_second=1e6, max_upload_pixels=100_000)


VALUES = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["", "0", "-1", "1e9", "99999999999999999999", "NaN", "null", "\0"]
    ),
    st.sampled_from(
        ["text", "image", "t5", "i3", "must", "undo", EVIL, "%00", "a" * 3000]
    ),
)
NAMES = ("source", "target", "item", "q", "page", "found", "before", "view", "id", "n")
NAMES += ("upload", "shown", "part", "who", "size")
PATHS = ("/", "/ask", "/history", "/why", "/look", "/picture", "/api/search")
PATHS += ("/api/items", "/api/explanation", "/api/judgements", "/api/suggestions")


@settings(max_examples=120)
@given(
    path=st.sampled_from(PATHS),
    given=st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5),
)
@pytest.mark.slow
def test_no_question_is_a_fault_of_ours(browser, path, given):
    answer = browser.get(path, params=given)
    assert answer.status_code in (200, 400, 404)


@settings(max_examples=60)
@given(
    path=st.sampled_from(
        ("/", "/ask", "/history", "/name", "/api/judgements", "/upload")
    ),
    fields=st.dictionaries(
        st.sampled_from(
            ("must", "undo", "left", "right", "verdict", "key", "seen", "name")
        ),
        VALUES,
        max_size=5,
    ),
    query=st.sampled_from(({}, {"item": "t5"}, {"source": "image", "item": "i3"})),
)
@pytest.mark.slow
def test_no_form_is_a_fault_of_ours(browser, path, fields, query):
    fields = fields | {"form_token": form_token(browser.get("/").text)}
    if path.startswith("/api"):
        answer = browser.post(path, json=fields)
    else:
        answer = browser.post(path, params=query, data=fields)
    assert answer.status_code in (200, 201, 400, 404)


def test_bytes_that_are_no_form_are_refused(browser):
    for kind in ("multipart/form-data", "multipart/form-data; boundary=x"):
        headers = {"content-type": kind}
        answer = browser.post("/upload", content=b"\xff\0--x\r\n", headers=headers)
        assert answer.status_code in (400, 403)
    headers = {"content-type": "application/json"}
    for body in (b"{", b"[]", b"\xff", b'{"who": "\\ud800"}', b"[" * 5000):
        answer = browser.post("/api/judgements", content=body, headers=headers)
        assert answer.status_code == 400


@pytest.mark.slow
def test_whatever_the_description_allows_is_answered(browser):
    # Other names than our own are not answered.
    ours = {"host": "127.0.0.1"}
    schema = schemathesis.openapi.from_asgi("/openapi.json", browser.app, headers=ours)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert {own.path for own in operations} > {"/api/search", "/api/judgements"}
    for operation in operations:
        # Requests that get past the door, or the test would tell nothing.
        assert answers_to(operation) & {200, 201, 400, 404}, operation.label


def answers_to(operation):
    """Return the statuses that made-up requests get; none may be a fault of ours."""
    answered = set()

    @settings(max_examples=40, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy())
    def ask(case):
        answer = case.call(base_url=ROOT)
        answered.add(answer.status_code)
        checks = [not_a_server_error, response_schema_conformance]
        case.validate_response(answer, checks=checks)

    ask()
    return answered

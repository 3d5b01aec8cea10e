"""The page about exports runs, against a server of its own."""

import re

import numpy as np
import pytest

from documents import FENCE, ROOT, python_blocks
from postgres_server import running_server

PAGE = ROOT / "docs" / "exchange.md"


@pytest.fixture(scope="module")
def url():
    with running_server() as address:
        yield address


def sql_blocks(text):
    fence = FENCE.pattern.replace("python", "sql")
    return [match[1] for match in re.compile(fence, FENCE.flags).finditer(text)]


@pytest.mark.slow
def test_the_page_runs_and_its_query_gives_the_top_ten(url, tmp_path, monkeypatch):
    psycopg = pytest.importorskip("psycopg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", url)
    text = PAGE.read_text(encoding="utf-8")
    create, nearest, breadth = sql_blocks(text)
    page = {"__name__": "page"}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(create)
        for block in python_blocks(text):
            exec(compile(block, str(PAGE), "exec"), page)
        plan = connection.execute("EXPLAIN " + nearest).fetchall()
        assert "images_embedding_idx" in str(plan)
        connection.execute(breadth)
        rows = connection.execute(nearest).fetchall()
        connection.execute("SET enable_indexscan = off")
        exact = connection.execute(nearest).fetchall()
    ids, scores = page["model"].search("text-7", **page["between"])
    np.testing.assert_allclose([score for _, score in exact], scores, rtol=1e-4)
    assert len({name for name, _ in rows} & set(ids)) >= 9
    assert page["recall"] > 0.9
    assert page["best"].tolist() == [
        page["model"].search(f"text-{i}", **page["between"])[0][0] for i in range(5)
    ]

"""Places of link stores: a file of SQLite, and a PostgreSQL server for all tests."""

import pytest

from link_store_places import empty_database
from postgres_server import running_server


@pytest.fixture(scope="session")
def server():
    with running_server() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path):
    if request.param == "sqlite":
        yield tmp_path / "judgements.db"
        return
    with empty_database(request.getfixturevalue("server")) as url:
        yield url

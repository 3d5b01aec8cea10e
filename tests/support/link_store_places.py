"""Places for link stores in tests, and judgements to put there."""

from contextlib import contextmanager

from linkspread.storage import Judgement

PAIR = {"left_view": "text", "left_id": "t1", "right_view": "image", "right_id": 7}


def judge(who="ann", verdict="must", **changes):
    """Return a judgement on a pair."""
    return Judgement(**{"who": who, "verdict": verdict, **PAIR, **changes})


def execute(url, statement):
    """Return the rows of a statement in PostgreSQL."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else None


@contextmanager
def empty_database(server):
    """Yield the URL of a new database of a server."""
    execute(server, "CREATE DATABASE judged")
    try:
        yield server.replace("/postgres?", "/judged?")
    finally:
        execute(server, "DROP DATABASE judged WITH (FORCE)")

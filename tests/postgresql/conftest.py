"""What the tests of this folder may use, and what becomes of them without a server."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from tests.postgresql.server import Server, programs

# A run in this process forgets what it imported: then errors would be of other classes each time.
if find_spec("psycopg") is not None:
    import psycopg  # noqa: F401

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Return a running server."""
    missing = "psycopg" if find_spec("psycopg") is None else None
    if programs() is None:
        missing = "a server of PostgreSQL"
    if missing is not None:
        pytest.skip(f"{missing} is not installed; make test-real needs it")
    made = Server()
    try:
        yield made.start()
    finally:
        made.kill()
        shutil.rmtree(made.folder, ignore_errors=True)


@pytest.fixture
def url(server: Server, request: pytest.FixtureRequest) -> str:
    """Return the URL of an empty database of the test's own."""
    name = f"d{abs(hash(request.node.nodeid))}"
    server.psql(f"CREATE DATABASE {name}")
    return server.url(name)

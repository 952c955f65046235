"""What the tests of this folder may use, and what becomes of them without the simulator."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import pytest


@pytest.fixture(scope="session", autouse=True)
def _simulator() -> None:
    try:
        version("tt-lang-sim")
    except PackageNotFoundError:
        pytest.skip("tt-lang-sim is not installed; make test-real installs it")

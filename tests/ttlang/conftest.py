"""What the tests of this folder may use, and what becomes of them without the simulator."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version

import pytest

#: Set by ``make test-ttlang``: there, a simulator that is missing is an error.
REQUIRED = "TTNN_PERF_TEST_TTLANG"


@pytest.fixture(scope="session", autouse=True)
def _simulator() -> None:
    try:
        version("tt-lang-sim")
    except PackageNotFoundError:
        reason = "tt-lang-sim is not installed; make test-ttlang installs it"
        if os.environ.get(REQUIRED) == "required":
            pytest.fail(reason)
        pytest.skip(reason)

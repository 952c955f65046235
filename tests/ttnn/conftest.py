"""What becomes of the tests of this folder where TTNN, or what its mock devices need, is absent."""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

#: Set by ``make test-ttnn``: there, a test that is skipped is an error.
REQUIRED = "TTNN_PERF_TEST_TTNN"


@pytest.fixture(scope="session", autouse=True)
def _ttnn() -> None:
    if importlib.util.find_spec("ttnn") is None:
        pytest.skip("ttnn is not installed; make test-ttnn installs it")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let a test that is skipped fail where none may be."""
    report = yield
    if report.skipped and os.environ.get(REQUIRED) == "required":
        report.outcome = "failed"
    return report

"""What becomes of the tests of this folder where TTNN is absent."""

from __future__ import annotations

import importlib.util

import pytest


@pytest.fixture(scope="session", autouse=True)
def _ttnn() -> None:
    if importlib.util.find_spec("ttnn") is None:
        pytest.skip("ttnn is not installed; make test-ttnn installs it")

"""What is loaded shows in real starts only."""

from __future__ import annotations

import pytest

from tests.harness.quick_starts import REAL


@pytest.fixture(autouse=True)
def real_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start every process for real."""
    monkeypatch.setenv(REAL, "real")

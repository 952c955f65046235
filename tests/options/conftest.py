"""What the tests of this folder may use."""

from __future__ import annotations

from typing import TYPE_CHECKING

# A run in this process forgets what it imported; what is loaded here is not loaded anew each time.
import filelock  # noqa: F401
import pytest
import tabulate  # noqa: F401

import pytest_ttnn_perf.plugin.activation  # noqa: F401

if TYPE_CHECKING:
    from tests.harness.project import Project


@pytest.fixture
def project(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Leave out plugins that only cost time: each inner run would load hypothesis anew."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest -p no:benchmark")
    return project

"""Where numbers are from: the host, and the version of the project checked out on it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from pytest_ttnn_perf.device.host import host_environment
from pytest_ttnn_perf.processes.git_files import state

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.model.hardware import Environment


def environment_of(project: Path) -> Environment:
    """Return what is true now of this host and of the ``project`` checked out on it."""
    commit, dirty = state(project)
    return replace(host_environment(now=datetime.now(timezone.utc)), commit=commit, dirty=dirty)

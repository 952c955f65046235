"""Processes of a launcher such as mpirun: they start no others, and one of them judges."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.model.profile import ProfilerKind
from pytest_ttnn_perf.model.settings import Isolate
from pytest_ttnn_perf.plugin.fixture import INSTRUMENTS
from pytest_ttnn_perf.plugin.worker import Worker
from pytest_ttnn_perf.workflow.equipment import equipment
from pytest_ttnn_perf.workflow.readiness import rank_of

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.settings import Settings


def is_one_of_several(settings: Settings) -> bool:
    """Tell whether a launcher has started this process beside others.

    Raises:
        pytest.UsageError: workers were asked for, which such a process cannot start.
    """
    rank = rank_of(os.environ)
    if rank is not None and settings.isolate is Isolate.PROCESS:
        message = f"--ttnn-perf-isolate process: this is {rank} of a launcher: it starts no workers"
        raise pytest.UsageError(message)
    return rank is not None


def follow(config: pytest.Config, settings: Settings) -> bool:
    """Measure without judging if another rank judges; return whether it does."""
    rank = rank_of(os.environ)
    if rank is None or rank.number == 0:
        return False
    config.stash[INSTRUMENTS] = equipment(settings, ProfilerKind.OFF)
    config.pluginmanager.register(Worker(settings), "ttnn_perf_worker")
    config.pluginmanager.register(OtherRank(str(rank)), "ttnn_perf_rank")
    return True


@dataclass(eq=False)
class OtherRank:
    """A process that measures and is not asked what it found."""

    rank: str

    def pytest_report_header(self) -> str:
        """Say who judges."""
        return f"ttnn-perf: {self.rank}: measured here, judged and written by rank 0"

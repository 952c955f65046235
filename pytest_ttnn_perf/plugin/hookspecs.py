"""The hooks that other plugins and conftest files may implement.

Every pytest run imports this module, so it imports nothing of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.observation import Run
    from pytest_ttnn_perf.core.wings import captures, findings


@pytest.hookspec
def pytest_ttnn_perf_rules(config: pytest.Config) -> Sequence[findings.CustomRule]:  # type: ignore[empty-body]
    """Return rules to ask in addition to the checklist's.

    Called once in every process of a gated run, before tests are collected: by workers, which ask
    them, and by the orchestrator, which knows their codes by it.
    """


@pytest.hookspec
def pytest_ttnn_perf_capture_formats(  # type: ignore[empty-body]
    config: pytest.Config,
) -> Sequence[captures.CaptureFormat]:
    """Return more formats that ``ttnn_perf.attach`` and replays can read.

    Called once in every process of a gated run, before tests are collected.
    """


@pytest.hookspec(firstresult=True)
def pytest_ttnn_perf_hardware(item: pytest.Item, hardware: Hardware | None) -> Hardware | None:
    """Return the hardware of a test, where it is unknown.

    Called in the worker after a test that opened no device through TTNN (``hardware`` is None), or
    one of which the architecture or the board is ``unknown``.
    """


@pytest.hookspec
def pytest_ttnn_perf_report(config: pytest.Config, run: Run, document: Mapping[str, Any]) -> None:
    """Write a report of one's own.

    Called once at the end of a gated run, by the orchestrator, after record and baselines are
    written. ``document`` is the run record, as it is in its file.
    """

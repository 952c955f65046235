"""The host's identity and state, without a slow call."""

from __future__ import annotations

import platform
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.device import host
from pytest_ttnn_perf.device.host import host_environment

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2026, 11, 16, 12, 0, tzinfo=timezone.utc)


def test_what_is_true_of_this_host() -> None:
    environment = host_environment(now=NOON)
    assert environment.started_at == "2026-11-16T12:00:00Z"
    assert environment.python == f"CPython {platform.python_version()}"
    assert environment.pytest == pytest.__version__
    assert environment.host_hash is not None
    assert platform.node() not in environment.host_hash


def test_a_machine_that_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = tmp_path / "nowhere"
    monkeypatch.setattr(host, "_GOVERNOR", nowhere)
    monkeypatch.setattr(host, "_CPUINFO", nowhere)
    assert host_environment(now=NOON).governor is None

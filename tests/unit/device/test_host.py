"""The host's identity and state, without a slow call."""

from __future__ import annotations

import platform
import subprocess
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.device import host
from pytest_ttnn_perf.device.host import host_environment, host_hardware

if TYPE_CHECKING:
    from pathlib import Path

NOON = datetime(2026, 11, 16, 12, 0, tzinfo=timezone.utc)


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_the_key_of_a_machine_without_a_device() -> None:
    assert host_hardware().key == f"host-{platform.machine()}"


def test_environment_outside_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    environment = host_environment(tmp_path, now=NOON)
    assert environment.started_at == "2026-11-16T12:00:00Z"
    assert environment.python == f"CPython {platform.python_version()}"
    assert environment.pytest == pytest.__version__
    assert (environment.commit, environment.dirty) == (None, None)
    assert environment.host_hash is not None
    assert platform.node() not in environment.host_hash


def test_commit_and_dirtiness_of_a_repository(tmp_path: Path) -> None:
    git(tmp_path, "init")
    assert host_environment(tmp_path, now=NOON).commit is None
    (tmp_path / "model.py").write_text("a = 1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "one")
    clean = host_environment(tmp_path, now=NOON)
    assert clean.commit is not None
    assert len(clean.commit) == 40
    assert clean.dirty is False
    (tmp_path / "untracked.py").write_text("")
    assert host_environment(tmp_path, now=NOON).dirty is False
    (tmp_path / "model.py").write_text("a = 2\n")
    assert host_environment(tmp_path, now=NOON).dirty is True


def test_a_git_that_does_not_answer_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = tmp_path / "git"
    slow.write_text("#!/bin/sh\nsleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(host, "_GIT_TIMEOUT_S", 0.2)
    assert host_environment(tmp_path, now=NOON).commit is None


def test_a_machine_that_tells_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = tmp_path / "nowhere"
    monkeypatch.setattr(host, "_GOVERNOR", nowhere)
    monkeypatch.setattr(host, "_CPUINFO", nowhere)
    monkeypatch.setenv("PATH", str(nowhere))
    environment = host_environment(tmp_path, now=NOON)
    assert (environment.governor, environment.commit) == (None, None)

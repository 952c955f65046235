"""A command of the user's: why it failed, in a few words, and that it is not waited for long."""

from __future__ import annotations

import os
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.processes.commands import run_command
from tests.faults.workers import assert_gone

if TYPE_CHECKING:
    from pathlib import Path

#: Longer than any of these takes, however busy the machine is.
PATIENCE_S = 60.0


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("true", None),
        ("echo said; echo complained >&2", None),
        ("exit 3", "ended with code 3"),
        ("echo first; echo last; exit 1", "ended with code 1: last"),
        ("echo said; echo complained >&2; exit 2", "ended with code 2: complained"),
        ("echo said; echo '  ' >&2; exit 2", "ended with code 2: said"),
        ("echo; exit 2", "ended with code 2"),
        ("printf 'caf\\351\\n'; exit 2", "ended with code 2: caf\ufffd"),
        ("kill -9 $$", "ended with code -9"),
        ("cat; exit 5", "ended with code 5"),
        ("echo a | grep -q b || exit 7", "ended with code 7"),
    ],
    ids=[
        "well", "well, with words", "code", "last line", "stderr first", "blank stderr",
        "blank", "bytes", "signal", "no input", "of the shell",
    ],
)  # fmt: skip
def test_why_a_command_failed(command: str, why: str | None) -> None:
    assert run_command(command, timeout_s=PATIENCE_S) == why


def test_a_command_that_is_none_says_so() -> None:
    why = run_command("does-not-exist-anywhere", timeout_s=PATIENCE_S)
    assert why is not None
    assert why.startswith("ended with code 127: ")
    assert "does-not-exist-anywhere" in why


def test_without_a_shell_it_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert run_command("true", timeout_s=1) == "cannot be started: Permission denied"


@pytest.mark.parametrize(
    ("command", "timeout_s"),
    [("echo $$ > {pid}; exec sleep 1000", 1), ("sleep 1000 & echo $! > {pid}; wait", 1.25)],
    ids=["itself", "with what it has started"],
)
def test_a_command_that_takes_too_long_is_ended(
    tmp_path: Path, command: str, timeout_s: float
) -> None:
    pid = tmp_path / "pid"
    why = run_command(command.format(pid=pid), timeout_s=timeout_s)
    assert why == f"did not end within {timeout_s} s"
    assert_gone([int(pid.read_text())])


def test_a_command_that_leaves_something_running_has_ended(tmp_path: Path) -> None:
    assert run_command(f"sleep 1000 & echo $! > {tmp_path}/pid", timeout_s=PATIENCE_S) is None
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)

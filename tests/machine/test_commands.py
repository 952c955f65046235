"""Commands that are waited for: how they are run, and how they end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.machine.processes import Ending, free_port, run_batch, run_command
from tests.faults.workers import assert_gone, eventually

if TYPE_CHECKING:
    from pathlib import Path


#: Longer than any of these takes, however busy the machine is.
PATIENCE_S = 300.0


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("true", None),
        ("echo said; echo complained >&2", None),
        ("echo said; echo complained >&2; exit 2", "ended with code 2: complained"),
        ("echo said; echo '  ' >&2; exit 2", "ended with code 2: said"),
        ("kill -9 $$", "ended with code -9"),
        ("cat; exit 5", "ended with code 5"),
    ],
    ids=["well", "well, with words", "stderr first", "blank stderr", "signal", "no input"],
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


def test_a_command_that_takes_too_long_is_ended_with_what_it_has_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    why = run_command(f"sleep 1000 & echo $! $$ > {pids}; wait", timeout_s=1.25)
    assert why == "did not end within 1.25 s"
    assert_gone([int(pid) for pid in pids.read_text().split()])


def run(folder: Path, script: str, *, timeout_s: float = PATIENCE_S, **variables: str) -> Ending:
    """Run a script of the shell; what it prints is in ``log``."""
    return run_batch(
        ["/bin/sh", "-c", script],
        cwd=folder,
        environment={"PATH": os.environ["PATH"], **variables},
        log=folder / "log",
        timeout_s=timeout_s,
    )


def test_it_has_its_folder_its_environment_and_no_input(tmp_path: Path) -> None:
    ending = run(tmp_path, 'pwd; echo "$HOME-$GIVEN"; cat', GIVEN="so")
    assert ending == Ending(0)
    assert (tmp_path / "log").read_text() == f"{tmp_path.resolve()}\n-so\n"


def test_one_that_takes_too_long_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    """In its group of processes, or in one of their own."""
    script = "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; echo $$; wait"
    ending = run(tmp_path, script, timeout_s=2.0)
    assert ending == Ending(-signal.SIGKILL, silent_s=2.0)
    assert str(ending) == "hung: no sign of life for 2 s, killed"
    assert_gone([int(pid) for pid in (tmp_path / "log").read_text().split()])


def test_nothing_is_left_of_it_when_we_are_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, wait = tmp_path / "log", subprocess.Popen.wait

    def interrupted(process: subprocess.Popen[bytes], timeout: float | None = None) -> int:
        monkeypatch.setattr(subprocess.Popen, "wait", wait)
        assert process.returncode is None
        assert timeout == PATIENCE_S
        assert eventually(lambda: len(log.read_text().split()) == 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, "sleep 1000 & echo $!; echo $$; wait")
    assert_gone([int(pid) for pid in log.read_text().split()])


def test_a_free_port_can_be_listened_on() -> None:
    port = free_port()
    assert 1024 <= port <= 65535
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", port))


@pytest.mark.parametrize(
    ("ending", "text"),
    [
        (Ending(0), "ended with exit code 0"),
        (Ending(-9), "was killed by SIGKILL"),
        # A real-time signal has a number and no name.
        (Ending(-40), "was killed by signal 40"),
        (Ending(0, cut=True), "ended with exit code 0, in the middle of a message"),
        # What we did ourselves is not told as what happened to it.
        (Ending(-9, silent_s=2), "hung: no sign of life for 2 s, killed"),
        (Ending(-9, silent_s=0.5, cut=True), "hung: no sign of life for 0.5 s, killed"),
        (Ending(-9, damaged=True, cut=True), "sent a message that cannot be read, killed"),
    ],
)
def test_an_ending_is_told_in_words(ending: Ending, text: str) -> None:
    assert str(ending) == text

"""Commands that are waited for: how they are run, and how they end."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.machine.processes import Ending, run_bounded, run_command
from tests.faults.workers import assert_gone

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


def run(folder: Path, script: str, *, timeout_s: float = PATIENCE_S, **variables: str) -> Ending:
    """Run a script of the shell; what it prints is in ``log``."""
    with (folder / "log").open("ab") as log:
        return run_bounded(
            ["/bin/sh", "-c", script],
            timeout_s=timeout_s,
            stdout=log,
            stderr=log,
            cwd=folder,
            environment={"PATH": os.environ["PATH"], **variables},
            leave_nothing=True,
        )


def test_one_that_takes_too_long_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    """In its group of processes, or in one of their own."""
    script = "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; echo $$; wait"
    ending = run(tmp_path, script, timeout_s=2.0)
    assert ending == Ending(-signal.SIGKILL, silent_s=2.0)
    assert str(ending) == "hung: no sign of life for 2 s, killed"
    assert_gone([int(pid) for pid in (tmp_path / "log").read_text().split()])

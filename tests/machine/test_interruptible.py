"""A command that can be interrupted: what it says, how it ends, what it leaves."""

from __future__ import annotations

import sys
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

from pytest_ttnn_perf.machine import processes as interruptible
from pytest_ttnn_perf.machine.processes import InterruptibleCommand

if TYPE_CHECKING:
    import pytest


def run(script: str, *, stop_at: str | None = None) -> tuple[int | None, list[str]]:
    """Run a script; interrupt it when it says something."""
    said: list[str] = []
    command = InterruptibleCommand([sys.executable, "-c", script])

    def on_line(line: str) -> None:
        said.append(line)
        if line == stop_at:
            command.interrupt()

    with TemporaryFile() as stdout:
        return command.run(stdout, on_line), said


def test_one_that_is_deaf_to_all_signals_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = tuple((number, 0.0) for number, _ in interruptible._SENT)
    monkeypatch.setattr(interruptible, "_SENT", sent)
    script = """
import signal, sys, time
signal.signal(signal.SIGINT, lambda *_: print("SIGINT", file=sys.stderr))
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", file=sys.stderr)
while True: time.sleep(0.05)
"""
    assert run(script, stop_at="ready")[0] == -9

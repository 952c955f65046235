"""A gated run on a real terminal: progress that leaves no trace, failures that fit."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from typing import TYPE_CHECKING

from tests.harness.project import QUICK, clean

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.harness.project import Project

#: Slower in every process than the one that recorded the baseline.
MODEL = """
    import os
    def test_a(ttnn_perf):
        ttnn_perf.record("latency", 12.0 if "SLOW" in os.environ else 10.0, unit="ms")
    def test_b(ttnn_perf):
        ttnn_perf.record("latency", 10.0, unit="ms")
"""
ISOLATED = ("--ttnn-perf", "--ttnn-perf-isolate", "process", "--ttnn-perf-confirm", "2")


def on_a_terminal(folder: Path, *arguments: str, width: int) -> str:
    """Run pytest on a terminal; return what it was sent."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
    command = [sys.executable, "-m", "pytest", *QUICK, *arguments]
    process = subprocess.Popen(command, cwd=folder, stdout=theirs, stderr=theirs)
    os.close(theirs)
    sent = b""
    with contextlib.suppress(OSError):  # how a terminal says that nobody writes to it any more
        while part := os.read(ours, 4096):
            sent += part
    os.close(ours)
    process.wait(timeout=300)
    return sent.decode().replace("\r\n", "\n")


def test_a_summary_fits_a_terminal(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write(test_model=MODEL)
    assert project.pytest("--ttnn-perf-update=new").code == 0
    monkeypatch.setenv("SLOW", "yes")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("COLUMNS")

    seen = clean(on_a_terminal(project.path, *ISOLATED, width=60))

    assert "(warning): the test measures\n      its model without checking the output\n" in seen

"""Keeps what pytest has captured of a test where it can be read when the process is gone.

pytest captures into files without a name, or in memory, and what lies there ends with the process:
what a simulator says before it aborts, say. In a worker it lies in files of the worker's folder.
They hold what has been printed since pytest last took it, which is what no report tells yet.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from _pytest.capture import CaptureIO, FDCapture

from pytest_ttnn_perf.processes.channel import CAPTURED

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def keep_captured(config: pytest.Config, folder: Path) -> None:
    """Let pytest capture into files of ``folder``, from now on.

    Not what a test captures itself, with ``capfd`` or ``capsys``. With ``-s`` nothing is captured,
    and with ``--capture=tee-sys`` all is printed as well: the worker's log has it.
    """
    manager: Any = config.pluginmanager.get_plugin("capturemanager")
    captures = getattr(manager, "_global_capturing", None)
    for name, file in CAPTURED.items():
        stream: Any = getattr(captures, name.removeprefix("std"), None)
        try:
            if isinstance(stream, FDCapture):
                _keep_file(stream, folder / file)
            elif type(getattr(stream, "tmpfile", None)) is CaptureIO:
                _keep_memory(stream.tmpfile, folder / file)
        except OSError:  # a full disk: captured as ever
            continue


def _keep_file(stream: FDCapture, file: Path) -> None:
    """Put a file with a name in the place of the one without, under the same descriptors."""
    sys.stdout.flush()
    sys.stderr.flush()
    unnamed = stream.tmpfile.fileno()
    captured = os.pread(unnamed, os.fstat(unnamed).st_size, 0)
    named = os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(named, captured)
        capturing = os.path.sameopenfile(unnamed, stream.targetfd)
        os.dup2(named, unnamed, inheritable=False)
        if capturing:
            os.dup2(named, stream.targetfd)
    finally:
        os.close(named)


def _keep_memory(captured: CaptureIO, file: Path) -> None:
    """Write what Python prints to a file as well, until pytest takes it."""
    named = os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
    os.write(named, captured.getvalue().encode())
    write, truncate = captured.write, captured.truncate

    def write_both(text: str) -> int:
        os.write(named, text.encode(errors="replace"))
        return write(text)

    def truncate_both(size: int | None = None) -> int:
        os.ftruncate(named, size or 0)
        return truncate(size)

    # The object stays: whoever holds sys.stdout goes on writing to it.
    vars(captured).update(write=write_both, truncate=truncate_both)

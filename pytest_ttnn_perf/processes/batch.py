"""A process that is run to its end without a word: what it has to say, it writes to files."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import TYPE_CHECKING

from pytest_ttnn_perf.processes.ending import Ending

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def run_batch(
    command: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    log: Path,
    timeout_s: float,
) -> Ending:
    """Run a command, at most so long (0: for ever); what it prints goes to ``log``.

    Nothing that it has started is left when it ends, or when this process is interrupted.

    Raises:
        OSError: it cannot be started.
    """
    with log.open("ab") as written:
        process = subprocess.Popen(
            list(command),
            cwd=str(cwd),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=written,
            start_new_session=True,
        )
    silent_s = None
    try:
        process.wait(timeout_s or None)
    except subprocess.TimeoutExpired:
        silent_s = timeout_s
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
    return Ending(code, silent_s)


def free_port() -> int:
    """Return a port of this machine that nobody listens on now."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

"""Run a process to completion with a timeout; its output goes to a log."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf.processes.worker import Ending

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


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
        left = descendants(process.pid) if process.poll() is None else []
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        for pid in left:  # a launcher puts what it launches into a group of its own
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        code = process.wait()
    return Ending(code, silent_s)


def descendants(pid: int, proc: Path = Path("/proc")) -> list[int]:
    """Return the processes below one, in whatever groups; none where the system does not tell."""
    children: dict[int, list[int]] = {}
    for stat in proc.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # After the name, which may hold anything, come the state and the parent.
            parent = int(stat.read_text(encoding="utf-8").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def free_port() -> int:
    """Return a port of this machine that nobody listens on now."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run_command(command: str, *, timeout_s: float) -> str | None:
    """Run a command in the shell, for the user wrote it as for one; return why it failed.

    None if it did not.
    """
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                command,
                shell=True,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # what it has started is ended with it
            )
        except OSError as error:
            return f"cannot be started: {error.strerror}"
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return f"did not end within {timeout_s:g} s"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        output.seek(0)
        said = output.read().decode(errors="replace").strip().splitlines()
    if code == 0:
        return None
    return f"ended with code {code}" + (f": {said[-1]}" if said else "")

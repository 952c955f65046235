"""Run a process to completion with a timeout; its output goes to a file."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
from typing import IO, TYPE_CHECKING, Final

from pytest_ttnn_perf.processes.descendants import Descendants, descendants
from pytest_ttnn_perf.processes.worker import Ending

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def run_bounded(  # noqa: PLR0913 (keywords, most of them those of Popen)
    command: Sequence[str] | str,
    *,
    timeout_s: float,
    stdout: IO[bytes],
    stderr: IO[bytes],
    cwd: Path | None = None,
    environment: Mapping[str, str] | None = None,
    leave_nothing: bool = False,
) -> Ending:
    """Run a command without input, at most so long (0: for ever); a string is one for the shell.

    It is killed with all that it has started if it takes longer, or if this process is interrupted;
    with ``leave_nothing``, what it has started is killed when it ends, too. Its output goes to
    files: a child of it could keep a pipe open after its end.

    Raises:
        OSError: it cannot be started.
    """
    with contextlib.ExitStack() as failed:
        left = Descendants() if leave_nothing else None
        if left is not None:
            failed.callback(left.end, [])
        process = subprocess.Popen(
            command,
            shell=isinstance(command, str),
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        failed.pop_all()
    silent_s = None
    try:
        process.wait(timeout_s or None)
    except subprocess.TimeoutExpired:
        silent_s = timeout_s
    finally:
        running = process.poll() is None
        below = descendants(process.pid) if running else []
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if running or leave_nothing:
                os.killpg(process.pid, signal.SIGKILL)
        for pid in below:  # a launcher puts what it launches into a group of its own
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        code = process.wait()
        if left is not None:
            left.end([])
    return Ending(code, silent_s)


def run_batch(
    command: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    log: Path,
    timeout_s: float,
) -> Ending:
    """Run a command as ``run_bounded`` does, leaving nothing; what it prints is added to ``log``.

    Raises:
        OSError: it cannot be started.
    """
    with log.open("ab") as output:
        return run_bounded(
            command,
            timeout_s=timeout_s,
            stdout=output,
            stderr=output,
            cwd=cwd,
            environment=environment,
            leave_nothing=True,
        )


def free_port() -> int:
    """Return a port of this machine that nobody listens on now."""
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run_command(command: str, *, timeout_s: float) -> str | None:
    """Run a command of the user's in the shell; return why it failed, None if it did not."""
    with tempfile.TemporaryFile() as output:
        try:
            ending = run_bounded(command, timeout_s=timeout_s, stdout=output, stderr=output)
        except OSError as error:
            return f"cannot be started: {error.strerror}"
        output.seek(0)
        lines = output.read().decode(errors="replace").strip().splitlines()
    if ending.hung:
        return f"did not end within {timeout_s:g} s"
    if ending.code == 0:
        return None
    return f"ended with code {ending.code}" + (f": {lines[-1]}" if lines else "")


#: A socket whose owner is alive answers at once.
_PATIENCE_S: Final = 5.0


def listener_of(file: Path) -> int | None:
    """Return which process listens on a socket, 0 if that cannot be told; None if none does."""
    try:
        if not file.is_socket():
            return None
    except OSError:  # in a folder of another user's
        return None
    import socket
    import struct

    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(_PATIENCE_S)
        try:
            link.connect(str(file))
        except (FileNotFoundError, ConnectionRefusedError):  # left behind
            return None
        except OSError:  # not for this user, or too busy to answer
            return 0
        layout = "3i"  # process, user, group
        told = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize(layout))
        return int(struct.unpack(layout, told)[0])

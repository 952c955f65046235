"""A command of the user's, run once and bounded."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile


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

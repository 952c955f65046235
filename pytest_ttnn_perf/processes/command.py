"""A command of the user's, run once and bounded."""

from __future__ import annotations

import subprocess


def run_command(command: str, *, timeout_s: float) -> str | None:
    """Run a command in the shell, for the user wrote it as for one; return why it failed.

    None if it did not.
    """
    try:
        done = subprocess.run(
            command,
            shell=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"did not end within {timeout_s:.0f} s"
    except OSError as error:
        return f"cannot be started: {error.strerror}"
    if done.returncode == 0:
        return None
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return f"ended with code {done.returncode}" + (f": {said[-1]}" if said else "")

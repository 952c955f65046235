"""Asking git, and having it do something, without a trace in what the user has checked out."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

#: Where these are set, as in a hook, git would write the user's own index instead of another's.
_OF_ONE_REPOSITORY: Final = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_PREFIX", "GIT_NAMESPACE",
)  # fmt: skip


class GitError(Exception):
    """What git said last when it failed."""


@dataclass(frozen=True, slots=True)
class Git:
    """The git of one folder."""

    folder: Path

    def run(self, *words: str) -> str:
        """Run a command without the user's hooks, and return what it prints.

        Ctrl-C reaches us alone: we end git, and with it whatever it has started.

        Raises:
            GitError: it failed, or there is no git.
        """
        command = ["git", "-c", "core.hooksPath=/dev/null", "-C", str(self.folder), *words]
        environment = {k: v for k, v in os.environ.items() if k not in _OF_ONE_REPOSITORY}
        # Asking must not take the index lock from a git command of the user's.
        environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        try:
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as cause:
            message = f"git cannot be started: {cause.strerror}"
            raise GitError(message) from cause
        try:
            output, errors = process.communicate()
        except BaseException:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise
        if process.returncode:
            lines = errors.decode(errors="replace").strip().splitlines()
            raise GitError(lines[-1] if lines else f"git ended with code {process.returncode}")
        return output.decode(errors="surrogateescape")

    def ask(self, *words: str) -> str | None:
        """Return what a command prints, without the last line's end; None if it fails."""
        try:
            return self.run(*words).rstrip("\n")
        except GitError:
            return None

"""Asking git, and having it do something, without a trace in what the user has checked out.

What is checked out may be someone else's. A folder with HEAD, objects and refs is a repository to
git, which believes the settings in it, and some of them name programs; all of these are files that
can be committed. A ``.git`` cannot. So git is only ever run where there is one, and is told to
start none of the programs that a setting may name and that we have no use for.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: Where these are set, as in a hook, git would write the user's own index instead of another's.
_OF_ONE_REPOSITORY: Final = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_PREFIX", "GIT_NAMESPACE",
)  # fmt: skip
#: Folders that git, and so we, do not look above.
_CEILINGS: Final = "GIT_CEILING_DIRECTORIES"
#: Of every call. An empty fsmonitor is none to all releases; to old ones "false" is a program.
_ALWAYS: Final = (
    "--no-pager",
    "--literal-pathspecs",
    "-c", "core.hooksPath=/dev/null",
    "-c", "core.fsmonitor=",
    "-c", "log.showSignature=false",
    "-c", "safe.bareRepository=explicit",
)  # fmt: skip


class GitError(Exception):
    """What git said last when it failed."""


def work_tree(folder: Path) -> Path | None:
    """Return the top of the working tree around a folder; None where there is none.

    Git is not asked: it would take a bare repository on the way up for the one that is meant.
    """
    start = Path(os.path.realpath(folder))
    given = filter(None, os.environ.get(_CEILINGS, "").split(os.pathsep))
    ceilings = {Path(os.path.realpath(each)) for each in given}
    for place in (start, *start.parents):
        if place in ceilings and place != start:
            return None
        if _is_top(place):
            return place
    return None


def _is_top(folder: Path) -> bool:
    """Tell whether a working tree begins in a folder: linked ones and submodules have a file."""
    own = folder / ".git"
    return own.is_file() or os.path.lexists(own / "HEAD")


@dataclass(frozen=True, slots=True)
class Git:
    """The git of the working tree that begins in a folder."""

    folder: Path

    def run(self, *words: str) -> str:
        """Run a command, and return what it prints.

        Raises:
            GitError: it failed, or there is no git, or no working tree begins in the folder.
        """
        return self.output(*words).decode(errors="surrogateescape")

    def ask(self, *words: str, timeout_s: float | None = None) -> str | None:
        """Return what a command prints, without the last line's end; None if it fails."""
        try:
            printed = self.output(*words, timeout_s=timeout_s)
        except GitError:
            return None
        return printed.decode(errors="surrogateescape").rstrip("\n")

    def output(self, *words: str, given: bytes = b"", timeout_s: float | None = None) -> bytes:
        """Run a command that reads what is ``given``, and return what it prints.

        Ctrl-C reaches us alone: we end git, and with it whatever it has started.

        Raises:
            GitError: as ``run``, or it took longer than it may.
        """
        if not _is_top(self.folder):
            message = f"git is not asked in {self.folder}: no working tree begins there"
            raise GitError(message)
        try:
            process = subprocess.Popen(
                ["git", *_ALWAYS, "-C", str(self.folder), *words],
                env=self._environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as cause:
            message = f"git cannot be started: {cause.strerror}"
            raise GitError(message) from cause
        try:
            output, errors = process.communicate(given, timeout=timeout_s)
        except BaseException as cause:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            if isinstance(cause, subprocess.TimeoutExpired):
                message = f"git took longer than {timeout_s} s"
                raise GitError(message) from cause
            raise
        if process.returncode:
            lines = errors.decode(errors="replace").strip().splitlines()
            raise GitError(lines[-1] if lines else f"git ended with code {process.returncode}")
        return output

    def _environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if k not in _OF_ONE_REPOSITORY}
        return {
            **kept,
            # Asking must not take the index lock from a git command of the user's.
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
            # Where the .git turns out to be none, there is no other one above it.
            _CEILINGS: str(self.folder.parent),
        }

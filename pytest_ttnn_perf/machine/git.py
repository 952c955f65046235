"""git: what is checked out, and versions of a file."""

from __future__ import annotations

import os
import signal
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pytest_ttnn_perf.core.errors import InputError
from pytest_ttnn_perf.core.files import LARGEST_TEXT_BYTES
from pytest_ttnn_perf.core.hardware import Environment

if TYPE_CHECKING:
    from collections.abc import Mapping


# What is checked out may be someone else's. A folder with HEAD, objects and refs is a repository to
# git, which believes the settings in it, and some of them name programs; all of these are files
# that can be committed. A ``.git`` cannot. So git is only ever run where there is one, and starts
# none of the programs that a setting may name and that we have no use for.

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
#: A repository that takes longer is one that cannot tell.
TIMEOUT_S: Final = 120.0
#: What every run waits for is waited for less: the commit is recorded as unknown then.
_STATE_TIMEOUT_S: Final = 5.0
#: As many digits as tell the commits of a large repository apart.
_SHORT: Final = 10


class GitError(Exception):
    """The last words of git when it failed."""


def work_tree(folder: Path) -> Path | None:
    """Return the top of the working tree around a folder, if any.

    Git is not asked: it would take a bare repository on the way up for the one that is meant.
    """
    start = Path(os.path.realpath(folder))
    given = filter(None, os.environ.get(_CEILINGS, "").split(os.pathsep))
    ceilings = {Path(os.path.realpath(folder)) for folder in given}
    for place in (start, *start.parents):
        if place in ceilings and place != start:
            return None
        if _is_top(place):
            return place
    return None


def _is_top(folder: Path) -> bool:
    own = folder / ".git"
    return own.is_file() or os.path.lexists(own / "HEAD")  # linked trees and submodules have a file


class Git:
    """The git of the working tree that begins in ``root``."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def ask(self, *words: str, timeout_s: float | None = None) -> str | None:
        """Return what a command prints; None if it fails."""
        try:
            return self.run(*words, timeout_s=timeout_s).rstrip("\n")
        except GitError:
            return None

    def run(
        self,
        *words: str,
        given: str = "",
        timeout_s: float | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> str:
        """Run a command that reads ``given``; return what it prints.

        ``variables`` are added to its environment. Ctrl-C reaches us alone, and we end git.

        Raises:
            GitError: it failed or took too long, there is no git, or no working tree begins here.
        """
        if not _is_top(self.root):
            message = f"git is not run in {self.root}: it is not the top of a working tree"
            raise GitError(message)
        environment = {
            **{k: v for k, v in os.environ.items() if k not in _OF_ONE_REPOSITORY},
            # Asking must not take the index lock from a git command of the user's.
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "LC_ALL": "C",
            # Where the .git turns out to be none, there is no other one above it.
            _CEILINGS: str(self.root.parent),
            **(variables or {}),
        }
        try:
            process = subprocess.Popen(
                ["git", *_ALWAYS, "-C", str(self.root), *words],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as cause:
            message = f"git cannot be started: {cause.strerror}"
            raise GitError(message) from cause
        with process:
            try:
                output, errors = process.communicate(
                    given.encode(errors="surrogateescape"), timeout=timeout_s
                )
            except BaseException as cause:
                os.killpg(process.pid, signal.SIGKILL)  # filters end with it
                process.wait()
                if isinstance(cause, subprocess.TimeoutExpired):
                    message = f"git took longer than {timeout_s} s"
                    raise GitError(message) from cause
                raise
        if process.returncode:
            lines = errors.decode(errors="replace").strip().splitlines()
            message = lines[-1] if lines else f"git ended with code {process.returncode}"
            raise GitError(message)
        return output.decode(errors="surrogateescape")

    def merge_base(self) -> str | None:
        """Return where the branch began; None where that is HEAD."""
        head = self.ask("rev-parse", "--verify", "--quiet", "HEAD")
        for name in ("@{upstream}", "origin/HEAD", "main", "master"):
            base = self.ask("merge-base", "HEAD", name)
            if base and base != head:
                return base
        return None

    def comparison_base(self) -> str | None:
        """Return where the branch began; on the main branch the commit before."""
        base = self.merge_base()
        if base is not None:
            return base[:_SHORT]
        changed = self.ask(
            "status", "--porcelain", "--untracked-files=no", timeout_s=_STATE_TIMEOUT_S
        )
        before = "HEAD" if changed else "HEAD~1"
        return before if self.ask("rev-parse", "--verify", "--quiet", before) else None


def top_level(folder: Path) -> Path | None:
    """Return the top of a working tree that git knows, if any."""
    top = work_tree(folder)
    if top is None or Git(top).ask("rev-parse", "--is-inside-work-tree") != "true":
        return None
    return top


def state(folder: Path, environment: Environment = Environment()) -> Environment:
    """Add what is checked out around a folder to an environment.

    ``dirty``: tracked files differ from the commit. ``parents`` are what the commit itself names,
    also in a shallow clone, which does not have them. No ``branch``: CI systems check out commits.
    """
    top = work_tree(folder)
    words = ["status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    words.append("--ignore-submodules=dirty")  # looking into large ones takes seconds
    answer = Git(top).ask(*words, timeout_s=_STATE_TIMEOUT_S) if top else None
    if top is None or answer is None:
        return environment
    lines = answer.splitlines()
    about = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# branch."))
    commit, branch = about.get("branch.oid", "(initial)"), about.get("branch.head", "(detached)")
    found = replace(
        environment,
        commit=None if commit == "(initial)" else commit,
        dirty=any(not line.startswith("#") for line in lines),
        branch=None if branch == "(detached)" else branch,
    )
    # The object itself: of a commit at the end of a shallow clone, a log shows no parents.
    asked = ("--no-replace-objects", "cat-file", "commit", commit)
    text = found.commit and Git(top).ask(*asked, timeout_s=_STATE_TIMEOUT_S)
    if not text:
        return found
    committed_at, parents = described_commit(text)
    return replace(found, committed_at=committed_at, parents=parents)


def described_commit(text: str) -> tuple[str | None, tuple[str, ...]]:
    r"""Return the time of a commit, in UTC, and its parents.

    >>> described_commit("tree 1\nparent 2\ncommitter A <a@b> 1793534400 +0100\n\nparent 3")
    ('2026-11-01T12:00:00Z', ('2',))
    """
    heading = text.partition("\n\n")[0].split("\n")
    parents = tuple(line[7:] for line in heading if line.startswith("parent "))
    made = next((line for line in heading if line.startswith("committer ")), "")
    try:
        moment = datetime.fromtimestamp(int(made.rsplit(" ", 2)[1]), timezone.utc)
    except (IndexError, ValueError, OverflowError, OSError):  # anybody can write an object
        return None, parents
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}", parents


# Versions of a file.


def is_tracked(file: Path) -> bool | None:
    top, name = _locate(file)
    if top is None:
        return False
    known = Git(top).ask("ls-files", "--", name)
    return None if known is None else bool(known)


def stored_version(file: Path, version: str) -> str | None:
    """Return a file as git has it, if it does.

    ``version`` is ``HEAD:`` for the last commit, or one side of a conflict: ``:1:`` is the base,
    ``:2:`` ours and ``:3:`` theirs.

    Raises:
        InputError: it is larger than any baseline.
    """
    top, name = _locate(file)
    where = "in the last commit" if version == "HEAD:" else "on each side of the conflict"
    return _text(Git(top), f"{version}{name}", file, where) if top else None


def _locate(file: Path) -> tuple[Path | None, str]:
    """Return the working tree of a file, and its path there."""
    folder = Path(os.path.realpath(file.parent))
    top = work_tree(folder)
    return top, "" if top is None else os.path.relpath(folder / file.name, top)


def _text(git: Git, name: str, file: Path, where: str) -> str | None:
    try:
        size_bytes = int(git.run("cat-file", "-s", name, timeout_s=TIMEOUT_S))
        if size_bytes > LARGEST_TEXT_BYTES:
            expected = f"expected at most {LARGEST_TEXT_BYTES} bytes {where}"
            raise InputError(file, f"{expected}, found {size_bytes}")
        text = git.run("cat-file", "blob", name, timeout_s=TIMEOUT_S)
    except GitError:
        return None
    return text.encode(errors="surrogateescape").decode(errors="replace")

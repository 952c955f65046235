"""Other versions of a repository, checked out beside it for a while.

What a process that was killed has left behind is known by its name and its marker, and is removed
by the next one.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from pytest_ttnn_perf._base.errors import InputError, UsageError, WriteError
from pytest_ttnn_perf._base.files import open_file, read_text
from pytest_ttnn_perf.processes.channel import signals_ignored
from pytest_ttnn_perf.processes.git import Git, GitError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


_PREFIX: Final = "ttnn-perf-ab-"
#: What mkdtemp makes of the prefix.
_OURS: Final = re.compile(re.escape(_PREFIX) + r"[a-z0-9_]{8}")
_MARKER: Final = "made-by-ttnn-perf-ab.json"
_SUBMODULE: Final = "160000"


@contextmanager
def temporary_checkout(root: Path, commit: str) -> Iterator[Path]:
    """Check a commit of the repository in ``root`` out; yield where, and remove it in the end.

    The folder is called as that of the repository: where its root is a package, that is its name.

    Raises:
        UsageError: the temporary folder lies in the repository: each version would see the other.
        InputError: git cannot check it out.
        WriteError: there is no room for it.
    """
    temporary = Path(tempfile.gettempdir()).resolve()
    if temporary.is_relative_to(root):
        message = f"the temporary folder {temporary} lies in the repository: set TMPDIR to another"
        raise UsageError(message)
    folder = None
    try:
        try:
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
            marker = _mark(folder, [root])
        except OSError as cause:
            raise WriteError(folder or temporary, cause) from cause
        with marker:
            tree = folder / root.name
            _check_out(marker, root, tree, commit)
            yield tree
    finally:
        if folder is not None:
            with signals_ignored():
                _remove(folder)


def remove_leftovers(root: Path) -> int:
    """Remove what earlier processes left behind when they were killed; return how many."""
    known = {tree.parent for tree in _worktrees(root) if _OURS.fullmatch(tree.parent.name)}
    cwd = Path(tempfile.gettempdir()).resolve()
    found = {folder for folder in cwd.glob(f"{_PREFIX}*") if _OURS.fullmatch(folder.name)}
    return sum(_remove_leftover(folder, root) for folder in sorted(known | found))


def _remove_leftover(folder: Path, root: Path) -> bool:
    if not folder.exists():  # the system has cleared it away, and git does not know
        return _forget(folder, [root])
    try:
        # The temporary folder is everybody's: what others left there names what they like.
        if folder.lstat().st_uid != os.geteuid():
            return False
        with open_file(folder / _MARKER) as marker:
            fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)  # not while its owner lives
            with signals_ignored():
                _remove(folder)
    except (OSError, InputError):  # no marker, so it is not ours; or locked
        return False
    return True


def _mark(folder: Path, repositories: Sequence[Path]) -> TextIO:
    """Put a marker into a folder, and return it locked: it is locked as soon as it has its name."""
    unnamed = folder / f".{_MARKER}"
    marker = unnamed.open("w", encoding="utf-8")
    fcntl.flock(marker, fcntl.LOCK_EX)
    _note(marker, repositories)
    unnamed.replace(folder / _MARKER)
    return marker


def _note(marker: TextIO, repositories: Sequence[Path]) -> None:
    marker.seek(0)
    marker.truncate()
    json.dump({"repositories": [str(repository) for repository in repositories]}, marker)
    marker.flush()


def _check_out(marker: TextIO, root: Path, tree: Path, commit: str) -> None:
    """Check out a commit and, of its submodules, those that the working tree has."""
    waiting = [(root, tree, commit)]
    repositories = []
    while waiting:
        repository, place, wanted = waiting.pop()
        repositories.append(repository)
        _note(marker, repositories)
        git = Git(repository)
        if repository != root and git.ask("cat-file", "-e", f"{wanted}^{{commit}}") is None:
            problem = f"the submodule does not have commit {wanted[:12]}, which is asked for"
            raise InputError(repository, f"{problem}: git -C {repository} fetch")
        try:
            git.run("worktree", "add", "--detach", str(place), wanted)
            listed = git.run("ls-tree", "-r", "-z", wanted)
        except GitError as cause:
            problem = f"commit {wanted[:12]} cannot be checked out: {cause}"
            raise InputError(repository, problem) from cause
        for entry in listed.split("\0"):
            mode, _, rest = entry.partition(" ")
            if mode == _SUBMODULE:
                identity, path = rest.split(" ", 1)[1].split("\t", 1)
                own = repository / path
                # One that is not checked out here is not missed there. A link leads to another's.
                if (own / ".git").exists() and os.path.realpath(own) == str(own):
                    waiting.append((own, place / path, identity))


def _remove(folder: Path) -> None:
    """Remove a folder of ours, and what git remembers of the worktrees in it."""
    repositories: list[Path] = []
    with contextlib.suppress(InputError, ValueError, KeyError, TypeError):
        marker = json.loads(read_text(folder / _MARKER))
        repositories = [Path(repository) for repository in marker["repositories"]]
    # The marker last: a process that is killed in the middle of this leaves a leftover.
    for entry in folder.iterdir():
        if entry.name != _MARKER:
            _delete(entry)
    _forget(folder, repositories)
    _delete(folder)


def _forget(folder: Path, repositories: Sequence[Path]) -> bool:
    """Let git forget the worktrees in a folder that is gone; return whether there were any."""
    done = False
    for repository in repositories:
        for tree in _worktrees(repository):
            if tree.is_relative_to(folder):
                # Not `prune`, which would also forget those of the user on a disk that is off.
                forgotten = Git(repository).ask("worktree", "remove", "-f", "-f", str(tree))
                done = done or forgotten is not None
    return done


def _worktrees(repository: Path) -> list[Path]:
    listed = Git(repository).ask("worktree", "list", "--porcelain") or ""
    lines = listed.splitlines()
    return [Path(line[9:]) for line in lines if line.startswith("worktree ")]


def _delete(path: Path) -> None:
    """Delete a file or a folder, also one that a test has made read-only."""
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    for parent, folders, _ in os.walk(path):
        for name in (".", *folders):
            with contextlib.suppress(OSError):
                place = Path(parent, name)
                if not place.is_symlink():
                    place.chmod(0o700)
    shutil.rmtree(path, ignore_errors=True)

"""Commits, states of a working tree, checkouts and their builds.

Nothing here changes what the user has checked out, nor the user's index and branches.
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
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

from pytest_ttnn_perf.core.errors import InputError, UsageError, WriteError
from pytest_ttnn_perf.core.files import open_file, read_text
from pytest_ttnn_perf.core.text import visible
from pytest_ttnn_perf.machine.git import (
    Git,
    GitError,
    work_tree,
)
from pytest_ttnn_perf.machine.processes import run_bounded, signals_ignored

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


class Commit(NamedTuple):
    """A commit: its full and short name, and its printable subject."""

    id: str
    short: str
    subject: str
    date: str = ""
    parents: tuple[str, ...] = ()
    author: str = ""


def _log(git: Git, *words: str) -> Iterator[Commit]:
    safe = ("--no-show-signature", "--no-ext-diff", "--no-textconv")
    fields = "--format=%H%x00%h%x00%aI%x00%P%x00%an <%ae>%x00%s"
    parts = (git.ask("log", "-z", *safe, fields, *words) or "").split("\0")
    for at in range(0, len(parts) - 5, 6):
        commit, short, date, parents, author, subject = parts[at : at + 6]
        known = tuple(parents.split())
        yield Commit(commit, short, visible(subject), date, known, visible(author))


# Commits of a repository, and states of its working tree.
#
# A state is a tree of all files that git tracks or would track, with uncommitted changes. It is
# made in an index of its own, so the user's index, files and branches stay as they are.

#: Keeps git from removing the states of steps; no branch, and not pushed by itself.
_REFS: Final = "refs/ttnn-perf/steps"
#: Untracked files of more than this are data or builds: git would keep a copy of each state.
LARGEST_UNTRACKED_BYTES: Final = 64 * 1024**2
#: Left by any run of Python or pytest, and no part of a change.
_BY_PRODUCTS: Final = frozenset({"__pycache__", ".pytest_cache", ".ttnn_perf"})
#: The same tree and parent are the same commit, whoever asks and whenever.
_NOBODY: Final = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "ttnn-perf"), ("EMAIL", "ttnn-perf"), ("DATE", "@0 +0000"))
}


class WorkingTree(NamedTuple):
    """The checked-out commit, if any, and the number of changed files.

    ``changed`` and ``untracked`` count files that the commit does not have as they are.
    """

    commit: Commit | None
    changed: int = 0
    untracked: int = 0


class State(NamedTuple):
    """A state of the working tree: its tree, and its commit."""

    tree: str
    commit: str


class Repository(Git):
    """Commits of a repository, and states of its working tree."""

    @classmethod
    def around(cls, folder: Path) -> Repository:
        """Return the repository that a folder belongs to.

        Raises:
            UsageError: there is none, or one without a working tree.
        """
        root = work_tree(folder)
        message = f"{folder} is in no git repository with a working tree"
        if root is None:
            raise UsageError(f"{message}: neither it nor a folder above it has a .git")
        try:
            Git(root).run("rev-parse", "--is-inside-work-tree")
        except GitError as cause:
            raise UsageError(f"{message}: {cause}") from cause
        return cls(root)

    def commit(self, name: str) -> Commit:
        found = None if name.startswith("-") else self._id(f"{name}^{{commit}}")
        if found is None:
            expected = "expected a branch, a tag or a commit"
            message = f"{name!r} is not a commit of {self.root}: {expected}"
            raise UsageError(message)
        return self._described(found)

    def working_tree(self) -> WorkingTree:
        head = self._id("HEAD^{commit}")
        listed = self.ask("status", "--porcelain=v1", "-z", "--no-renames") or ""
        states = [line[:2] for line in listed.split("\0") if line]
        untracked = states.count("??")
        commit = self._described(head) if head else None
        return WorkingTree(commit, len(states) - untracked, untracked)

    def between(self, good: Commit, bad: Commit) -> list[Commit]:
        """Return the commits from ``good`` to ``bad`` by first parents, oldest first.

        Raises:
            UsageError: ``good`` is not an ancestor of ``bad``.
        """
        if self.ask("merge-base", "--is-ancestor", good.id, bad.id) is None:
            common = self.ask("merge-base", good.id, bad.id)
            other = f"try the commit where they part: {common[:12]}" if common else "none is common"
            raise UsageError(f"{good.short} is not an ancestor of {bad.short}: {other}")
        words = ("--first-parent", "--reverse", f"{good.id}..{bad.id}", "--")
        return list(_log(self, *words))

    def has(self, commit: str) -> bool:
        words = ("cat-file", "-e", f"{commit}^{{commit}}")
        return commit[:1] != "-" and self.ask(*words) is not None

    def descends_from(self, commit: str) -> bool:
        """Return whether what is checked out is a commit or follows it."""
        words = ("merge-base", "--is-ancestor", commit, "HEAD")
        return commit[:1] != "-" and self.ask(*words) is not None

    def now(self, known: State | None = None) -> State:
        """Return the state of the working tree.

        With ``known``, untracked files that this state does not have are left out.

        Raises:
            UsageError: there is no commit yet, or untracked files are too large for git.
            InputError: git cannot read the working tree.
        """
        head = self._id("HEAD^{commit}")
        if head is None:
            message = "there is no commit yet to compare with: commit the model and its tests first"
            raise UsageError(message)
        untracked = self._untracked(known)
        try:
            with self._own_index() as index:
                # First what is tracked: an update would take out again what it does not find.
                self.run("add", "--update", variables=index)
                given = "".join(f"{path}\0" for path in untracked)
                self.run("update-index", "--add", "-z", "--stdin", given=given, variables=index)
                tree = self.run("write-tree", variables=index).strip()
            if self._id(f"{head}^{{tree}}") == tree:
                return State(tree, head)
            made = ("commit-tree", tree, "-p", head, "-m", "state of the working tree")
            return State(tree, self.run(*made, variables=_NOBODY).strip())
        except GitError as cause:
            problem = f"git cannot take its state: {cause}"
            raise InputError(self.root, problem) from cause

    def of(self, commit: str) -> State:
        return State(self._id(f"{commit}^{{tree}}") or "", commit)

    def keep(self, name: str, state: State) -> None:
        with contextlib.suppress(GitError):  # a repository that others may only read
            self.run("update-ref", f"{_REFS}/{name}", state.commit)

    def changed_files(
        self, before: State, after: State
    ) -> dict[str, tuple[str | None, str | None]]:
        """Return the ids of changed files on both sides, if any."""
        return {
            path: (then if then.strip("0") else None, now if now.strip("0") else None)
            for path, _, then, now in self._differences(before.tree, after.tree)
        }

    def _differences(self, before: str, after: str) -> Iterator[tuple[str, set[str], str, str]]:
        """Yield changed paths, their modes and ids; zeros for no file."""
        words = ("diff-tree", "-r", "-z", "--no-renames", before, after)
        parts = (self.ask(*words) or "").split("\0")
        for described, path in zip(parts[::2], parts[1::2], strict=False):
            old, new, then, now, _ = described[1:].split(" ")
            yield path, {old, new}, then, now

    def moved_submodules(self, before: str, after: str) -> tuple[dict[str, tuple[str, str]], bool]:
        """Return the submodules that moved, with both commits; whether nothing else changed."""
        changed = list(self._differences(before, after))
        moved = {path: (then, now) for path, modes, then, now in changed if modes == {_SUBMODULE}}
        return moved, len(moved) == len(changed)

    def files_between(self, before: str, after: str) -> tuple[str, ...]:
        return tuple(path for path, *_ in self._differences(before, after))

    def with_submodule(self, commit: str, path: str, moved: str) -> str:
        """Return a commit like another, with a submodule at commit ``moved``."""
        with self._own_index() as index:
            self.run("read-tree", commit, variables=index)
            entry = f"{_SUBMODULE},{moved},{path}"
            self.run("update-index", "--cacheinfo", entry, variables=index)
            tree = self.run("write-tree", variables=index).strip()
        made = ("commit-tree", tree, "-p", commit, "-m", f"{path} at {moved}")
        return self.run(*made, variables=_NOBODY).strip()

    def text(self, state: State, path: str) -> str:
        return self.ask("cat-file", "blob", f"{state.tree}:{path}") or ""

    def id_of(self, state: State, path: str) -> str | None:
        return self._id(f"{state.tree}:{path}")

    def _untracked(self, known: State | None) -> list[str]:
        listed = self.ask("ls-files", "--others", "--exclude-standard", "-z") or ""
        paths = [
            path
            for path in listed.split("\0")
            if path and not path.endswith("/") and _BY_PRODUCTS.isdisjoint(Path(path).parts)
        ]
        if known is not None and paths:
            names = self.ask("ls-tree", "-r", "-z", "--name-only", known.tree) or ""
            paths = [path for path in paths if path in names.split("\0")]
        sizes = {path: os.lstat(self.root / path).st_size for path in paths}
        if sum(sizes.values()) > LARGEST_UNTRACKED_BYTES:
            largest = max(sizes, key=sizes.__getitem__)
            most = LARGEST_UNTRACKED_BYTES // 1024**2
            message = (
                f"untracked files take {sum(sizes.values()) // 1024**2} MiB, expected at most "
                f"{most} MiB: add what is no part of the change, such as {largest}, to .gitignore"
            )
            raise UsageError(message)
        return paths

    @contextmanager
    def _own_index(self) -> Iterator[dict[str, str]]:
        """Yield variables that have git use a copy of the user's index."""
        own = self.run("rev-parse", "--git-path", "index").strip()
        try:
            with tempfile.TemporaryDirectory(prefix="ttnn-perf-index-") as folder:
                copy = Path(folder) / "index"
                with contextlib.suppress(FileNotFoundError):
                    # With its time: git looks again at files that are not older than its index.
                    shutil.copy2(self.root / own, copy)
                yield {"GIT_INDEX_FILE": str(copy)}
        except OSError as cause:
            raise WriteError(Path(tempfile.gettempdir()), cause) from cause

    def _id(self, name: str) -> str | None:
        return self.ask("rev-parse", "--verify", "--quiet", name) or None

    def _described(self, commit: str) -> Commit:
        return next(_log(self, "-1", commit, "--"), Commit(commit, commit[:12], ""))


# Other versions of a repository, checked out beside it for a while.
#
# What a process that was killed has left behind is known by its name and its marker, and is removed
# by the next one.

_PREFIX: Final = "ttnn-perf-ab-"
#: What mkdtemp makes of the prefix.
_OURS: Final = re.compile(re.escape(_PREFIX) + r"[a-z0-9_]{8}")
_MARKER: Final = "made-by-ttnn-perf-ab.json"
_SUBMODULE: Final = "160000"


@contextmanager
def temporary_checkout(root: Path, commit: str) -> Iterator[Path]:
    """Check a commit out in a temporary folder, removed in the end.

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
            # Locked before it has its name: else another process might take it for a leftover.
            unnamed = folder / f".{_MARKER}"
            marker = unnamed.open("w", encoding="utf-8")
            fcntl.flock(marker, fcntl.LOCK_EX)
            _note(marker, [root])
            unnamed.replace(folder / _MARKER)
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
    """Remove the checkouts of killed processes; return how many."""
    folders = {tree.parent for tree in _worktrees(root)}
    folders.update(Path(tempfile.gettempdir()).resolve().glob(f"{_PREFIX}*"))
    ours = sorted(folder for folder in folders if _OURS.fullmatch(folder.name))
    return sum(_remove_leftover(folder, root) for folder in ours)


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


def _note(marker: TextIO, repositories: Sequence[Path]) -> None:
    marker.seek(0)
    marker.truncate()
    json.dump({"repositories": [str(repository) for repository in repositories]}, marker)
    marker.flush()


def _check_out(marker: TextIO, root: Path, tree: Path, commit: str) -> None:
    """Check out a commit, with the submodules of the working tree."""
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
            # By force: a folder that was deleted by hand is still known to git.
            git.run("worktree", "add", "--force", "--detach", str(place), wanted)
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


# Checkouts that are built, and kept: each in a folder named by its tree, which knows its place.

_BUILT: Final = "built.json"
_LOG: Final = "build.log"
#: The exit code of a build that asks to leave its commit out, as to git bisect.
_SKIP: Final = 125


class Builds(NamedTuple):
    """Builds by a command of the user's, kept in a folder.

    The command is never one that the commit names. ``most_bytes`` are kept; ``environment`` returns
    the variables for a checkout.
    """

    command: str
    folder: Path
    most_bytes: int
    print_line: Callable[[str], None]
    environment: Callable[[Path], Mapping[str, str]]

    @contextmanager
    def checkout(self, root: Path, commit: Commit) -> Iterator[Path]:
        """Yield a commit's own checkout, which is built.

        Raises:
            UsageError: the build failed, or asked to skip the commit.
        """
        tree = Git(root).run("rev-parse", "--verify", f"{commit.id}^{{tree}}").strip()
        folder = self.folder / tree
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = (self.folder / f"{tree}.lock").open("w", encoding="utf-8")
        except OSError as cause:
            raise WriteError(folder, cause) from cause
        with lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            if self._built(folder).get("command") != self.command:
                fcntl.flock(lock, fcntl.LOCK_EX)  # one that builds it now is waited for
                if self._built(folder).get("command") != self.command:
                    self._build(root, commit, folder)
                fcntl.flock(lock, fcntl.LOCK_SH)
            os.utime(folder / _BUILT)
            self._prune()
            yield folder / root.name

    def run(self, name: str, tree: Path, log: Path) -> int:
        """Build what is checked out in ``tree``; return its size."""
        self.print_line(f"building {name}")
        with log.open("ab") as output:
            ending = run_bounded(
                self.command, timeout_s=0, stdout=output, stderr=output, cwd=tree,
                environment=self.environment(tree), leave_nothing=True,
            )  # fmt: skip
        if ending.code == 0:
            return sum(
                Path(at, file).lstat().st_size for at, _, files in os.walk(tree) for file in files
            )
        failed = log.replace(log.with_name(f"failed-{log.name}"))
        problem = "its build asks to skip it" if ending.code == _SKIP else "its build failed"
        message = f"{name}: {problem} (exit code {ending.code}); log: {failed}"
        raise UsageError(message)

    def _build(self, root: Path, commit: Commit, folder: Path) -> None:
        tree, log = folder / root.name, folder / _LOG
        # A build that was interrupted goes on; one that failed, or by another command, starts anew.
        if (folder / _BUILT).exists() or not log.exists():
            _remove(folder)
            folder.mkdir()
            with (folder / _MARKER).open("w", encoding="utf-8") as marker:
                _check_out(marker, root, tree, commit.id)
        size_bytes = self.run(commit.short, tree, log)
        built = {"command": self.command, "bytes": size_bytes}
        (folder / _BUILT).write_text(json.dumps(built), encoding="utf-8")

    def _built(self, folder: Path) -> dict[str, Any]:
        try:
            return dict(json.loads((folder / _BUILT).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return {}

    def _prune(self) -> None:
        """Remove what was not used for longest, until the rest has room."""
        kept = sorted(self.folder.glob(f"*/{_BUILT}"), key=lambda file: -file.stat().st_mtime)
        left = self.most_bytes
        for folder in (file.parent for file in kept):
            left -= self._built(folder).get("bytes", 0)
            if left < 0:
                with (
                    contextlib.suppress(OSError),  # it is in use
                    folder.with_suffix(".lock").open("w", encoding="utf-8") as lock,
                ):
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(folder)


def _remove(folder: Path) -> None:
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
    """Delete a file or a folder, also a read-only one."""
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

"""git: commits and files, checkouts and states of the working tree.

Nothing here changes what the user has checked out, nor the user's index and branches.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TextIO

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.errors import InputError, UsageError, WriteError
from pytest_ttnn_perf.core.files import LARGEST_TEXT_BYTES, open_file, read_text
from pytest_ttnn_perf.core.hardware import Environment
from pytest_ttnn_perf.core.text import visible
from pytest_ttnn_perf.machine.processes import signals_ignored

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence


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
_TIMEOUT_S: Final = 120.0
#: What every run waits for is waited for less: the commit is recorded as unknown then.
_STATE_TIMEOUT_S: Final = 5.0


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

        ``variables`` are added to its environment. Ctrl-C reaches us alone: we end git, and with it
        whatever it has started.

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
        try:
            output, errors = process.communicate(
                given.encode(errors="surrogateescape"), timeout=timeout_s
            )
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
        return output.decode(errors="surrogateescape")


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


class Commit(NamedTuple):
    """A commit: its full and short name, and its printable subject."""

    id: str
    short: str
    subject: str
    author: str = ""
    date: str = ""
    parents: tuple[str, ...] = ()


def _log(git: Git, *words: str) -> Iterator[Commit]:
    safe = ("--no-show-signature", "--no-ext-diff", "--no-textconv")
    fields = "--format=%H%x00%h%x00%an%x00%aI%x00%P%x00%s"
    parts = (git.ask("log", "-z", *safe, fields, *words) or "").split("\0")
    for at in range(0, len(parts) - 5, 6):
        commit, short, author, date, parents, subject = parts[at : at + 6]
        yield Commit(commit, short, visible(subject), author, date, tuple(parents.split()))


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
        size_bytes = int(git.run("cat-file", "-s", name, timeout_s=_TIMEOUT_S))
        if size_bytes > LARGEST_TEXT_BYTES:
            expected = f"expected at most {LARGEST_TEXT_BYTES} bytes {where}"
            raise InputError(file, f"{expected}, found {size_bytes}")
        text = git.run("cat-file", "blob", name, timeout_s=_TIMEOUT_S)
    except GitError:
        return None
    return text.encode(errors="surrogateescape").decode(errors="replace")


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
_HUNK: Final = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@")


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

    def differs_from(self, commit: Commit, paths: Iterable[str]) -> tuple[str, ...]:
        words = ("diff", "--quiet", "--no-ext-diff", "--no-textconv", commit.id, "--")
        return tuple(path for path in paths if self.ask(*words, path) is None)

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

    def merge_base(self) -> str | None:
        """Return where the branch began; None where that is HEAD."""
        head = self._id("HEAD")
        for name in ("@{upstream}", "origin/HEAD", "main", "master"):
            base = self.ask("merge-base", "HEAD", name)
            if base and base != head:
                return base
        return None

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
        words = ("diff-tree", "-r", "-z", "--no-renames", before.tree, after.tree)
        parts = (self.ask(*words) or "").split("\0")
        found = {}
        for described, path in zip(parts[::2], parts[1::2], strict=False):
            _, _, then, now, _ = described.split(" ")  # an id of zeros is that of no file
            found[path] = (then if then.strip("0") else None, now if now.strip("0") else None)
        return found

    def new_lines(self, before: State, after: State, path: str) -> Iterator[tuple[int, str]]:
        """Yield the numbered lines of a file that are new."""
        words = ("diff-tree", "-p", "-U0", "--no-color", "--no-ext-diff", "--no-textconv")
        printed = self.ask(*words, "--no-renames", before.tree, after.tree, "--", path) or ""
        number = None
        for line in printed.splitlines():
            hunk = _HUNK.match(line)
            if hunk:
                number = int(hunk[1])
            elif number is not None and line.startswith("+"):
                yield number, line[1:]
                number += 1

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


# The order of commits, as git has it: clocks of machines and authors do not matter.

#: What may be the name of a commit; records are written by anybody.
_COMMIT: Final = re.compile(r"[0-9a-f]{7,64}")


class Lineage(Struct, frozen=True):
    """The order of some commits in a repository.

    ``known`` gives the full name of each by the name that it was asked for. ``places`` are the
    places of commits in their order, the oldest first, by their full names: those of ``branch``, or
    of all branches; ``times`` is when these were made, in seconds. ``branch`` is None as well where
    git has none of that name. A shallow clone has the last part of a branch alone: ``cut`` is then
    the commit that the oldest one follows.
    """

    known: Mapping[str, str]
    places: Mapping[str, int]
    times: Mapping[str, int]
    branch: str | None = None
    cut: str | None = None

    def full(self, commit: str | None) -> str:
        return self.known.get(commit or "", commit or "")

    def place(self, commit: str | None) -> int | None:
        return self.places.get(self.full(commit))

    def excludes(self, commit: str | None) -> bool:
        """Return whether a commit is known not to be of the branch."""
        if self.branch is None or self.cut is not None or commit not in self.known:
            return False
        return self.place(commit) is None


def lineage_of(
    folder: Path, commits: Collection[str], names: Sequence[str], *, all_branches: bool = False
) -> Lineage | None:
    """Return the order of some commits; None without a repository.

    A branch is followed by first parents, here and on ``origin``: what was merged into it is not
    it. It is the first of ``names`` that there is.

    Raises:
        UsageError: git fails.
    """
    top = top_level(folder)
    if top is None:
        return None
    git = Git(top)
    words = ("rev-list", "--timestamp", "--topo-order", "--reverse")
    try:
        known = _known(git, commits)
        if all_branches or not names:
            given = "".join(f"{commit}\n" for commit in sorted(set(known.values())))
            asked = (*words, "--stdin")
            listed = git.run(*asked, given=given, timeout_s=_TIMEOUT_S) if known else ""
            return Lineage(known, *_places(listed))
        for name in names:
            refs = (f"refs/heads/{name}", f"refs/remotes/origin/{name}")
            tips = (git.ask("rev-parse", "--verify", "--quiet", f"{r}^{{commit}}") for r in refs)
            there = [tip for tip in tips if tip]
            if there:
                listed = git.run(*words, "--first-parent", *there, "--", timeout_s=_TIMEOUT_S)
                places, times = _places(listed)
                return Lineage(known, places, times, name, _cut(git, next(iter(places))))
    except GitError as cause:
        message = f"git cannot tell the order of commits in {top}: {cause}"
        raise UsageError(message) from cause
    return Lineage(known, {}, {})


def _cut(git: Git, oldest: str) -> str | None:
    """Return the parent of a shallow clone's oldest commit."""
    if git.ask("rev-parse", "--is-shallow-repository") != "true":
        return None
    _, parents = described_commit(git.run("--no-replace-objects", "cat-file", "commit", oldest))
    return parents[0] if parents else None


def _known(git: Git, commits: Collection[str]) -> dict[str, str]:
    """Return the full names of known commits, by the given ones."""
    asked = [commit for commit in commits if _COMMIT.fullmatch(commit)]
    if not asked:
        return {}
    given = "".join(f"{commit}\n" for commit in asked)
    answer = git.run("cat-file", "--batch-check", given=given, timeout_s=_TIMEOUT_S)
    found = {}
    for commit, line in zip(asked, answer.splitlines(), strict=False):
        words = line.split()
        if len(words) == 3 and words[1] == "commit" and words[0].startswith(commit):
            found[commit] = words[0]
    return found


def _places(listed: str) -> tuple[dict[str, int], dict[str, int]]:
    lines = [line.split() for line in listed.splitlines()]
    places = {commit: place for place, (_, commit) in enumerate(lines)}
    return places, {commit: int(made) for made, commit in lines}


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

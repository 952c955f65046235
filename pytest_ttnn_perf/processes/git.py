"""Run git at the top of a work tree, without changing what the user has checked out.

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
from datetime import datetime, timezone
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf._base.files import LARGEST_TEXT_BYTES
from pytest_ttnn_perf._base.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


class Commit(NamedTuple):
    """A commit: its full and its short name, and the first line of its message, printable."""

    id: str
    short: str
    subject: str


class DatedCommit(NamedTuple):
    """A commit in history: when its author made it, and what it follows; a merge has two."""

    commit: Commit
    date: str
    parents: list[str]


class WorkingTree(NamedTuple):
    """What is checked out; ``commit`` is None in a repository that has none yet.

    ``changed`` and ``untracked`` count files that the commit does not have as they are.
    """

    commit: Commit | None
    changed: int = 0
    untracked: int = 0


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
    ceilings = {Path(os.path.realpath(folder)) for folder in given}
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

    def output(
        self,
        *words: str,
        given: bytes = b"",
        timeout_s: float | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> bytes:
        """Run a command that reads what is ``given``, and return what it prints.

        ``variables`` are added to its environment. Ctrl-C reaches us alone: we end git, and with it
        whatever it has started.

        Raises:
            GitError: as ``run``, or it took longer than it may.
        """
        if not _is_top(self.folder):
            message = f"git is not run in {self.folder}: it is not the top of a working tree"
            raise GitError(message)
        try:
            process = subprocess.Popen(
                ["git", *_ALWAYS, "-C", str(self.folder), *words],
                env={**self._environment(), **(variables or {})},
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


#: A repository that takes longer is one that cannot tell.
_TIMEOUT_S: Final = 60.0
#: What every run waits for is waited for less: the commit is recorded as unknown then.
_STATE_TIMEOUT_S: Final = 5.0
_BETWEEN: Final = "\x00"
_FIELDS: Final = "%x00".join(("%H", "%an", "%aI"))


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that changed a file, by whom, when, and where the file was then."""

    commit: str
    author: str
    date: str
    path: str


def top_level(folder: Path) -> Path | None:
    """Return the top of the working tree around a folder; None where git knows of none."""
    top = work_tree(folder)
    if top is None or Git(top).ask("rev-parse", "--is-inside-work-tree") != "true":
        return None
    return top


class CheckedOut(NamedTuple):
    """What is checked out; None where git cannot tell.

    ``branch`` is None as well where a commit is checked out and no branch, as CI systems do it.
    ``dirty``: tracked files differ from the commit. ``parents`` are what the commit itself names,
    also in a shallow clone, which does not have them.
    """

    commit: str | None = None
    dirty: bool | None = None
    branch: str | None = None
    committed_at: str | None = None
    parents: tuple[str, ...] = ()


def state(folder: Path) -> CheckedOut:
    """Return what is checked out in the working tree around a folder."""
    top = work_tree(folder)
    words = ["status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    words.append("--ignore-submodules=dirty")  # looking into large ones takes seconds
    answer = Git(top).ask(*words, timeout_s=_STATE_TIMEOUT_S) if top else None
    if top is None or answer is None:
        return CheckedOut()
    lines = answer.splitlines()
    about = dict(line[2:].split(" ", 1) for line in lines if line.startswith("# branch."))
    commit, branch = about.get("branch.oid", "(initial)"), about.get("branch.head", "(detached)")
    found = CheckedOut(
        None if commit == "(initial)" else commit,
        any(not line.startswith("#") for line in lines),
        None if branch == "(detached)" else branch,
    )
    # The object itself: of a commit at the end of a shallow clone, a log shows no parents.
    asked = ("--no-replace-objects", "cat-file", "commit", commit)
    text = found.commit and Git(top).ask(*asked, timeout_s=_STATE_TIMEOUT_S)
    if not text:
        return found
    committed_at, parents = described_commit(text)
    return found._replace(committed_at=committed_at, parents=parents)


def is_ancestor(folder: Path, commit: str) -> bool:
    """Tell whether a commit is known, and what is checked out around a folder follows it."""
    top = work_tree(folder)
    asked = ("merge-base", "--is-ancestor", commit, "HEAD")
    return top is not None and commit[:1] != "-" and Git(top).ask(*asked) is not None


def is_tracked(file: Path) -> bool | None:
    """Tell whether git has a file: who has the repository has it too; None if it cannot tell."""
    top, name = _locate(file)
    if top is None:
        return False
    known = Git(top).ask("ls-files", "--", name)
    return None if known is None else bool(known)


def is_known(folder: Path, commit: str) -> bool:
    """Tell whether the repository around a folder has a commit: a shallow clone has few."""
    top = work_tree(folder)
    asked = ("cat-file", "-e", f"{commit}^{{commit}}")
    return top is not None and commit[:1] != "-" and Git(top).ask(*asked) is not None


def described_commit(text: str) -> tuple[str | None, tuple[str, ...]]:
    r"""Return when a commit was made, in UTC, and its parents, from the text of its object.

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


def staged_version(file: Path, stage: int) -> str | None:
    """Return one side of a file that is in conflict: 1 the base, 2 ours, 3 theirs.

    Raises:
        InputError: it is larger than any baseline.
    """
    return _blob(file, f":{stage}:", "on each side of the conflict")


def _blob(file: Path, version: str, where: str) -> str | None:
    top, name = _locate(file)
    size = _bytes(top, "cat-file", "-s", f"{version}{name}")
    if size is None:
        return None
    if int(size) > LARGEST_TEXT_BYTES:
        expected = f"expected at most {LARGEST_TEXT_BYTES} bytes"
        raise InputError(file, f"{expected} {where}, found {int(size)}")
    answer = _bytes(top, "cat-file", "blob", f"{version}{name}")
    return None if answer is None else answer.decode("utf-8", "replace")


def committed_version(file: Path) -> str | None:
    """Return a file as the last commit has it; None where it has none, or there is no git.

    Raises:
        InputError: it is larger than any baseline.
    """
    return _blob(file, "HEAD:", "in the last commit")


def setting(folder: Path, name: str) -> str | None:
    """Return a setting of a repository."""
    return Git(folder).ask("config", "--local", "--get", name, timeout_s=_TIMEOUT_S)


def set_setting(folder: Path, name: str, value: str) -> bool:
    """Set it; return whether git did."""
    answer = Git(folder).ask("config", "--local", name, value, timeout_s=_TIMEOUT_S)
    return answer is not None


def history(file: Path) -> list[Committed]:
    """Return the commits that changed a file, newest first, under whatever name it had."""
    top, name = _locate(file)
    words = ("log", "--no-show-signature", "--no-ext-diff", "--no-textconv", "--follow")
    answer = _bytes(top, *words, f"--format=%x00{_FIELDS}", "--name-only", "-z", "--", name)
    return list(_entries((answer or b"").decode("utf-8", "surrogateescape").split(_BETWEEN)))


def _entries(parts: Sequence[str]) -> Iterator[Committed]:
    """Yield what a log tells: an empty part, three fields, and the names of files for each commit.

    Counted, as an author's name may hold anything but what stands between the parts.
    """
    position = 0
    while position + 3 < len(parts):
        commit, author, date = parts[position + 1 : position + 4]
        position += 4
        begin = position
        while position < len(parts) and parts[position]:
            position += 1
        if position > begin:
            yield Committed(commit, author, date, parts[begin].removeprefix("\n"))


class _Blob(NamedTuple):
    """What git keeps of a file, by its name there."""

    id: str
    size_bytes: int


def contents(file: Path, versions: Sequence[Committed]) -> Iterator[str | None]:
    """Yield a file as it was after each of some commits; None where it was not there, or is huge.

    What is huge may pack small, so that nobody notices it in a clone.
    """
    top, _ = _locate(file)
    # What is asked for is told apart by its lines.
    askable = [version for version in versions if "\n" not in version.path]
    wanted = "".join(f"{version.commit}:{version.path}\n" for version in askable)
    answer = _bytes(top, "cat-file", "--batch-check", given=os.fsencode(wanted)) or b""
    described = map(_described_blob, answer.splitlines())
    blobs = dict(zip(askable, described, strict=False))
    waiting = [blob for blob in map(blobs.get, versions) if blob is not None]
    known: dict[str, bytes] = {}
    for version in versions:
        blob = blobs.get(version)
        if blob is None:
            yield None
            continue
        if blob.id not in known:
            known = _next_texts(top, waiting[waiting.index(blob) :])
        yield known[blob.id].decode("utf-8", "replace") if blob.id in known else None


def _described_blob(line: bytes) -> _Blob | None:
    words = line.split()
    if len(words) != 3 or words[1] != b"blob" or int(words[2]) > LARGEST_TEXT_BYTES:
        return None
    return _Blob(words[0].decode("ascii"), int(words[2]))


def _next_texts(top: Path | None, blobs: Sequence[_Blob]) -> dict[str, bytes]:
    """Read the first of some blobs by one process: as many as may be in memory at once."""
    total_bytes = 0
    taken: list[_Blob] = []
    for blob in blobs:
        total_bytes += blob.size_bytes
        if taken and total_bytes > LARGEST_TEXT_BYTES:
            break
        taken.append(blob)
    wanted = "".join(f"{blob.id}\n" for blob in taken).encode()
    answer = _bytes(top, "cat-file", "--batch", given=wanted) or b""
    found, position = {}, 0
    for blob in taken:
        begin = answer.find(b"\n", position) + 1
        if begin:
            position = begin + blob.size_bytes
            found[blob.id] = answer[begin:position]
            position += 1
    return found


def posix(path: Path, folder: Path) -> str:
    """Return a path as git writes it, from a folder."""
    return str(PurePosixPath(os.path.relpath(path, folder)))


def _locate(file: Path) -> tuple[Path | None, str]:
    """Return the working tree that a file is in, and its path as git writes it from the top."""
    folder = Path(os.path.realpath(file.parent))
    top = work_tree(folder)
    return top, "" if top is None else posix(folder / file.name, top)


def _bytes(top: Path | None, *words: str, given: bytes = b"") -> bytes | None:
    """Return what git prints; None where it cannot tell."""
    try:
        return Git(top).output(*words, given=given, timeout_s=_TIMEOUT_S) if top else None
    except GitError:
        return None


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository with a working tree in ``root``."""

    root: Path

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
        """Return the commit that a name stands for.

        Raises:
            UsageError: it stands for none.
        """
        found = None
        if not name.startswith("-"):
            found = self._git.ask("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        if not found:
            message = (
                f"{name!r} is not a commit of {self.root}: expected a branch, a tag or a commit"
            )
            raise UsageError(message)
        return self._described(found)

    def working_tree(self) -> WorkingTree:
        """Return what is checked out, and how many files are not as they were committed."""
        head = self._git.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        listed = self._git.ask("status", "--porcelain=v1", "-z", "--no-renames") or ""
        states = [line[:2] for line in listed.split("\0") if line]
        untracked = states.count("??")
        commit = self._described(head) if head else None
        return WorkingTree(commit, len(states) - untracked, untracked)

    def differs_from(self, commit: Commit, paths: Iterable[str]) -> tuple[str, ...]:
        """Return those of some paths in which the working tree differs from a commit."""
        return tuple(
            path
            for path in paths
            if self._git.ask(
                "diff", "--quiet", "--no-ext-diff", "--no-textconv", commit.id, "--", path
            )
            is None
        )

    def between(self, good: Commit, bad: Commit) -> list[DatedCommit]:
        """Return the commits after ``good`` up to ``bad``, oldest first, by first parents alone.

        Raises:
            UsageError: ``good`` is not an ancestor of ``bad``.
        """
        if self._git.ask("merge-base", "--is-ancestor", good.id, bad.id) is None:
            common = self._git.ask("merge-base", good.id, bad.id)
            other = f"try the commit where they part: {common[:12]}" if common else "none is common"
            raise UsageError(f"{good.short} is not an ancestor of {bad.short}: {other}")
        fields = "%x00".join(("%H", "%h", "%aI", "%P", "%s"))
        words = ("log", "--no-show-signature", "--first-parent", "--reverse", f"--format={fields}")
        listed = self._git.ask(*words, f"{good.id}..{bad.id}", "--") or ""
        found = []
        for line in listed.split("\n"):
            if line:
                commit, short, date, parents, subject = line.split(_BETWEEN, 4)
                known = Commit(commit, short, visible(subject))
                found.append(DatedCommit(known, date, parents.split()))
        return found

    @property
    def _git(self) -> Git:
        return Git(self.root)

    def _described(self, commit: str) -> Commit:
        line = (
            self._git.ask("log", "-1", "--no-show-signature", "--format=%h%n%s", commit, "--")
            or commit[:12]
        )
        short, _, subject = line.partition("\n")
        return Commit(commit, short, visible(subject))

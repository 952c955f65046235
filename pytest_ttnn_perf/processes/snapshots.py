"""States of a working tree as objects of git: taken, compared and kept without touching it.

A state is a tree of all files that git tracks or would track, with uncommitted changes. It is made
in an index of its own, so the user's index, files and branches stay as they are.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.errors import InputError, UsageError, WriteError
from pytest_ttnn_perf.processes.git import Git, GitError

if TYPE_CHECKING:
    from collections.abc import Iterator


#: Keeps git from removing the states of steps; no branch, and not pushed by itself.
_REFS: Final = "refs/ttnn-perf/steps"
#: What was written of a step, as git keeps it.
_RECORDS: Final = "refs/ttnn-perf/records"
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
_ABSENT: Final = re.compile("0+")


class State(NamedTuple):
    """A state of the working tree: the id of its tree, and of a commit that holds it."""

    tree: str
    commit: str


class ChangedFile(NamedTuple):
    """A file that is not the same in two states; ``before`` or ``after`` is None where it is not.

    Both are ids of its content.
    """

    path: str
    before: str | None
    after: str | None


class ChangedLine(NamedTuple):
    """A line that a later state has and the earlier one does not."""

    path: str
    number: int
    text: str


class States:
    """The states of the working tree in ``root``."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._git = Git(root)

    def now(self, known: State | None = None) -> State:
        """Return the state of the working tree.

        With ``known``, untracked files that this state does not have are left out.

        Raises:
            UsageError: there is no commit yet, or untracked files are too large for git.
            InputError: git cannot read the working tree.
        """
        head = self._git.ask("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        if not head:
            message = "there is no commit yet to compare with: commit the model and its tests first"
            raise UsageError(message)
        untracked = self._untracked(known)
        try:
            with self._own_index() as index:
                # First what is tracked: an update would take out again what it does not find.
                self._git.output("add", "--update", variables=index)
                given = b"".join(os.fsencode(path) + b"\0" for path in untracked)
                words = ("update-index", "--add", "-z", "--stdin")
                self._git.output(*words, given=given, variables=index)
                tree = self._git.output("write-tree", variables=index).decode().strip()
            return State(tree, self._commit(tree, head))
        except GitError as cause:
            problem = f"git cannot take its state: {cause}"
            raise InputError(self._root, problem) from cause

    def of(self, commit: str) -> State:
        """Return the state that a commit holds."""
        return State(self._ask(f"{commit}^{{tree}}"), commit)

    def merge_base(self) -> str | None:
        """Return where the branch left its upstream, or main or master; None where that is HEAD."""
        head = self._ask("HEAD")
        for name in ("@{upstream}", "origin/HEAD", "main", "master"):
            base = self._git.ask("merge-base", "HEAD", name)
            if base and base != head:
                return base
        return None

    def has(self, commit: str) -> bool:
        """Tell whether git still has a state."""
        return self._git.ask("cat-file", "-e", f"{commit}^{{commit}}") is not None

    def descends_from(self, commit: str) -> bool:
        """Tell whether what is checked out is a commit or follows it."""
        return self._git.ask("merge-base", "--is-ancestor", commit, "HEAD") is not None

    def keep(self, name: str, state: State) -> None:
        """Keep a state under a name, for as long as the repository lasts."""
        with contextlib.suppress(GitError):  # a repository that others may only read
            self._git.output("update-ref", f"{_REFS}/{name}", state.commit)

    def seal(self, name: str, text: str) -> None:
        """Keep a text under a name, beside the state of that name."""
        with contextlib.suppress(GitError):  # as above
            blob = self._git.output("hash-object", "-w", "--stdin", given=text.encode())
            self._git.output("update-ref", f"{_RECORDS}/{name}", blob.decode().strip())

    def sealed(self, name: str) -> str | None:
        """Return the text that is kept under a name; None where there is none."""
        return self._git.ask("cat-file", "-p", f"{_RECORDS}/{name}")

    def changed_files(self, before: State, after: State) -> list[ChangedFile]:
        """Return the files in which two states differ."""
        words = ("diff-tree", "-r", "-z", "--no-renames", before.tree, after.tree)
        parts = (self._git.ask(*words) or "").split("\0")
        found = []
        for described, path in zip(parts[::2], parts[1::2], strict=False):
            _, _, then, now, _ = described.split(" ")
            ids = [None if _ABSENT.fullmatch(one) else one for one in (then, now)]
            found.append(ChangedFile(path, *ids))
        return found

    def new_lines(self, before: State, after: State, path: str) -> Iterator[ChangedLine]:
        """Yield the lines of a file that the later state has and the earlier one does not."""
        words = ("diff-tree", "-p", "-U0", "--no-color", "--no-ext-diff", "--no-textconv")
        printed = self._git.ask(*words, "--no-renames", before.tree, after.tree, "--", path) or ""
        number = None
        for line in printed.splitlines():
            hunk = _HUNK.match(line)
            if hunk:
                number = int(hunk[1])
            elif number is not None and line.startswith("+"):
                yield ChangedLine(path, number, line[1:])
                number += 1

    def text(self, state: State, path: str) -> str:
        """Return a file as a state has it; nothing where it has none."""
        return self._git.ask("cat-file", "blob", f"{state.tree}:{path}") or ""

    def id_of(self, state: State, path: str) -> str | None:
        """Return the id of a file's or folder's content in a state; None where it has none."""
        return self._ask(f"{state.tree}:{path}") or None

    def _untracked(self, known: State | None) -> list[str]:
        listed = self._git.ask("ls-files", "--others", "--exclude-standard", "-z") or ""
        paths = [
            path
            for path in listed.split("\0")
            if path and not path.endswith("/") and _BY_PRODUCTS.isdisjoint(Path(path).parts)
        ]
        if known is not None and paths:
            names = self._git.ask("ls-tree", "-r", "-z", "--name-only", known.tree) or ""
            paths = [path for path in paths if path in names.split("\0")]
        sizes = {path: os.lstat(self._root / path).st_size for path in paths}
        if sum(sizes.values()) > LARGEST_UNTRACKED_BYTES:
            largest = max(sizes, key=sizes.__getitem__)
            most = LARGEST_UNTRACKED_BYTES // 1024**2
            message = (
                f"untracked files take {sum(sizes.values()) // 1024**2} MiB, expected at most "
                f"{most} MiB: add what is no part of the change, such as {largest}, to .gitignore"
            )
            raise UsageError(message)
        return paths

    @contextlib.contextmanager
    def _own_index(self) -> Iterator[dict[str, str]]:
        """Yield variables that have git use a copy of the user's index."""
        own = self._git.run("rev-parse", "--git-path", "index").strip()
        try:
            with tempfile.TemporaryDirectory(prefix="ttnn-perf-index-") as folder:
                copy = Path(folder) / "index"
                with contextlib.suppress(FileNotFoundError):
                    # With its time: git looks again at files that are not older than its index.
                    shutil.copy2(self._root / own, copy)
                yield {"GIT_INDEX_FILE": str(copy)}
        except OSError as cause:
            raise WriteError(Path(tempfile.gettempdir()), cause) from cause

    def _commit(self, tree: str, head: str) -> str:
        """Return a commit that holds a tree: HEAD where it is the same."""
        if self._ask(f"{head}^{{tree}}") == tree:
            return head
        words = ("commit-tree", tree, "-p", head, "-m", "state of the working tree")
        return self._git.output(*words, variables=_NOBODY).decode().strip()

    def _ask(self, name: str) -> str:
        return self._git.ask("rev-parse", "--verify", "--quiet", name) or ""

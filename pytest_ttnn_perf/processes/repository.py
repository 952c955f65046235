"""The repository around a folder: its commits, and what is checked out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.errors import UsageError
from pytest_ttnn_perf.model.ab import Commit, WorkingTree
from pytest_ttnn_perf.processes.git import Git, GitError, work_tree

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


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
            message = f"{name!r} is no commit of {self.root}: expected a branch, a tag or a commit"
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

    @property
    def _git(self) -> Git:
        return Git(self.root)

    def _described(self, commit: str) -> Commit:
        told = (
            self._git.ask("log", "-1", "--no-show-signature", "--format=%h%n%s", commit, "--")
            or commit[:12]
        )
        short, _, subject = told.partition("\n")
        return Commit(commit, short, subject)

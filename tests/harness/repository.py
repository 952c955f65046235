"""A git repository under test, whatever the settings of who runs the tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.harness.git import run_git

if TYPE_CHECKING:
    from tests.harness.baselines import Desk


@dataclass(slots=True)
class Repository:
    """A git repository around a desk."""

    desk: Desk

    def git(self, *words: str, ok: bool = True) -> str:
        """Run git; what it prints, with what the driver prints."""
        done = run_git(self.desk.path, *words)
        assert (done.returncode == 0) is ok, done.stdout + done.stderr
        return done.stdout + done.stderr

    def commit(self, message: str) -> None:
        """Commit all that is in the folder."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

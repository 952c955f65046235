"""A git repository under test, whatever the settings of who runs the tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.harness.baselines import Desk


@dataclass(slots=True)
class Repository:
    """A git repository around a desk, with git alone on its PATH."""

    desk: Desk

    def git(self, *words: str, ok: bool = True) -> str:
        """Run git; what it prints, with what the driver prints."""
        path = self.desk.path
        environment = {
            **os.environ,
            "PATH": str(Path(shutil.which("git") or "/usr/bin/git").parent),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_DATE": "2026-11-17T12:00:00Z",
            **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
               for what, value in (("NAME", "Ada"), ("EMAIL", "ada@example.org"))},
        }  # fmt: skip
        done = subprocess.run(
            ["git", *words], cwd=path, env=environment, capture_output=True, text=True, check=False
        )
        assert (done.returncode == 0) is ok, done.stdout + done.stderr
        return done.stdout + done.stderr

    def commit(self, message: str) -> None:
        """Commit all that is in the folder."""
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)

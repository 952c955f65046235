"""Git under test, whatever the settings of who runs the tests."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def run_git(
    folder: Path, *words: str | Path, date: str = "2026-11-01T12:00:00Z", text: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run git in a folder; the same commits have the same names whenever the tests run."""
    environment = {
        **os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in
           (("NAME", "Ada"), ("EMAIL", "ada@example.org"), ("DATE", date))},
    }  # fmt: skip
    return subprocess.run(
        ["git", *words],
        cwd=folder, env=environment, input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip


def git_in(folder: Path, *words: str | Path, **how: str | None) -> str:
    """Run git; return what it prints."""
    done = run_git(folder, *words, **how)  # type: ignore[arg-type]
    assert done.returncode == 0, done.stderr
    return done.stdout

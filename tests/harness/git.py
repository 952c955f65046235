"""Git under test, whatever the settings of who runs the tests."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def git_in(
    folder: Path, *words: str | Path, date: str = "2026-11-01T12:00:00Z", text: str | None = None
) -> str:
    """Run git in a folder; the same commits have the same names whenever the tests run."""
    environment = {
        **os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in
           (("NAME", "Ada"), ("EMAIL", "ada@example.org"), ("DATE", date))},
    }  # fmt: skip
    done = subprocess.run(
        ["git", *words],
        cwd=folder, env=environment, input=text, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout

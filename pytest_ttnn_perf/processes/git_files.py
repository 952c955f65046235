"""What git knows of files, and what is set in it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

#: A repository that takes longer is one that cannot tell.
_TIMEOUT_S: Final = 60.0
_BETWEEN: Final = "\x00"
_FIELDS: Final = "%x00".join(("%H", "%an", "%aI", "%s"))


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit that changed a file, by whom, when, and where the file was then."""

    commit: str
    author: str
    date: str
    subject: str
    path: str


def _git(words: Sequence[str], folder: Path, *, given: bytes = b"") -> bytes | None:
    """Return what git prints; None where it cannot tell."""
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=folder,
            input=given,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
            # Asking must not take the index lock from a git command that may be waiting for us.
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def top_level(folder: Path) -> Path | None:
    """Return the root of the working tree around a folder; None where there is none."""
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    answer = _git(["rev-parse", "--show-toplevel"], folder)
    return Path(os.fsdecode(answer.rstrip(b"\n"))) if answer else None


def staged(file: Path, stage: int) -> str | None:
    """Return one side of a file that is in conflict: 1 the base, 2 ours, 3 theirs."""
    if not file.parent.is_dir():
        return None
    answer = _git(["show", f":{stage}:./{file.name}"], file.parent)
    return None if answer is None else answer.decode("utf-8", "replace")


def setting(folder: Path, name: str) -> str | None:
    """Return a setting of a repository."""
    answer = _git(["config", "--local", "--get", name], folder)
    return None if answer is None else answer.decode("utf-8", "replace").rstrip("\n")


def set_setting(folder: Path, name: str, value: str) -> bool:
    """Set it; return whether git did."""
    return _git(["config", "--local", name, value], folder) is not None


def history(file: Path) -> list[Committed]:
    """Return the commits that changed a file, newest first, under whatever name it had."""
    words = ["log", "--follow", f"--format=%x01{_FIELDS}", "--name-only", "-z", "--", file.name]
    answer = _git(words, file.parent) if file.parent.is_dir() else None
    found = []
    for entry in (answer or b"").decode("utf-8", "surrogateescape").split("\x01")[1:]:
        commit, author, date, subject, *names = entry.split(_BETWEEN)
        path = next((name.strip("\n") for name in names if name.strip("\n")), "")
        if path:
            found.append(Committed(commit, author, date, subject, path))
    return found


def contents(folder: Path, versions: Sequence[Committed]) -> list[str | None]:
    """Return a file as it was after each of some commits; None where it was not there."""
    wanted = "".join(f"{each.commit}:{each.path}\n" for each in versions)
    answer = _git(["cat-file", "--batch"], folder, given=os.fsencode(wanted)) or b""
    found: list[str | None] = []
    position = 0
    for _ in versions:
        end = answer.find(b"\n", position)
        words = answer[position:end].split()
        position = end + 1
        if end < 0 or len(words) < 3 or words[-2] != b"blob":
            found.append(None)
            continue
        size = int(words[-1])
        found.append(answer[position : position + size].decode("utf-8", "replace"))
        position += size + 1
    return found


def posix(path: Path, folder: Path) -> str:
    """Return a path as git writes it, from a folder."""
    return str(PurePosixPath(os.path.relpath(path, folder)))

"""What git knows of files, and what is set in it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.processes.git import Git, GitError, work_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

#: A repository that takes longer is one that cannot tell.
_TIMEOUT_S: Final = 60.0
#: What every run waits for is waited for less: the commit is recorded as unknown then.
_STATE_TIMEOUT_S: Final = 5.0
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


def top_level(folder: Path) -> Path | None:
    """Return the top of the working tree around a folder; None where git knows of none."""
    top = work_tree(folder)
    if top is None or Git(top).ask("rev-parse", "--is-inside-work-tree") != "true":
        return None
    return top


def state(folder: Path) -> tuple[str | None, bool | None]:
    """Return the commit and whether tracked files differ from it; None where git cannot tell."""
    top = work_tree(folder)
    words = ["status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    words.append("--ignore-submodules=dirty")  # looking into large ones takes seconds
    answer = Git(top).ask(*words, timeout_s=_STATE_TIMEOUT_S) if top else None
    if answer is None:
        return None, None
    lines = answer.splitlines()
    commits = [line.split()[-1] for line in lines if line.startswith("# branch.oid ")]
    commit = commits[0] if commits and commits[0] != "(initial)" else None
    return commit, any(not line.startswith("#") for line in lines)


def staged(file: Path, stage: int) -> str | None:
    """Return one side of a file that is in conflict: 1 the base, 2 ours, 3 theirs."""
    top, name = _placed(file)
    answer = _bytes(top, "cat-file", "blob", f":{stage}:{name}")
    return None if answer is None else answer.decode("utf-8", "replace")


def setting(folder: Path, name: str) -> str | None:
    """Return a setting of a repository."""
    return Git(folder).ask("config", "--local", "--get", name, timeout_s=_TIMEOUT_S)


def set_setting(folder: Path, name: str, value: str) -> bool:
    """Set it; return whether git did."""
    answer = Git(folder).ask("config", "--local", name, value, timeout_s=_TIMEOUT_S)
    return answer is not None


def history(file: Path) -> list[Committed]:
    """Return the commits that changed a file, newest first, under whatever name it had."""
    top, name = _placed(file)
    words = ("log", "--no-show-signature", "--no-ext-diff", "--no-textconv", "--follow")
    answer = _bytes(top, *words, f"--format=%x01{_FIELDS}", "--name-only", "-z", "--", name)
    found = []
    for entry in (answer or b"").decode("utf-8", "surrogateescape").split("\x01")[1:]:
        commit, author, date, subject, *names = entry.split(_BETWEEN)
        path = next((name.strip("\n") for name in names if name.strip("\n")), "")
        if path:
            found.append(Committed(commit, author, date, subject, path))
    return found


def contents(file: Path, versions: Sequence[Committed]) -> list[str | None]:
    """Return a file as it was after each of some commits; None where it was not there."""
    top, _ = _placed(file)
    wanted = "".join(f"{each.commit}:{each.path}\n" for each in versions)
    answer = _bytes(top, "cat-file", "--batch", given=os.fsencode(wanted)) or b""
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


def _placed(file: Path) -> tuple[Path | None, str]:
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

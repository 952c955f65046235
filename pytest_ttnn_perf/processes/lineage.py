"""The order of commits, as git has it: clocks of machines and authors do not matter."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.processes.git import Git, GitError, top_level

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

#: What may be the name of a commit; records are written by anybody.
_COMMIT: Final = re.compile(r"[0-9a-f]{7,64}")
#: Branches that are the main one, where nobody names another.
_MAIN: Final = ("main", "master")
#: A repository that takes longer is one that cannot tell.
_TIMEOUT_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a repository knows of some commits.

    ``known`` gives the full name of each by the name that it was asked for. ``places`` are the
    places of commits in their order, the oldest first, by their full names: those of a branch, or
    of all branches.
    """

    known: Mapping[str, str]
    places: Mapping[str, int]

    def place(self, commit: str | None) -> int | None:
        """Return the place of a commit; None for one that is not among them."""
        return self.places.get(self.known.get(commit or "", ""))


def lineage_of(
    folder: Path, commits: Collection[str], branch: str | None, *, all_branches: bool = False
) -> Lineage | None:
    """Return the order of some commits; None where there is no repository.

    A branch is followed by first parents, here and on ``origin``: what was merged into it is not
    it. Without a name, it is ``main`` or ``master``.

    Raises:
        UsageError: there is no such branch, or git fails.
    """
    top = top_level(folder)
    if top is None:
        return None
    try:
        return _lineage(Git(top), commits, (branch,) if branch else _MAIN, all_branches)
    except GitError as cause:
        message = f"git cannot tell the order of commits in {top}: {cause}"
        raise UsageError(message) from cause


def _lineage(
    git: Git,
    commits: Collection[str],
    names: Sequence[str],
    all_branches: bool,  # noqa: FBT001 (handed on)
) -> Lineage:
    known = _known(git, commits)
    if all_branches:
        asked = "".join(f"{commit}\n" for commit in sorted(set(known.values()))).encode()
        words = ("rev-list", "--topo-order", "--reverse", "--stdin")
        listed = git.output(*words, given=asked, timeout_s=_TIMEOUT_S) if known else b""
        return Lineage(known, _places(listed))
    tips = next(filter(None, (_tips(git, name) for name in names)), None)
    if tips is None:
        message = (
            f"git knows no branch {' or '.join(names)} in {git.folder}: name one with --branch, or "
            "take all runs with --all-branches"
        )
        raise UsageError(message)
    line = ("rev-list", "--first-parent", "--topo-order", "--reverse", *tips, "--")
    return Lineage(known, _places(git.output(*line, timeout_s=_TIMEOUT_S)))


def _known(git: Git, commits: Collection[str]) -> dict[str, str]:
    """Return the full names of the commits that git knows, by the names that they were given."""
    asked = [commit for commit in commits if _COMMIT.fullmatch(commit)]
    if not asked:
        return {}
    given = "".join(f"{commit}\n" for commit in asked).encode()
    answer = git.output("cat-file", "--batch-check", given=given, timeout_s=_TIMEOUT_S)
    found = {}
    for commit, line in zip(asked, answer.decode().splitlines(), strict=False):
        words = line.split()
        if len(words) == 3 and words[1] == "commit" and words[0].startswith(commit):
            found[commit] = words[0]
    return found


def _tips(git: Git, branch: str) -> list[str]:
    """Return the last commits of a branch, here and on origin."""
    names = (f"refs/heads/{branch}", f"refs/remotes/origin/{branch}")
    asked = (git.ask("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}") for name in names)
    return [commit for commit in asked if commit]


def _places(listed: bytes) -> dict[str, int]:
    return {commit: place for place, commit in enumerate(listed.decode("ascii").split())}

"""The order of commits, as git has it: clocks of machines and authors do not matter."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.processes.git import Git, GitError, described_commit, top_level

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

#: What may be the name of a commit; records are written by anybody.
_COMMIT: Final = re.compile(r"[0-9a-f]{7,64}")
#: A repository that takes longer is one that cannot tell.
_TIMEOUT_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Lineage:
    """What a repository knows of some commits.

    ``known`` gives the full name of each by the name that it was asked for. ``places`` are the
    places of commits in their order, the oldest first, by their full names: those of ``branch``, or
    of all branches; ``times`` is when these were made, in seconds. ``branch`` is None as well where
    git has none of that name. A shallow clone has the last part of a branch alone: ``cut`` is then
    the commit that the oldest one follows.
    """

    known: Mapping[str, str]
    places: Mapping[str, int]
    times: Mapping[str, int]
    branch: str | None = None
    cut: str | None = None

    def full(self, commit: str | None) -> str:
        """Return the whole name of a commit; as it was given, if git does not know it."""
        return self.known.get(commit or "", commit or "")

    def place(self, commit: str | None) -> int | None:
        """Return the place of a commit; None for one that is not among them."""
        return self.places.get(self.full(commit))

    def excludes(self, commit: str | None) -> bool:
        """Tell whether git knows that a commit is not of the branch."""
        if self.branch is None or self.cut is not None or commit not in self.known:
            return False
        return self.place(commit) is None


def lineage_of(
    folder: Path, commits: Collection[str], names: Sequence[str], *, all_branches: bool = False
) -> Lineage | None:
    """Return the order of some commits; None where there is no repository.

    A branch is followed by first parents, here and on ``origin``: what was merged into it is not
    it. It is the first of ``names`` that there is.

    Raises:
        UsageError: git fails.
    """
    top = top_level(folder)
    if top is None:
        return None
    try:
        return _lineage(Git(top), commits, () if all_branches else names)
    except GitError as cause:
        message = f"git cannot tell the order of commits in {top}: {cause}"
        raise UsageError(message) from cause


def _lineage(git: Git, commits: Collection[str], names: Sequence[str]) -> Lineage:
    """Return the order of commits on the first branch that there is; without names, of all."""
    known = _known(git, commits)
    words = ("rev-list", "--timestamp", "--topo-order", "--reverse")
    if not names:
        asked = "".join(f"{commit}\n" for commit in sorted(set(known.values()))).encode()
        listed = git.output(*words, "--stdin", given=asked, timeout_s=_TIMEOUT_S) if known else b""
        return Lineage(known, *_places(listed))
    for name in names:
        tips = _tips(git, name)
        if tips:
            line = git.output(*words, "--first-parent", *tips, "--", timeout_s=_TIMEOUT_S)
            places, times = _places(line)
            return Lineage(known, places, times, name, _cut(git, next(iter(places))))
    return Lineage(known, {}, {})


def _cut(git: Git, oldest: str) -> str | None:
    """Return what the oldest commit of a branch follows, where a shallow clone ends there."""
    if git.ask("rev-parse", "--is-shallow-repository") != "true":
        return None
    _, parents = described_commit(git.run("--no-replace-objects", "cat-file", "commit", oldest))
    return parents[0] if parents else None


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


def _places(listed: bytes) -> tuple[dict[str, int], dict[str, int]]:
    """Return the places of commits, and when they were made."""
    lines = [line.split() for line in listed.decode("ascii").splitlines()]
    places = {commit: place for place, (_, commit) in enumerate(lines)}
    return places, {commit: int(made) for made, commit in lines}

"""Which commit to measure next, and what is known of those that were: no git, no measurement."""

from __future__ import annotations

import json
import os
from enum import Enum
from math import ceil, expm1, log1p, log2
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import DecodeError
from pytest_ttnn_perf._base.files import read_json, write_text
from pytest_ttnn_perf.records.json import decode, encode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class What(Enum):
    """What a commit turned out to be."""

    SLOW = "slow"
    FAST = "fast"
    SKIPPED = "skipped"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Step:
    """A commit that was tried, against the good one. ``why`` it was skipped.

    ``change``, ``low`` and ``high`` are fractions, plus is worse; None where nothing was measured.
    """

    commit: str
    what: What
    change: float | None = None
    low: float | None = None
    high: float | None = None
    rounds: int = 0
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Followed:
    """The metric that is slower in the bad commit, by how much, and all tests that are.

    ``is_rate``: of which more is better; its changes are those of a time all the same.
    """

    test: str
    metric: str
    change: float
    low: float
    high: float
    rounds: int
    tests: tuple[str, ...]
    is_rate: bool = False


class Search:
    """Halves the commits among which the first slow one is; ``commits`` are oldest first.

    The last of them is known to be slow, and what comes before the first is fast.
    """

    def __init__(self, commits: Sequence[str], steps: Sequence[Step] = ()) -> None:
        self.commits = tuple(commits)
        self.tried = {step.commit: step.what for step in steps}

    def add(self, commit: str, what: What) -> None:
        """Take notice of what a commit is."""
        self.tried[commit] = what

    @property
    def fast(self) -> int:
        """The place of the last commit that is fast, before the first slow one; -1 for none."""
        places = range(self.slow)
        known = (place for place in places if self.tried.get(self.commits[place]) is What.FAST)
        return max(known, default=-1)

    @property
    def slow(self) -> int:
        """The place of the first commit that is known to be slow."""
        known = (n for n, commit in enumerate(self.commits) if self.tried.get(commit) is What.SLOW)
        return min(known, default=len(self.commits) - 1)

    @property
    def suspects(self) -> tuple[str, ...]:
        """The commits that may be the first slow one: one if it is found."""
        return self.commits[self.fast + 1 : self.slow + 1]

    @property
    def to_measure(self) -> int:
        """About how many commits are still to be measured."""
        return ceil(log2(len(self.suspects)))

    def next(self) -> str | None:
        """Return the commit to try, in the middle of those that are left; None for none."""
        between = range(self.fast + 1, self.slow)
        middle = (self.fast + self.slow) / 2
        left = [place for place in between if self.commits[place] not in self.tried]
        nearest = min(left, key=lambda place: abs(place - middle), default=None)
        return None if nearest is None else self.commits[nearest]


@dataclass(frozen=True, slots=True)
class State:
    """What is known so far, to go on with after Ctrl-C; ``spent_s`` is the time it took."""

    followed: Followed | None = None
    steps: tuple[Step, ...] = ()
    spent_s: float = 0.0

    @property
    def threshold(self) -> float:
        """The change from which on a commit counts as slow: half of what the slow ones have.

        All of them tell how much that is: what was found first to be slower was often lucky.
        """
        slow = [step for step in self.steps if step.what is What.SLOW]
        known = [each for each in (self.followed, *slow) if each is not None]
        rounds = sum(each.rounds for each in known)
        total = sum(each.rounds * log1p(each.change or 0.0) for each in known)
        return expm1(total / rounds / 2)


_FORMAT: Final = 1


def read_state(file: Path) -> State:
    """Return what an earlier command has found out; nothing where there was none.

    Raises:
        InputError: the file cannot be read, or is none of ours.
    """
    return read_json(file, _state) if os.path.lexists(file) else State()


def _state(document: object) -> State:
    found = document.get("format") if isinstance(document, dict) else document
    if found != _FORMAT:
        raise DecodeError(("format",), str(_FORMAT), repr(found)[:40])
    return decode(State, document)


def write_state(file: Path, state: State) -> None:
    """Keep what is known, in one step.

    Raises:
        WriteError: the folder or the disk refused.
    """
    write_text(file, json.dumps({"format": _FORMAT, **encode(state)}, indent=1) + "\n")

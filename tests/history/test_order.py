"""Laws of the order of runs: git decides, then when commits were made, then clocks of hosts."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_ttnn_perf.core.hardware import Environment
from pytest_ttnn_perf.history.runs import Lineage, RecordedRun, RecordFile, in_order
from tests.properties.strategies import SOME

CLOCKS = st.integers(0, 20_000)


def name(commit: int) -> str:
    return f"{commit:040x}"


def moment(minute: int) -> str:
    return f"2026-11-{1 + minute // 1440:02}T{minute // 60 % 24:02}:{minute % 60:02}:00Z"


def recorded(number: int, commit: int, *, clock: int, **about: object) -> RecordedRun:
    environment = Environment(commit=name(commit), started_at=moment(clock), **about)  # type: ignore[arg-type]
    return RecordedRun(
        RecordFile(Path(f"{number}.json")), f"run-{number}", environment, None,
        complete=True, software={}, readings=(),
    )  # fmt: skip


def order_of(runs: list[RecordedRun], known: list[int]) -> list[int]:
    """Return the commits of ordered runs, where git knows some, in this order."""
    places = {name(commit): place for place, commit in enumerate(known)}
    git = Lineage({commit: commit for commit in places}, places, {}, "main")
    placed = [replace(run, place=git.place(run.commit)) for run in runs]
    return [int(run.commit or "", 16) for run in in_order(placed, git)[0]]


@SOME
@given(st.data(), st.integers(1, 10))
def test_commits_are_in_the_order_of_git_or_of_when_they_were_made(
    data: st.DataObject, count: int
) -> None:
    """A shallow clone knows the last of them; clocks of hosts do not matter."""
    known = [*range(data.draw(st.integers(0, count)), count)]
    commits = [*range(count), *data.draw(st.lists(st.integers(0, count - 1), max_size=5))]
    runs = [
        recorded(number, commit, clock=data.draw(CLOCKS), committed_at=moment(commit))
        for number, commit in enumerate(commits)
    ]
    assert order_of(data.draw(st.permutations(runs)), known) == sorted(commits)


@SOME
@given(st.data(), st.integers(1, 8))
def test_whatever_records_say_all_runs_are_there_and_git_decides(
    data: st.DataObject, count: int
) -> None:
    known = data.draw(st.permutations(range(data.draw(st.integers(0, count)))))
    runs = [
        recorded(number, data.draw(st.integers(0, count - 1)), clock=data.draw(CLOCKS),
                 committed_at=data.draw(st.none() | CLOCKS.map(moment)))
        for number in range(data.draw(st.integers(0, 10)))
    ]  # fmt: skip
    ordered = order_of(runs, known)
    assert sorted(ordered) == sorted(int(run.commit or "", 16) for run in runs)
    places = [known.index(commit) for commit in ordered if commit in known]
    assert places == sorted(places)

"""Laws of the order of runs: git decides, then clocks of hosts."""

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


def recorded(number: int, commit: int, *, clock: int) -> RecordedRun:
    environment = Environment(commit=name(commit), started_at=moment(clock))
    return RecordedRun(
        RecordFile(Path(f"{number}.json")), f"run-{number}", environment, None,
        complete=True, software={}, readings=(),
    )  # fmt: skip


def order_of(runs: list[RecordedRun], known: list[int]) -> list[int]:
    """Return the commits of ordered runs, where git knows some, in this order."""
    places = {name(commit): place for place, commit in enumerate(known)}
    git = Lineage({commit: commit for commit in places}, places, "main")
    placed = [replace(run, place=git.place(run.commit)) for run in runs]
    return [int(run.commit or "", 16) for run in in_order(placed, git)]


@SOME
@given(st.data(), st.integers(1, 8))
def test_whatever_records_say_all_runs_are_there_and_git_decides(
    data: st.DataObject, count: int
) -> None:
    known = data.draw(st.permutations(range(data.draw(st.integers(0, count)))))
    runs = [
        recorded(number, data.draw(st.integers(0, count - 1)), clock=data.draw(CLOCKS))
        for number in range(data.draw(st.integers(0, 10)))
    ]
    ordered = order_of(runs, known)
    assert sorted(ordered) == sorted(int(run.commit or "", 16) for run in runs)
    places = [known.index(commit) for commit in ordered if commit in known]
    assert places == sorted(places)


def test_a_commit_that_git_does_not_know_comes_after_what_began_before_it() -> None:
    runs = [recorded(number, number, clock=clock) for number, clock in enumerate((5, 1, 3, 9))]
    assert order_of(runs, [3, 1]) == [3, 1, 2, 0]
    assert order_of(runs, []) == [1, 2, 0, 3]

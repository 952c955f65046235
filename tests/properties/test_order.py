"""Laws of the order of runs: whatever clocks say, commits come after those that they follow."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_ttnn_perf.core.hardware import Environment
from pytest_ttnn_perf.history.runs import RecordedRun, RecordFile, in_order
from pytest_ttnn_perf.machine.git import Lineage
from tests.properties.strategies import SOME

MOST = 14


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


class Graph(NamedTuple):
    """Commits that follow others; the first line is that of first parents, from the oldest on."""

    parents: list[list[int]]
    line: list[int]

    def ancestors(self, commit: int) -> set[int]:
        found: set[int] = set()
        waiting = [commit]
        while waiting:
            for parent in self.parents[waiting.pop()]:
                if parent not in found:
                    found.add(parent)
                    waiting.append(parent)
        return found


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Return a graph of commits, each with up to two parents."""
    count = draw(st.integers(1, MOST))
    parents: list[list[int]] = [[]]
    for commit in range(1, count):
        earlier = st.integers(0, commit - 1)
        parents.append(draw(st.lists(earlier, min_size=1, max_size=2, unique=True)))
    line = [count - 1]
    while parents[line[-1]]:
        line.append(parents[line[-1]][0])
    return Graph(parents, line[::-1])


def lineage(graph: Graph, known: int) -> Lineage:
    """Return what a shallow clone has of the first line: its last commits."""
    kept = graph.line[len(graph.line) - known :] if known else []
    before = graph.line[: len(graph.line) - known]
    places = {name(commit): place for place, commit in enumerate(kept)}
    return Lineage(
        {commit: commit for commit in places},
        places,
        dict.fromkeys(places, 0),  # of no use: all were made in the same second
        "main" if kept else None,
        name(before[-1]) if before and kept else None,
    )


def order_of(runs: list[RecordedRun], git: Lineage) -> list[int]:
    placed = [replace(run, place=git.place(run.commit)) for run in runs]
    return [int(run.commit or "", 16) for run in in_order(placed, git)[0]]


CLOCKS = st.integers(0, 20_000)


@SOME
@given(st.data(), graphs())
def test_records_that_connect_are_in_the_order_of_parents_whatever_clocks_say(
    data: st.DataObject, graph: Graph
) -> None:
    """All of the line was measured; when commits were made is nonsense, and so are host clocks."""
    git = lineage(graph, data.draw(st.integers(0, len(graph.line))))
    runs = [
        recorded(
            number, commit, clock=data.draw(CLOCKS), committed_at=moment(data.draw(CLOCKS)),
            parents=tuple(map(name, graph.parents[commit])),
        )
        for number, commit in enumerate([*graph.line, *graph.line])
    ]  # fmt: skip
    ordered = order_of(data.draw(st.permutations(runs)), git)
    assert ordered == [commit for commit in graph.line for _ in range(2)]


@SOME
@given(st.data(), graphs())
def test_commits_are_never_before_those_that_they_follow(data: st.DataObject, graph: Graph) -> None:
    """Some commits were measured, by hosts whose clocks are off; some records lack parents."""
    measured = data.draw(st.lists(st.sampled_from(range(len(graph.parents))), min_size=1))
    git = lineage(graph, data.draw(st.integers(0, len(graph.line))))
    git = Lineage(git.known, git.places, {c: int(c, 16) * 60 for c in git.places}, git.branch)
    runs = []
    for number, commit in enumerate(measured):
        parents = graph.parents[commit] if data.draw(st.booleans()) else []
        made = f"1970-01-01T00:{commit:02}:00Z"  # later than its parents
        runs.append(
            recorded(number, commit, clock=data.draw(CLOCKS), committed_at=made,
                     parents=tuple(map(name, parents)))
        )  # fmt: skip
    ordered = order_of(data.draw(st.permutations(runs)), git)
    for place, commit in enumerate(ordered):
        assert not graph.ancestors(commit) & set(ordered[place + 1 :])


@SOME
@given(st.data(), st.integers(1, 8))
def test_records_that_contradict_each_other_are_all_there_and_git_decides(
    data: st.DataObject, count: int
) -> None:
    commits = st.integers(0, count - 1)
    git = lineage(Graph([[]] * count, list(range(count))), data.draw(st.integers(0, count)))
    runs = [
        recorded(number, data.draw(commits), clock=data.draw(CLOCKS),
                 parents=tuple(map(name, data.draw(st.lists(commits, max_size=3)))))
        for number in range(data.draw(st.integers(0, 10)))
    ]  # fmt: skip
    ordered = order_of(runs, git)
    assert sorted(ordered) == sorted(int(run.commit or "", 16) for run in runs)
    known = [commit for commit in ordered if name(commit) in git.places]
    assert known == sorted(known)


@SOME
@given(st.data(), st.integers(1, 10))
def test_without_anything_else_clocks_decide(data: st.DataObject, count: int) -> None:
    clocks = data.draw(st.lists(CLOCKS, min_size=count, max_size=count, unique=True))
    runs = [recorded(number, number, clock=clock) for number, clock in enumerate(clocks)]
    ordered, guessed = in_order(data.draw(st.permutations(runs)))
    assert [run.at for run in ordered] == sorted(run.at for run in runs)
    assert guessed == count

"""The search for a slow commit, on rounds that are told and not measured."""

from __future__ import annotations

import re
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.errors import UsageError
from pytest_ttnn_perf.core.metric import Better, Kind, Metric
from pytest_ttnn_perf.core.observation import MetricObservation, Observation, Outcome, Verdict
from pytest_ttnn_perf.core.settings import Settings
from pytest_ttnn_perf.experiments.bisect import End, Hunt, What, _slower
from pytest_ttnn_perf.experiments.paired import Comparison
from pytest_ttnn_perf.experiments.repository import Commit
from pytest_ttnn_perf.experiments.rounds import Experiment, Sessions

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


TIME = Metric("latency", "ms")
RATE = Metric("rate", "tok/s", Better.HIGHER, Kind.THROUGHPUT)
#: How far processes are off, in turns: no two rounds agree, and none is far out.
OFF = (0.003, 0.002, -0.003, -0.004, 0.001, 0.004, -0.001, -0.002)


def commit(number: int) -> Commit:
    date = f"2026-11-{number + 1:02}T10:00:00Z"
    name = f"{number:040x}"
    return Commit(name, name[-7:], f"Commit {number}", date=date, parents=("p",))


class World:
    """Commits whose tests take so long, in ms; what cannot be measured has a reason instead.

    With ``stop_at``, the command is interrupted when it comes to that commit.
    """

    def __init__(self, *times: float | str | Mapping[str, float], metric: Metric = TIME) -> None:
        self.times, self.metric = times, metric
        self.asked: list[tuple[int, int, tuple[str, ...] | None]] = []
        self.stop_at: int | None = None
        self.wild = 1.0
        self.lines: list[str] = []

    @contextmanager
    def turns(self, before: Commit, after: Commit, tests: Sequence[str] | None) -> Iterator[Told]:
        places = (int(before.id, 16), int(after.id, 16))
        self.asked.append((*places, None if tests is None else tuple(tests)))
        for place in places:
            if isinstance(self.times[place], str):
                raise UsageError(f"{commit(place).short}: {self.times[place]}")
        yield Told(self, *places, tests)

    def search(self, metric: str | None = None) -> Hunt:
        """Search it, and keep what is said meanwhile."""
        history = [commit(n) for n in range(1, len(self.times))]

        def keep(line: str, _: bool) -> None:
            self.lines.append(line)

        asked = Experiment(("bisect",), [], 20, Path(), Settings(), keep)
        hunt = Hunt(commit(0), history, asked, self.turns, metric)
        with suppress(KeyboardInterrupt):
            hunt.run()
        return hunt


class Told:
    """Two commits of it."""

    def __init__(self, world: World, before: int, after: int, tests: Sequence[str] | None) -> None:
        self.before, self.after = Sessions(50), Sessions(50)
        self.world, self.places, self.tests = world, (before, after), tests

    def run(self, number: int, tests: Sequence[str] | None) -> str | None:
        asked, metric = self.tests if tests is None else tests, self.world.metric
        sides = zip((self.before, self.after), self.places, strict=True)
        for side, (found, place) in enumerate(sides):
            if self.world.stop_at == place and number == 2:
                raise KeyboardInterrupt
            told = self.world.times[place]
            assert not isinstance(told, str), "it was refused before"
            times = {"a": told} if isinstance(told, float) else told
            for test, time in times.items():
                if asked is None or test in asked:
                    off = 1 + self.world.wild * OFF[(2 * number + side) % 8]
                    value = (time if metric is TIME else 1000 / time) * off
                    seen = Observation(test, {metric.name: MetricObservation(metric, (value,))})
                    found.measured.setdefault(test, []).append(seen)
            found.completed = number
        return None


def found(*times: float | str | Mapping[str, float]) -> tuple[str, list[int], list[str | None]]:
    """Return how a search ended, the commits that are suspected, and why some were skipped."""
    result = World(*times).search()
    skipped = [step.why for step in result.steps if step.what is What.SKIPPED]
    return result.end.value, [int(each.id, 16) for each in result.suspects], skipped


def test_as_few_commits_are_measured_as_halving_takes() -> None:
    world = World(*[10.0] * 30, *[11.0] * 35)
    assert world.search().end is End.FOUND
    with_good = [after for before, after, _ in world.asked[1:-1] if before == 0]
    assert len(with_good) == len(world.asked) - 2 == 6
    assert world.asked[-1] == (29, 30, ("a",)), "with the one before it, in the end"
    numbers = r"\+10\.0 % \(\+\d.\d % to \+1\d.\d %, 4 rounds\)"
    slower = "0000040 is slower than 0000000: a latency "
    assert re.fullmatch(re.escape(slower) + numbers, world.lines[0])
    assert re.fullmatch(f"slow 0000020 Commit 32: {numbers}", world.lines[1])
    assert world.lines[2] == "32 commits left, about 5 to measure"
    assert world.lines[-1] == "1 commit left, to compare with the one before it"


def test_its_effect_is_told_against_the_commit_before_it() -> None:
    """Not against the good one: it got 2 % faster before."""
    result = World(10.0, 9.8, 9.8, 11.0, 11.0).search()
    (effect,) = result.effects
    assert (result.end, result.before.id) == (End.FOUND, commit(2).id)
    assert effect.verdict.change == pytest.approx(11.0 / 9.8 - 1, abs=0.005)
    assert effect.word == "REGRESSED"


def test_a_rate_that_falls_is_slower() -> None:
    world = World(10.0, 10.0, 12.0, metric=RATE)
    result = world.search()
    assert (result.end, result.suspects) == (End.FOUND, (commit(2),))
    assert "rate -16.7 % (" in world.lines[0], "as a reader finds it by dividing"


@pytest.mark.parametrize(
    ("times", "wild", "end"),
    [
        ((10.0, 11.0, 10.0), 1.0, End.NOT_SLOWER),
        ((10.0, 11.0, 9.0), 1.0, End.NOT_SLOWER),
        ((10.0, 10.0, 10.3), 40.0, End.NOT_KNOWN),
    ],
)
def test_nothing_is_looked_for_where_nothing_is_known_to_be_slower(
    times: tuple[float, ...], wild: float, end: End
) -> None:
    world = World(*times)
    world.wild = wild
    assert world.search().end is end
    assert len(world.asked) == 1


def test_commits_that_cannot_be_measured_are_skipped() -> None:
    ended = found(10.0, 10.0, 10.0, "no module", 10.0, 11.0, 11.0)
    assert ended == ("found", [5], ["no module"])
    assert found(10.0, 10.0, "x", "x", 11.0, 11.0) == ("range", [2, 3, 4], ["x"] * 2)
    ended = found(10.0, {"b": 1.0}, 11.0, 11.0)
    assert ended == ("range", [1, 2], ["it does not measure latency of a"])


def test_what_came_in_small_steps_is_not_blamed_on_one_commit() -> None:
    assert found(*(10.0 * 1.004**n for n in range(17)))[0] in {"not confirmed", "range"}


def test_the_clearest_of_several_tests_is_followed_and_all_are_compared_in_the_end() -> None:
    slow = {"a": 10.5, "b": 14.0, "c": 10.0}
    fast = {"a": 10.0, "b": 10.0, "c": 10.0}
    world = World(fast, fast, {**slow, "a": 10.0}, slow)
    result = world.search()
    assert result.followed is not None
    assert (result.followed.test, result.followed.tests) == ("b", ("b", "a"))
    assert [tests for _, _, tests in world.asked] == [None, ("b",), ("b",), ("b", "a")]
    assert {each.test: each.word for each in result.effects} == {"a": "WITHIN", "b": "REGRESSED"}


def test_a_time_is_followed_before_the_rate_that_is_computed_from_it() -> None:
    def slower(metric: Metric, low: float) -> Comparison:
        verdict = Verdict(metric, Outcome.REGRESSED, change=0.1)
        return Comparison(verdict, low, 0.2, rounds=4, test="t")

    rate, time, vague = slower(RATE, 0.09), slower(TIME, 0.08), slower(TIME, 0.01)
    assert _slower([vague, rate, time]) == [time, vague, rate]


def test_a_metric_that_was_asked_for_is_followed() -> None:
    with pytest.raises(UsageError, match=r"^no test records rate in both commits"):
        World(10.0, 11.0).search("rate")
    assert World(10.0, 11.0).search("latency").end is End.FOUND


def test_good_and_bad_must_be_measured() -> None:
    with pytest.raises(UsageError, match=r"^0000002: broken$"):
        found(10.0, 10.0, "broken")
    with pytest.raises(UsageError, match=r"^no test was measured in both commits"):
        found({}, {})


def test_ctrl_c_keeps_which_commits_are_left() -> None:
    world = World(*[10.0] * 5, *[11.0] * 4)
    world.stop_at = 6
    result = world.search()
    assert (result.end, result.before) == (End.INTERRUPTED, commit(4))
    assert [step.what for step in result.steps] == [What.FAST]
    assert result.suspects == tuple(map(commit, range(5, 9)))

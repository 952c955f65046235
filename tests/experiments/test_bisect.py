"""The search for a slow commit, on rounds that are told and not measured."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.metric import Better, Kind, Metric
from pytest_ttnn_perf.core.observation import MetricObservation, Observation, Outcome, Verdict
from pytest_ttnn_perf.core.settings import Settings
from pytest_ttnn_perf.experiments.bisect import End, Found, Hunt, What, _slower, state_file
from pytest_ttnn_perf.experiments.paired import Comparison
from pytest_ttnn_perf.experiments.rounds import Experiment, Sessions
from pytest_ttnn_perf.machine.repository import Commit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

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

    @contextmanager
    def turns(self, before: Commit, after: Commit, tests: Sequence[str] | None) -> Iterator[Told]:
        places = (int(before.id, 16), int(after.id, 16))
        self.asked.append((*places, None if tests is None else tuple(tests)))
        for place in places:
            told = self.times[place]
            if isinstance(told, str):
                message = f"{commit(place).short}: {told}"
                raise UsageError(message)
        yield Told(self, *places, tests)


class Told:
    """Two commits of it."""

    def __init__(self, world: World, before: int, after: int, tests: Sequence[str] | None) -> None:
        self.before, self.after = Sessions(50), Sessions(50)
        self.world, self.places, self.tests = world, (before, after), tests

    def run(self, number: int, tests: Sequence[str] | None) -> str | None:
        asked = self.tests if tests is None else tests
        for side, (found, place) in enumerate(
            zip((self.before, self.after), self.places, strict=True)
        ):
            if self.world.stop_at == place and number == 2:
                raise KeyboardInterrupt
            told = self.world.times[place]
            assert not isinstance(told, str), "it was refused before"
            times = {"a": told} if isinstance(told, float) else told
            for test, time in times.items():
                if asked is None or test in asked:
                    off = self.world.wild * OFF[(2 * number + side) % 8]
                    metric = self.world.metric
                    value = time * (1 + off) if metric is TIME else 1000 / time * (1 + off)
                    seen = Observation(test, {metric.name: MetricObservation(metric, (value,))})
                    found.measured.setdefault(test, []).append(seen)
            found.completed = number
        return None


class Case:
    """A search in a world, and what it said meanwhile."""

    def __init__(self, world: World, folder: Path, *, metric: str | None = None) -> None:
        self.world, self.lines = world, list[str]()
        history = [commit(n) for n in range(1, len(world.times))]
        settings = Settings(artifacts=folder)

        def keep(line: str, _: bool) -> None:
            self.lines.append(line)

        asked = Experiment(("bisect", "good", "bad"), [], 20, folder, settings, keep)
        self.file = state_file(asked, metric, commit(0), history[-1])
        self.hunt = Hunt(commit(0), history, asked, world.turns, self.file, metric)

    def run(self) -> Found:
        return self.hunt.run()


def found(folder: Path, *times: float | str | Mapping[str, float]) -> tuple[str, list[int]]:
    """Return how a search ended, and the commits that are suspected."""
    result = Case(World(*times), folder).run()
    return result.end.value, [int(each.id, 16) for each in result.suspects]


def test_as_few_commits_are_measured_as_halving_takes(tmp_path: Path) -> None:
    world = World(*[10.0] * 30, *[11.0] * 35)
    case = Case(world, tmp_path)
    result = case.run()
    assert result.end is End.FOUND
    with_good = [after for before, after, _ in world.asked[1:-1] if before == 0]
    assert len(with_good) == len(world.asked) - 2 == 6
    assert world.asked[-1] == (29, 30, ("a",)), "with the one before it, in the end"
    numbers = r"\+10\.0 % \(\+\d.\d % to \+1\d.\d %, 4 rounds\)"
    slower = "0000040 is slower than 0000000: a latency "
    assert re.fullmatch(re.escape(slower) + numbers, case.lines[0])
    assert re.fullmatch(f"slow 0000020 Commit 32: {numbers}", case.lines[1])
    assert case.lines[2].startswith("32 commits left, about 5 to measure, ")
    assert case.lines[-1].startswith("1 commit left, to compare with the one before it, ")


def test_its_effect_is_told_against_the_commit_before_it(tmp_path: Path) -> None:
    """Not against the good one: it got 2 % faster before."""
    result = Case(World(10.0, 9.8, 9.8, 11.0, 11.0), tmp_path).run()
    (effect,) = result.effects
    assert (result.end, result.before.id) == (End.FOUND, commit(2).id)
    assert effect.verdict.change == pytest.approx(11.0 / 9.8 - 1, abs=0.005)
    assert effect.word == "REGRESSED"


def test_a_rate_that_falls_is_slower(tmp_path: Path) -> None:
    case = Case(World(10.0, 10.0, 12.0, metric=RATE), tmp_path)
    result = case.run()
    assert (result.end, result.suspects) == (End.FOUND, (commit(2),))
    assert "rate -16.7 % (" in case.lines[0], "as a reader finds it by dividing"


def test_nothing_is_looked_for_where_nothing_is_slower(tmp_path: Path) -> None:
    for last in (10.0, 9.0):
        world = World(10.0, 11.0, last)
        result = Case(world, tmp_path).run()
        assert result.end is End.NOT_SLOWER
        assert len(world.asked) == 1


def test_nor_where_it_is_not_known(tmp_path: Path) -> None:
    world = World(10.0, 10.0, 10.3)
    world.wild = 40.0
    assert Case(world, tmp_path).run().end is End.NOT_KNOWN


def test_a_commit_that_cannot_be_measured_is_skipped(tmp_path: Path) -> None:
    case = Case(World(10.0, 10.0, 10.0, "no module", 10.0, 11.0, 11.0), tmp_path)
    result = case.run()
    assert (result.end, result.suspects) == (End.FOUND, (commit(5),))
    skipped = [step for step in result.state.steps if step.what is What.SKIPPED]
    assert [(step.commit, step.why) for step in skipped] == [(commit(3).id, "no module")]


def test_those_that_could_not_be_measured_are_told_as_a_range(tmp_path: Path) -> None:
    ended = found(tmp_path, 10.0, 10.0, "broken", "broken", 11.0, 11.0)
    assert ended == ("range", [2, 3, 4])


def test_a_test_that_a_commit_does_not_have_skips_it(tmp_path: Path) -> None:
    case = Case(World(10.0, {"b": 1.0}, 11.0, 11.0), tmp_path)
    result = case.run()
    assert (result.end, [each.id for each in result.suspects]) == (
        End.RANGE,
        [commit(1).id, commit(2).id],
    )
    assert [step.why for step in result.state.steps] == [
        "it does not measure latency of a",
        None,
    ]


def test_what_came_in_small_steps_is_not_blamed_on_one_commit(tmp_path: Path) -> None:
    times = [10.0 * 1.004**n for n in range(17)]
    case = Case(World(*times), tmp_path)
    result = case.run()
    assert result.end in {End.NOT_CONFIRMED, End.RANGE}


def test_the_clearest_of_several_tests_is_followed_and_all_are_compared_in_the_end(
    tmp_path: Path,
) -> None:
    slow = {"a": 10.5, "b": 14.0, "c": 10.0}
    fast = {"a": 10.0, "b": 10.0, "c": 10.0}
    world = World(fast, fast, {**slow, "a": 10.0}, slow)
    result = Case(world, tmp_path).run()
    assert result.state.followed is not None
    assert (result.state.followed.test, result.state.followed.tests) == ("b", ("b", "a"))
    assert [tests for _, _, tests in world.asked] == [None, ("b",), ("b",), ("b", "a")]
    assert {each.test: each.word for each in result.effects} == {"a": "WITHIN", "b": "REGRESSED"}


def test_a_time_is_followed_before_the_rate_that_is_computed_from_it() -> None:
    def slower(metric: Metric, low: float) -> Comparison:
        verdict = Verdict(metric, Outcome.REGRESSED, change=0.1)
        return Comparison(verdict, low, 0.2, rounds=4, test="t")

    rate, time, vague = slower(RATE, 0.09), slower(TIME, 0.08), slower(TIME, 0.01)
    assert _slower([vague, rate, time]) == [time, vague, rate]


def test_a_metric_that_was_asked_for_is_followed(tmp_path: Path) -> None:
    world = World(10.0, 11.0)
    with pytest.raises(UsageError, match=r"^no test records rate in both commits"):
        Case(world, tmp_path, metric="rate").run()
    assert Case(world, tmp_path, metric="latency").run().end is End.FOUND


def test_good_and_bad_must_be_measured(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^0000002: broken$"):
        found(tmp_path, 10.0, 10.0, "broken")
    with pytest.raises(UsageError, match=r"^no test was measured in both commits"):
        found(tmp_path, {}, {})


def test_what_is_known_after_ctrl_c_is_not_measured_again(tmp_path: Path) -> None:
    world = World(*[10.0] * 5, *[11.0] * 4)
    world.stop_at = 6
    first = Case(world, tmp_path)
    result = first.run()
    assert (result.end, first.file.exists()) == (End.INTERRUPTED, True)
    assert [step.what for step in result.state.steps] == [What.FAST]
    world.stop_at, world.asked = None, []

    second = Case(world, tmp_path)
    result = second.run()

    assert (result.end, result.suspects) == (End.FOUND, (commit(5),))
    assert second.lines[0].startswith("continuing with what is in ")
    assert [after for _, after, _ in world.asked] == [6, 5, 5]
    assert not first.file.exists(), "it is answered"


def test_a_state_that_is_none_is_refused_with_its_place(tmp_path: Path) -> None:
    case = Case(World(10.0, 11.0), tmp_path)
    case.file.parent.mkdir(parents=True)
    for text in ("{", '{"format": 2}', '{"format": 1, "steps": [{"commit": "a"}]}'):
        case.file.write_text(text)
        with pytest.raises(InputError) as told:
            Case(World(10.0, 11.0), tmp_path)
        assert str(told.value).startswith(str(case.file))
        assert case.file.read_text() == text, "hours may be in it"

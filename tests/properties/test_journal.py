"""Laws of a journal: its parts sum, and discarded steps count nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_ttnn_perf.core.metric import Better, Kind
from pytest_ttnn_perf.experiments.journal import Decision, Effect, Step, ways_of

TEST = "test_a.py::test_a"


def step(number: int, base: str, decision: Decision, times: tuple[float, float]) -> Step:
    (before, after), state = times, f"state {number}"
    effect = Effect(
        TEST, "wall_time", "ns", Better.LOWER, Kind.TIME, "IMPROVED", before, after,
        change=after / before - 1,
    )  # fmt: skip
    return Step(
        str(number), "", f"step {number}", decision, (), base, base, state, state, "head", 4,
        effects=(effect,),
    )  # fmt: skip


TIMES = st.tuples(st.floats(1e3, 1e9), st.floats(1e3, 1e9))
DECISIONS = st.sampled_from([Decision.KEEP, Decision.KEEP, Decision.REVERT])


@given(st.lists(st.tuples(DECISIONS, TIMES), min_size=1, max_size=8), st.sets(st.integers(0, 7)))
def test_parts_sum_and_what_is_gone_counts_nothing(
    tried: list[tuple[Decision, tuple[float, float]]], gone: set[int]
) -> None:
    steps = [step(number, f"state {number - 1}", *each) for number, each in enumerate(tried)]
    (way,) = ways_of(steps, {str(number) for number in gone})
    counted = sum(part.counts for part in way.parts)
    assert way.first + counted + way.unexplained == pytest.approx(way.now, rel=1e-9, abs=1e-3)
    leading = [number for number, each in enumerate(steps) if each.is_kept and number not in gone]
    assert [int(part.step.id) for part in way.parts if part.leads] == leading
    assert not any(part.counts for part in way.parts if not part.leads)


def test_a_step_that_was_compared_with_an_old_commit_says_nothing_of_now() -> None:
    kept = step(0, "start", Decision.KEEP, (100.0, 80.0))
    old = step(1, "long ago", Decision.REVERT, (150.0, 148.0))
    (way,) = ways_of([kept, old])
    assert (way.now, way.unexplained) == (80.0, 0.0)
    again = step(2, "state 0", Decision.REVERT, (82.0, 90.0))
    (way,) = ways_of([kept, old, again])
    assert (way.now, way.unexplained) == (82.0, 2.0)

"""Laws of a journal: its parts sum, and what was tried twice, or replaced, is counted once."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_ttnn_perf.core.metric import Better, Kind
from pytest_ttnn_perf.experiments.journal import Decision, Effect, Step, leading_steps, ways_of

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


@st.composite
def sessions(draw: st.DrawFn) -> list[Step]:
    """Return steps as people make them: from any state that was kept, or one that nobody tried."""
    states = ["start"]
    found: list[Step] = []
    for number in range(draw(st.integers(1, 8))):
        base = draw(st.sampled_from([*states, f"commit {number}"]))
        decision = draw(st.sampled_from([Decision.KEEP, Decision.KEEP, Decision.REVERT]))
        times = draw(st.tuples(st.floats(1e3, 1e9), st.floats(1e3, 1e9)))
        found.append(step(number, base, decision, times))
        if decision is Decision.KEEP:
            states.append(f"state {number}")
    return found


@given(sessions())
def test_parts_sum_and_each_leads_on_from_one_before(steps: list[Step]) -> None:
    leading = leading_steps(steps)
    path = [each for each in steps if each.id in leading]
    assert all(each.is_kept for each in path)
    assert len({each.base_tree for each in path}) == len(path), "nothing is done twice"
    tried = {each.state_tree for each in steps if each.is_kept}
    assert not path or path[0].base_tree not in tried
    for before, after in pairwise(path):
        assert after.base_tree == before.state_tree or after.base_tree not in tried
    (way,) = ways_of(steps)
    assert way.first + sum(part.counts for part in way.parts) + way.unexplained == pytest.approx(
        way.now, rel=1e-9, abs=1e-3
    )
    assert [part.step.id for part in way.parts if part.leads] == [each.id for each in path]
    if path:
        last = path[-1]
        kept = [each for each in steps if each.is_kept]
        assert last == kept[-1], "what was kept last is there now"


@given(sessions(), st.data())
def test_a_step_that_is_tried_again_counts_once(steps: list[Step], data: st.DataObject) -> None:
    kept = [each for each in steps if each.is_kept]
    if not kept:
        return
    last = kept[-1]
    again = [*steps, *(replace(last, id=f"again {n}") for n in range(data.draw(st.integers(1, 3))))]
    before, after = (
        [each.state_tree for each in some if each.id in leading_steps(some)]
        for some in (steps, again)
    )
    assert before == after


def test_a_step_that_was_compared_with_an_old_commit_says_nothing_of_now() -> None:
    kept = step(0, "start", Decision.KEEP, (100.0, 80.0))
    old = step(1, "long ago", Decision.REVERT, (150.0, 148.0))
    (way,) = ways_of([kept, old])
    assert (way.now, way.unexplained) == (80.0, 0.0)
    again = step(2, "state 0", Decision.REVERT, (82.0, 90.0))
    (way,) = ways_of([kept, old, again])
    assert (way.now, way.unexplained) == (82.0, 2.0)

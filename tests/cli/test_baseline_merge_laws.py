"""Merging two branches' baselines loses nothing, and says what it cannot decide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from pytest_ttnn_perf.cli.baseline_merge import Take, merge_files
from pytest_ttnn_perf.core.baseline import (
    MAX_SESSIONS,
    Acceptance,
    BaselineFile,
    MetricBaseline,
    Session,
    TestBaseline,
    encode_text,
)
from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.core.metric import Metric
from tests.properties.strategies import SOME

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn

HARDWARE = Hardware("wormhole_b0", "n150", "1x1")
METRIC = Metric("latency", "ms")
NAMES = st.sampled_from(["test_a", "test_b", "test_c", "test_d"])
SESSIONS = st.builds(
    Session, st.integers(1, 9).map(float), st.integers(0, 3).map(float), st.integers(1, 3)
)
MOMENTS = st.sampled_from(["2026-11-15T10:00:00Z", "2026-11-16T10:00:00Z", "2026-11-17T10:00:00Z"])
ACCEPTED = st.builds(Acceptance, MOMENTS, st.sampled_from(["abc", "def"]), st.sampled_from("xyz"))


@st.composite
def stored_tests(draw: DrawFn) -> TestBaseline:
    """Draw the baseline of a test."""
    sessions = tuple(draw(st.lists(SESSIONS, min_size=1, max_size=4)))
    since = draw(st.integers(0, len(sessions) - 1))
    metric = MetricBaseline(METRIC, sessions, since)
    return TestBaseline(draw(ACCEPTED), {METRIC.name: metric})


FILES = st.dictionaries(NAMES, stored_tests(), max_size=4).map(lambda t: BaselineFile(HARDWARE, t))


def with_tests(file: BaselineFile, **changed: TestBaseline | None) -> BaselineFile:
    """Return a file with other baselines of some tests; None removes one."""
    kept = {**file.tests, **changed}
    return replace(file, tests={name: test for name, test in kept.items() if test is not None})


def appended(test: TestBaseline, sessions: list[Session]) -> TestBaseline:
    """Return a baseline with sessions more, and nothing else changed."""
    metric = test.metrics[METRIC.name]
    longer = replace(metric, sessions=(*metric.sessions, *sessions))
    return replace(test, metrics={METRIC.name: longer})


@SOME
@given(st.none() | FILES, FILES, FILES)
def test_both_directions_give_the_same(
    base: BaselineFile | None, ours: BaselineFile, theirs: BaselineFile
) -> None:
    one, other = merge_files(base, ours, theirs), merge_files(base, theirs, ours)
    conflicts = [conflict.test for conflict in one.conflicts]
    assert [conflict.test for conflict in other.conflicts] == conflicts
    nothing = dict.fromkeys(conflicts)
    assert encode_text(with_tests(one.file, **nothing)) == encode_text(
        with_tests(other.file, **nothing)
    )
    taken = merge_files(base, ours, theirs, take=Take.THEIRS)
    assert encode_text(taken.file) == encode_text(
        merge_files(base, theirs, ours, take=Take.OURS).file
    )


@SOME
@given(stored_tests(), st.lists(SESSIONS, max_size=12), st.lists(SESSIONS, max_size=12))
def test_sessions_of_both_sides_are_joined(
    test: TestBaseline, mine: list[Session], its: list[Session]
) -> None:
    base = BaselineFile(HARDWARE, {"test_a": test})
    ours = with_tests(base, test_a=appended(test, mine))
    theirs = with_tests(base, test_a=appended(test, its))
    merged = merge_files(base, ours, theirs)
    assert not merged.conflicts
    before = test.metrics[METRIC.name]
    joined = merged.file.tests["test_a"].metrics[METRIC.name]
    assert joined.sessions[: len(before.sessions)] == before.sessions
    assert len(joined.current) <= MAX_SESSIONS
    added = list(joined.sessions[len(before.sessions) :])
    # What both added first is one and the same, as after a cherry-pick.
    shared = 0
    while shared < min(len(mine), len(its)) and mine[shared] == its[shared]:
        shared += 1
    room = MAX_SESSIONS - len(before.current)
    assert len(added) == min(len(mine) + len(its) - shared, room)
    if len(added) < room:
        assert sorted(added) == sorted([*mine, *its[shared:]])


@SOME
@given(stored_tests(), stored_tests(), st.lists(SESSIONS, min_size=1, max_size=3))
def test_an_accept_outweighs_sessions_of_what_it_replaced(
    test: TestBaseline, accepted: TestBaseline, sessions: list[Session]
) -> None:
    assume(accepted.accepted != test.accepted and accepted.metrics != test.metrics)
    base = BaselineFile(HARDWARE, {"test_a": test})
    ours = with_tests(base, test_a=accepted)
    theirs = with_tests(base, test_a=appended(test, sessions))
    assume(accepted.metrics != theirs.tests["test_a"].metrics)
    for one, other in ((ours, theirs), (theirs, ours)):
        merged = merge_files(base, one, other)
        assert (merged.file, merged.conflicts) == (ours, ())


@SOME
@given(stored_tests(), stored_tests())
def test_a_test_removed_on_one_side_and_changed_on_the_other_is_a_conflict(
    test: TestBaseline, changed: TestBaseline
) -> None:
    assume(changed != test)
    base = BaselineFile(HARDWARE, {"test_a": test})
    merged = merge_files(base, with_tests(base, test_a=None), with_tests(base, test_a=changed))
    assert [(c.ours, c.theirs) for c in merged.unsettled] == [(None, changed)]
    theirs = merge_files(
        base, with_tests(base, test_a=None), with_tests(base, test_a=changed), take=Take.THEIRS
    )
    assert theirs.file.tests == {"test_a": changed}


@given(stored_tests(), st.sampled_from(["abc", "def"]))
def test_of_the_same_numbers_accepted_twice_the_newer_accept_stays(
    test: TestBaseline, commit: str
) -> None:
    later = Acceptance("2026-11-18T10:00:00Z", commit, "again")
    sides = [BaselineFile(HARDWARE, {"test_a": each}) for each in (
        test, replace(test, accepted=later)
    )]  # fmt: skip
    for ours, theirs in (sides, sides[::-1]):
        assert merge_files(None, ours, theirs).file.tests["test_a"].accepted == later

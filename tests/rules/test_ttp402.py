from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.runner import rule_of, run_rules
from pytest_ttnn_perf.analysis.checklist.savings import Gap, Waiting
from pytest_ttnn_perf.core.metric import KERNEL_TIME, Source
from pytest_ttnn_perf.core.ops import Signpost
from tests.rules.answers import Ask, Evidence, Subject, clean, limit, not_applicable, not_measured
from tests.rules.observations import measured, timed
from tests.rules.tables import Op, OpTable, on_host, op, table, tensor

ask = Ask("TTP402")
LIMIT = limit(0.2, "of the time")
X, Y = tensor(1, 1, 32, 64), tensor(1, 1, 64, 64)
#: A call that waits as long as it works.
WAITING = (op("Add", [X], ns=400, gap_ns=1e9), op("Add", [X], ns=400, gap_ns=800))


def called(wall_ns: float, device_ns: float, ops: OpTable | None = None) -> Subject:
    device = timed(device_ns, name=KERNEL_TIME, source=Source.TRACY)
    return replace(measured(timed(wall_ns), device), ops=ops)


def test_a_model_that_waits_without_a_trace_is_found() -> None:
    rows = (op("Add", [X], ns=4000, gap_ns=1e9), op("Add", [X], ns=4000, gap_ns=8000.0))
    ops = replace(table(*rows), windowed=True)
    assert ask(replace(measured(), ops=ops)) == LIMIT.found(
        0.5,
        "no trace is used, and devices wait at most 50.0 % of the time in 1 window; outside a "
        "replay the profiler itself makes gaps longer",
        [Evidence("Add 1x1x32x64", 8000.0, "ns", 0.5)],
    )


def numbered(*rows: Op) -> OpTable:
    """Return a window of ops that have their numbers in a capture."""
    return replace(
        table(*(row._replace(number=at) for at, row in enumerate(rows, start=19))), windowed=True
    )


@pytest.mark.parametrize(
    ("gaps", "places"),
    [
        ((1, 5, 1, 3), "80.0 % of that before 2 of 4 ops"),
        ((1, 5, 2, 2), "90.0 % of that before 3 of 4 ops"),
        ((0, 0), "0.0 % of that before 1 of 2 ops"),
    ],
)
def test_as_few_ops_are_told_as_make_up_four_fifths(gaps: tuple[int, ...], places: str) -> None:
    waiting = Waiting(tuple(Gap(op("Add", [X], ns=1), gap) for gap in gaps), 1)

    assert waiting.places == places


def test_what_the_host_does_before_a_few_ops_is_told_by_their_numbers() -> None:
    gaps = (1e9, 200_000.0, 700.0, 700.0, 190_000.0, 700.0, 700.0)
    ops = numbered(*(op("Add", [X], ns=90_000, gap_ns=gap) for gap in gaps))
    answer = ask(ops=ops)
    assert answer.reason == (
        "devices wait at most 38.4 % of the time in 1 window, 99.3 % of that before 2 of 6 ops "
        "(#20, #23): the host works there, and no trace is used"
    )


def test_ops_are_named_as_the_slowest_device_waits_for_them() -> None:
    rows = [
        op("Add", [X], ns=4000 + device, gap_ns=gap, device=device)
        for gap in (1e9, 8000.0)
        for device in (0, 1, 2)
    ]
    answer = ask(ops=replace(table(*rows), windowed=True))
    assert [each.subject for each in answer.evidence] == ["Add 1x1x32x64"]
    assert answer.evidence[0].value == 8000.0


def test_of_layers_that_repeat_the_gaps_of_the_last_count() -> None:
    """The host has just begun when it sends the first of them."""
    layer = [op(f"Op{at}", [X], ns=10_000) for at in range(9)]
    rows = [row._replace(gap_ns=gap) for gap in (60_000.0, 30_000.0, 11_000.0) for row in layer]
    ops = replace(table(*rows), windowed=True)
    assert ask(ops=ops).value == pytest.approx(26 * 11_000 / (26 * 11_000 + 27 * 10_000))
    assert ask.saving(ops=ops).ns == pytest.approx(26 * 10_000)


def test_what_gaps_tell_is_an_upper_bound() -> None:
    rows = (op("Add", [X], ns=4000, gap_ns=1e9), op("Add", [X], ns=4000, gap_ns=8000.0))
    ops = replace(table(*rows), windowed=True)
    (of_gaps,) = run_rules([rule_of("TTP402")], Subject(ops=ops))
    (of_wall_time,) = run_rules([rule_of("TTP402")], called(9e6, 2e6, ops))
    assert (of_gaps.at_most, of_wall_time.at_most) == (True, False)
    assert (of_gaps.saving_ns, of_gaps.step_ns) == (7000.0, 16_000.0)


def test_a_trace_saves_what_is_beyond_the_gaps_of_a_replay() -> None:
    rows = (*WAITING, op("Add", [X], ns=400, gap_ns=51_000.0), op("Add", [X], gap_ns=31_000.0))
    ops = replace(table(*rows), windowed=True)
    assert ask.saving(ops=ops) == (
        80_000.0,
        "gaps beyond 1.0 µs each, as in a replay: 80.0 µs",
    )
    assert ask.saving(called(9e6, 2e6, ops)) == (7e6, "wall − device: 9 ms − 2 ms")


def test_the_time_without_a_profiler_counts_before_gaps() -> None:
    assert ask(called(1000, 800, table(*WAITING))) == LIMIT.clean(1 - 800 / 1000)
    assert ask(called(1000, 700, table(*WAITING))) == LIMIT.found(
        1 - 700 / 1000, "no trace is used, and devices wait 30.0 % of the wall time"
    )


def test_the_limit_itself_is_clean() -> None:
    rows = (op("Add", [X], ns=400, gap_ns=9), op("Add", [X], ns=400, gap_ns=200))
    ops = replace(table(*rows), windowed=True)
    assert ask(replace(measured(), ops=ops)) == LIMIT.clean(0.2)


def test_a_trace_that_is_used_is_clean() -> None:
    used = clean(reason="a trace is used")
    assert ask(ops=table(op("Add", [X], replay=(1, 1)))) == used
    assert ask(replace(called(1000, 100), facts={"use_trace": True})) == used


def test_host_fallbacks_cannot_be_traced() -> None:
    assert ask(ops=table(*WAITING, on_host("(torch) cat"))) == not_applicable(
        "no trace can hold ops that run on the host: 1 op"
    )


def test_changing_shapes_cannot_be_traced() -> None:
    calls = table(op("Add", [X], gap_ns=9), op("Add", [Y], gap_ns=9))
    posts = (("IT", 0), ("IT_END", 1), ("IT", 1), ("IT_END", 2))
    dynamic = not_applicable("no trace can hold shapes that change from call to call")
    signposts = tuple(Signpost(*post) for post in posts)
    assert ask(ops=replace(calls, signposts=signposts)) == dynamic
    assert ask(Subject(ops=table(*WAITING), facts={"dynamic_shapes": "true"})) == dynamic


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (
            called(1000, 100),
            "whether a trace is used is not known: state the fact use_trace",
        ),
        (
            Subject(ops=table(*WAITING)),
            "the capture has neither replays of a trace nor a window of signposts (NAME … "
            "NAME_END): gaps of a whole capture are compilation and idle time",
        ),
        (replace(measured(), facts={"use_trace": False}), "the test has no wall_time"),
    ],
)
def test_what_is_not_known_is_not_measured(subject: Subject, reason: str) -> None:
    assert ask(subject) == not_measured(reason)

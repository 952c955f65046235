from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ttnn_perf.records.metric import KERNEL_TIME, Source
from pytest_ttnn_perf.records.ops import Signpost
from tests.rules.answers import Ask, Evidence, Subject, clean, limit, not_applicable, not_measured
from tests.rules.observations import measured, timed
from tests.rules.tables import OpTable, on_host, op, table, tensor

ask = Ask("TTP402")
LIMIT = limit(0.2, "of the time")
X, Y = tensor(1, 1, 32, 64), tensor(1, 1, 64, 64)
#: A call that waits as long as it works.
WAITING = (op("Add", [X], ns=400, gap_ns=1e9), op("Add", [X], ns=400, gap_ns=800))


def called(wall_ns: float, device_ns: float, ops: OpTable | None = None) -> Subject:
    device = timed(device_ns, name=KERNEL_TIME, source=Source.TRACY)
    return replace(measured(timed(wall_ns), device), ops=ops)


def test_a_model_that_waits_without_a_trace_is_found() -> None:
    ops = replace(table(*WAITING), windowed=True)
    assert ask(replace(measured(), ops=ops)) == LIMIT.found(
        0.5,
        "no trace is used, and devices wait 50.0 % of the time in 1 window; outside a replay the "
        "profiler itself makes gaps longer",
        [Evidence("Add 1x1x32x64", 800.0, "ns", 0.5)],
    )


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

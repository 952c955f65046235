from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_ttnn_perf.analysis.checklist.rule import Answer
from pytest_ttnn_perf.analysis.checklist.rules.ttp402_trace_not_used import trace_not_used
from pytest_ttnn_perf.records.finding import Evidence, RuleOutcome, Subject
from pytest_ttnn_perf.records.metric import KERNEL_TIME, Source
from pytest_ttnn_perf.records.ops import OpTable, Signpost
from tests.rules.answers import ask
from tests.rules.observations import measured, timed
from tests.rules.tables import on_host, op, table, tensor

UNIT = "of the time"
X, Y = tensor(1, 1, 32, 64), tensor(1, 1, 64, 64)
#: A call that waits as long as it works.
WAITING = (op("Add", [X], ns=400, gap_ns=1e9), op("Add", [X], ns=400, gap_ns=800))


def called(wall_ns: float, device_ns: float, ops: OpTable | None = None) -> Subject:
    device = timed(device_ns, name=KERNEL_TIME, source=Source.TRACY)
    return replace(measured(timed(wall_ns), device), ops=ops)


def test_a_model_that_waits_without_a_trace_is_found() -> None:
    ops = replace(table(*WAITING), windowed=True)
    assert ask(trace_not_used, replace(measured(), ops=ops)) == Answer(
        RuleOutcome.FOUND,
        "no trace is used, and devices wait 50.0 % of the time in 1 window; outside a replay the "
        "profiler itself makes gaps longer",
        0.5,
        0.2,
        UNIT,
        (Evidence("Add 1x1x32x64", 800.0, "ns", 0.5),),
    )


def test_the_time_without_a_profiler_counts_before_gaps() -> None:
    assert ask(trace_not_used, called(1000, 800, table(*WAITING))) == Answer(
        RuleOutcome.CLEAN, None, 1 - 800 / 1000, 0.2, UNIT
    )
    assert ask(trace_not_used, called(1000, 700, table(*WAITING))) == Answer(
        RuleOutcome.FOUND,
        "no trace is used, and devices wait 30.0 % of the wall time",
        1 - 700 / 1000,
        0.2,
        UNIT,
    )


def test_the_limit_itself_is_clean() -> None:
    rows = (op("Add", [X], ns=400, gap_ns=9), op("Add", [X], ns=400, gap_ns=200))
    ops = replace(table(*rows), windowed=True)
    answer = ask(trace_not_used, replace(measured(), ops=ops))
    assert answer == Answer(RuleOutcome.CLEAN, None, 0.2, 0.2, UNIT)


def test_a_trace_that_is_used_is_clean() -> None:
    used = Answer(RuleOutcome.CLEAN, "a trace is used")
    traced = table(op("Add", [X], replay=(1, 1)))
    assert ask(trace_not_used, Subject(ops=traced)) == used
    stated = replace(called(1000, 100), facts={"use_trace": True})
    assert ask(trace_not_used, stated) == used


def test_host_fallbacks_cannot_be_traced() -> None:
    assert ask(trace_not_used, Subject(ops=table(*WAITING, on_host("(torch) cat")))) == Answer(
        RuleOutcome.NOT_APPLICABLE, "no trace can hold ops that run on the host: 1 op"
    )


def test_changing_shapes_cannot_be_traced() -> None:
    calls = table(op("Add", [X], gap_ns=9), op("Add", [Y], gap_ns=9))
    posts = (("IT", 0), ("IT_END", 1), ("IT", 1), ("IT_END", 2))
    dynamic = Answer(
        RuleOutcome.NOT_APPLICABLE, "no trace can hold shapes that change from call to call"
    )
    signposts = tuple(Signpost(*post) for post in posts)
    assert ask(trace_not_used, Subject(ops=replace(calls, signposts=signposts))) == dynamic
    stated = Subject(ops=table(*WAITING), facts={"dynamic_shapes": "true"})
    assert ask(trace_not_used, stated) == dynamic


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (Subject(), "needs an op table or a measured test"),
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
    assert ask(trace_not_used, subject) == Answer(RuleOutcome.NOT_MEASURED, reason)

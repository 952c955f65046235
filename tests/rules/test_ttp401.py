from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.finding import RuleOutcome
from pytest_ttnn_perf.core.ops import Signpost
from tests.rules.answers import Ask, Evidence, Subject, limit, not_measured
from tests.rules.observations import measured
from tests.rules.tables import Op, TraceReplays, on_host, op, table, tensor

ask = Ask("TTP401")
LIMIT = limit(0.2, "of the time")
X = tensor(1, 1, 32, 64)
INFLATED = "outside a replay the profiler itself makes gaps longer"
#: The gap before a phase: compilation, most of the time of a capture.
BEFORE = 1e9


def call(
    gap_ns: float | None, *, device: int = 0, replay: tuple[int, int] | None = None
) -> list[Op]:
    """Return two ops of 400 ns each."""
    return [
        op("Matmul", [X, X], ns=400, gap_ns=BEFORE, device=device, replay=replay),
        op("Add", [X], ns=400, gap_ns=gap_ns, device=device, replay=replay),
    ]


def test_gaps_inside_replays_are_found() -> None:
    rows = [*call(BEFORE), *call(300, replay=(7, 1)), *call(500, replay=(7, 2))]
    rows += [*call(300, device=1, replay=(7, 1)), *call(500, device=1, replay=(7, 2))]
    assert ask(ops=table(*rows)) == LIMIT.found(
        1600 / 4800,
        "devices wait 33.3 % of the time for their next op, in 2 replays",
        [Evidence("Add 1x1x32x64", 300.0, "ns", 300 / 1100)],  # of one step of one device
    )
    assert ask.saving(ops=table(*rows)) == (300.0, "gaps before 1 op of less than 5 µs: 0.3 µs")


def test_a_window_in_which_programs_were_compiled() -> None:
    ops = replace(table(*call(1.2e6), *call(9e5)[1:]), windowed=True)
    assert ask(ops=ops) == not_measured(
        "1 of 2 gaps are of 1 ms or more: programs were compiled inside the window; measure a "
        "later call"
    )
    first = replace(table(*call(3e5), *call(1e3)[1:], *call(2e5)[1:]), windowed=True)
    assert ask(ops=first) == not_measured(
        "half of 3 gaps are of 200 µs or more: the window is of a first call; measure a later one"
    )


def test_the_limit_itself_is_clean() -> None:
    assert ask(ops=table(*call(200, replay=(7, 1)))) == LIMIT.clean(0.2)


def test_a_gap_below_zero_is_none() -> None:
    assert ask(ops=table(*call(-6e9, replay=(7, 1)))) == LIMIT.clean(0.0)


def test_a_window_of_signposts_is_said_to_be_inflated() -> None:
    rows = [*call(BEFORE), *call(800), *call(BEFORE)]
    posts = (Signpost("DECODE", 2), Signpost("inner", 3), Signpost("DECODE_END", 4))
    assert ask(ops=replace(table(*rows), signposts=posts)) == LIMIT.found(
        0.5,
        f"devices wait at most 50.0 % of the time for their next op, in 1 window; {INFLATED}",
        [Evidence("Add 1x1x32x64", 800.0, "ns", 0.5)],
    )


def test_the_measured_call_of_a_test_is_a_window() -> None:
    ops = table(on_host("(torch) cat"), *call(100), *call(0, device=1))
    subject = replace(measured(), ops=replace(ops, windowed=True))
    assert ask(subject) == LIMIT.clean(100 / 1700, reason=INFLATED)


def test_what_passes_between_calls_is_no_gap() -> None:
    rows = [*call(100), *(row._replace(gap_ns=9e5) for row in call(100)[:1]), *call(100)[1:]]
    ops = replace(table(*rows), windowed=True)
    assert ask(ops=ops).outcome is RuleOutcome.FOUND
    told = ask(ops=replace(ops, calls=(0, 2)))
    assert told.outcome is RuleOutcome.CLEAN
    assert told.value == pytest.approx(100 / 900)


def test_a_whole_capture_that_a_test_attached_is_none() -> None:
    subject = replace(measured(), ops=table(*call(10_000)))
    assert ask(subject).outcome is RuleOutcome.NOT_MEASURED


def test_a_capture_that_was_cut_is_a_window() -> None:
    ops = replace(table(*call(200)), windowed=True)
    assert ask(ops=ops) == LIMIT.clean(0.2, reason=INFLATED)


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (
            Subject(ops=table(*call(300))),
            "the capture has neither replays of a trace nor a window of signposts (NAME … "
            "NAME_END): gaps of a whole capture are compilation and idle time",
        ),
        (
            Subject(ops=table(*call(None, replay=(7, 1)))),
            "the capture does not give the gaps between ops",
        ),
    ],
)
def test_without_gaps_nothing_is_measured(subject: Subject, reason: str) -> None:
    assert ask(subject) == not_measured(reason)


def test_an_execution_of_one_op_has_no_gap() -> None:
    alone = table(op("Add", [X], ns=400, gap_ns=BEFORE, replay=(7, 1)))
    assert ask(ops=alone) == LIMIT.clean(0.0)


def test_an_empty_window_and_a_trace_of_unknown_replays_are_none() -> None:
    ops = table(*(row._replace(trace=7) for row in call(300)))
    posts = (Signpost("EMPTY", 1), Signpost("EMPTY_END", 1))
    assert ask(Subject(ops=replace(ops, signposts=posts))).outcome is RuleOutcome.NOT_MEASURED


def incomplete(*replays: tuple[int, ...]) -> Subject:
    """Return replays with these gaps, of a trace that lost ops in some of them."""
    rows = [
        op("Matmul" if at == 0 else "Add", [X], ns=400, gap_ns=gap, replay=(7, number))
        for number, gaps in enumerate(replays)
        for at, gap in enumerate(gaps)
    ]
    traces = (TraceReplays(device=0, trace=7, replays=len(replays), complete=False),)
    return Subject(ops=table(*rows, traces=traces))


def test_replays_that_lost_ops_have_no_gaps_to_count() -> None:
    """Where an op is lost, its time looks like a gap."""
    subject = incomplete((0, 300, 300), (0, 300, 300), (0, 9000))
    assert ask(subject) == LIMIT.found(
        1200 / 3600,
        "devices wait 33.3 % of the time for their next op, in 2 complete replays",
        [Evidence("2 x Add 1x1x32x64", 600.0, "ns", 600 / 1800)],
    )


def test_no_replay_is_known_to_be_whole() -> None:
    subject = incomplete((0, 300, 300), (0, 9000))
    assert ask(subject) == not_measured(
        "every replay of a trace ran other ops (TTP002): none is known to be whole"
    )

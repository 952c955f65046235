"""Rules on the host, traces and transfers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.runner import rule_of, run_rules
from pytest_ttnn_perf.core.assignment import signposts_of
from pytest_ttnn_perf.core.metric import KERNEL_TIME, Source
from pytest_ttnn_perf.core.observation import Observation
from pytest_ttnn_perf.core.ops import Signpost
from tests.analysis.rules.answers import (
    Ask,
    Evidence,
    Subject,
    clean,
    found,
    limit,
    not_applicable,
    not_measured,
)
from tests.analysis.rules.observations import measured, timed
from tests.analysis.rules.reports import Operation, record, report
from tests.analysis.rules.tables import Op, OpTable, op, table, tensor

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.hardware import Scalar


ttp401 = Ask("TTP401")
LIMIT = limit(0.2, "of the time")
X = tensor(1, 1, 32, 64)
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
    assert ttp401(ops=table(*rows)) == LIMIT.found(
        1600 / 4800,
        "devices wait 33.3 % of the time for their next op, in 2 replays",
        [Evidence("Add 1x1x32x64", 300.0, "ns", 300 / 1100)],  # of one step of one device
    )
    assert ttp401.saving(ops=table(*rows)) == (300.0, "gaps before 1 op of less than 5 µs: 0.3 µs")


def test_a_window_in_which_programs_were_compiled() -> None:
    ops = replace(table(*call(1.2e6), *call(9e5)[1:]), windowed=True)
    assert ttp401(ops=ops) == not_measured(
        "1 of 2 gaps are of 1 ms or more: programs were compiled inside the window; measure a "
        "later call"
    )
    first = replace(table(*call(3e5), *call(1e3)[1:], *call(2e5)[1:]), windowed=True)
    assert ttp401(ops=first) == not_measured(
        "half of 3 gaps are of 200 µs or more: the window is of a first call; measure a later one"
    )


ttp402 = Ask("TTP402")
X_402 = tensor(1, 1, 32, 64)


def called(wall_ns: float, device_ns: float, ops: OpTable | None = None) -> Subject:
    device = timed(device_ns, name=KERNEL_TIME, source=Source.TRACY)
    return replace(measured(timed(wall_ns), device), ops=ops)


def test_a_model_that_waits_without_a_trace_is_found() -> None:
    rows = (op("Add", [X_402], ns=4000, gap_ns=1e9), op("Add", [X_402], ns=4000, gap_ns=8000.0))
    ops = replace(table(*rows), windowed=True)
    assert ttp402(replace(measured(), ops=ops)) == LIMIT.found(
        0.5,
        "no trace is used, and devices wait at most 50.0 % of the time in 1 window; outside a "
        "replay the profiler itself makes gaps longer",
        [Evidence("Add 1x1x32x64", 8000.0, "ns", 0.5)],
    )


def test_what_gaps_tell_is_an_upper_bound() -> None:
    rows = (op("Add", [X_402], ns=4000, gap_ns=1e9), op("Add", [X_402], ns=4000, gap_ns=8000.0))
    ops = replace(table(*rows), windowed=True)
    (of_gaps,) = run_rules([rule_of("TTP402")], Subject(ops=ops))
    (of_wall_time,) = run_rules([rule_of("TTP402")], called(9e6, 2e6, ops))
    assert (of_gaps.at_most, of_wall_time.at_most) == (True, False)
    assert (of_gaps.saving_ns, of_gaps.step_ns) == (7000.0, 16_000.0)


ttp403 = Ask("TTP403")
LIMIT_403 = limit(0, "executions that differ")
X_403, Y_403 = tensor(1, 1, 32, 64), tensor(1, 1, 64, 64)


def calls(*runs: list[Op], names: tuple[str, ...] = (), ours: str | None = None) -> Subject:
    """Return calls between signposts; ``ours`` is the test around which the plugin sets them."""
    posts: list[Signpost] = []
    rows: list[Op] = []
    for number, run in enumerate(runs):
        name = names[number] if names else "DECODE"
        begin, end = name, f"{name}_END"
        if ours is not None:
            begin, end = signposts_of(ours, run=1, iteration=number)
        posts.append(Signpost(begin, len(rows)))
        rows += run
        posts.append(Signpost(end, len(rows)))
    return Subject(ops=replace(table(*rows), signposts=tuple(posts)))


def test_calls_on_other_shapes_are_found() -> None:
    assert ttp403(
        calls([op("Add", [X_403])], [op("Add", [X_403])], [op("Add", [Y_403])])
    ) == LIMIT_403.found(
        1,
        "different from the first: 1 of 2 repeated executions",
        [Evidence("DECODE on device 0, call 3: Add 1x1x64x64 instead of Add 1x1x32x64")],
    )


def test_what_the_author_states_is_found() -> None:
    subject = Subject(ops=table(op("Add", [X_403])), facts={"dynamic_shapes": True})
    assert ttp403(subject) == found("the test states that its shapes change from call to call")


ttp405 = Ask("TTP405")
LIMIT_405 = limit(1, "B")
TRACED = table(op("Add", replay=(1, 1)))


def opened(**configuration: Scalar) -> Subject:
    observation = Observation("test", configuration=configuration)
    return Subject(ops=TRACED, observation=observation)


@pytest.mark.parametrize(
    "subject",
    [
        opened(trace_region_size=0),
        Subject(facts={"tt_xla": True, "use_trace": True, "TT_RUNTIME_TRACE_REGION_SIZE": None}),
        Subject(facts={"use_trace": "1", "trace_region_size": "0"}),
    ],
)
def test_a_trace_without_a_region_is_found(subject: Subject) -> None:
    assert ttp405(subject) == LIMIT_405.found(0.0, "a trace is used with a trace region of 0 B")


ttp406 = Ask("TTP406")
LIMIT_406 = limit(1, "programs")
VARIABLE = "TT_RUNTIME_ENABLE_PROGRAM_CACHE"


def counted(entries: int) -> Subject:
    return measured(
        environment={"program_cache_entries_after": entries}, facts={"program_cache": 1}
    )


def test_a_cache_that_stays_empty_is_found_whatever_is_stated() -> None:
    assert ttp406(counted(0)) == LIMIT_406.found(
        0.0, "after the samples the program cache held 0 programs"
    )


def test_one_program_is_clean() -> None:
    assert ttp406(counted(1)) == LIMIT_406.clean(1.0)


@pytest.mark.parametrize(
    ("name", "value", "on"),
    [
        ("program_cache", True, True),
        ("program_cache", False, False),
        (VARIABLE, None, True),
        (VARIABLE, "1", True),
        (VARIABLE, "0", False),
    ],
)
def test_what_is_stated(name: str, value: Scalar, on: bool) -> None:
    expected = (
        clean(reason=f"{name} says that it is on")
        if on
        else found(f"{name} says that the program cache is off")
    )
    assert ttp406(facts={name: value}) == expected


ttp407 = Ask("TTP407")
LIMIT_407 = limit(1, "level")


@pytest.mark.parametrize("level", [0, "0"])
def test_level_zero_is_found(level: Scalar) -> None:
    assert ttp407(facts={"optimization_level": level}) == LIMIT_407.found(
        0.0, "the model is compiled with optimization_level 0"
    )


def test_a_level_that_is_no_number() -> None:
    told = "optimization_level: expected a number, found 'best'"
    assert ttp407(facts={"optimization_level": "best"}) == not_measured(told)


#: Whatever it weighs.
ttp504 = Ask("TTP504", {"worth": 0.0})
LIMIT_504 = limit(0.1, "of the bytes")
READ = Operation(1, "ttnn.to_torch", inputs=(1,), outputs=(2,))


def test_padding_that_crosses_is_found() -> None:
    operations = [
        READ,
        Operation(2, "ttnn.from_torch", outputs=(3,)),
        Operation(3, "ttnn.copy_host_to_device_tensor", inputs=(4, 5)),
        Operation(4, "ttnn.relu", inputs=(1,), outputs=(1,)),
    ]
    tensors = [
        record(1, 1, 1, 48, 64),  # 64 x 64 in tiles: 8192 B, of which 2048 are padding
        record(2, 1, 1, 48, 64, memory=None),
        record(3, 1, 1, 20, 32, layout="ROW_MAJOR"),  # 1280 B, none
        record(4, 1, 1, 8, 32, memory=None),
        record(5, 1, 1, 8, 32, dtype="FLOAT32"),  # 4096 B, of which 3072
    ]
    assert ttp504(report=report(operations, tensors)) == LIMIT_504.found(
        (2048 + 3072) / (8192 + 1280 + 4096),
        "37.7 % of what is sent in 2 transfers and read in 1 transfer is padding",
        [
            Evidence("ttnn.copy_host_to_device_tensor 1x1x8x32", 3072.0, "B"),
            Evidence("ttnn.to_torch 1x1x48x64", 2048.0, "B"),
        ],
    )


def test_without_transfers_the_question_does_not_arise() -> None:
    nothing = not_applicable("the report has no transfer between host and device")
    on_host = record(1, 1, 1, 48, 64, memory=None)
    relu = Operation(1, "ttnn.relu", inputs=(1,))
    assert ttp504(report=report([READ], [on_host])) == nothing
    assert ttp504(report=report([relu], [record(1, 1, 1, 48, 64)])) == (nothing)


ttp505 = Ask("TTP505")
MIB = 2**20
LARGE = record(1, 1, 4, 512, 512)  # 2 MiB


def reads(queue: str | None, *, queues: int | None = None, tensor: int = 1) -> Subject:
    arguments = {"cq_id": queue} if queue is not None else {}
    operation = Operation(1, "ttnn.from_device", arguments=arguments, inputs=(tensor,))
    tensors = [LARGE, record(2, 1, 2, 512, 512), record(3, 1, 1, 32, 32)]
    facts = {"num_command_queues": queues} if queues is not None else {}
    return Subject(report=report([operation], tensors), facts=facts)


@pytest.mark.parametrize(
    "subject", [reads("0", queues=2), reads(None, queues=1)], ids=["named", "the only queue"]
)
def test_a_large_output_on_queue_zero_is_found(subject: Subject) -> None:
    assert ttp505(subject) == found(
        "2.000 MiB of 1 output read on the queue that computes",
        value=2.0 * MIB,
        limit=MIB,
        unit="B",
        evidence=(Evidence("ttnn.from_device 1x4x512x512", 2.0 * MIB, "B"),),
    )

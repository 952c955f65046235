"""Rules on the host, traces and transfers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.runner import rule_of, run_rules
from pytest_ttnn_perf.core.finding import Subject
from pytest_ttnn_perf.core.metric import KERNEL_TIME, Source
from pytest_ttnn_perf.core.observation import Observation
from pytest_ttnn_perf.core.ops import Signpost
from tests.analysis.rules.cases import CLEAN, FOUND, NOT_ASKED, UNKNOWN, Case, of_cases
from tests.analysis.rules.observations import measured, timed
from tests.analysis.rules.reports import Operation, record, report
from tests.analysis.rules.tables import Op, op, table, tensor

if TYPE_CHECKING:
    from pytest_ttnn_perf.core.hardware import Scalar

X, Y = tensor(1, 1, 32, 64), tensor(1, 1, 64, 64)
VARIABLE = "TT_RUNTIME_ENABLE_PROGRAM_CACHE"


def call(gap_ns: float, *, device: int = 0, replay: tuple[int, int] | None = None) -> list[Op]:
    """Return two ops of 400 ns each, a second after the phase before them."""
    return [
        op("Matmul", [X, X], ns=400, gap_ns=1e9, device=device, replay=replay),
        op("Add", [X], ns=400, gap_ns=gap_ns, device=device, replay=replay),
    ]


def replayed() -> Subject:
    gaps = ((300, 1), (500, 2))
    rows = [
        row for at in (0, 1) for ns, run in gaps for row in call(ns, device=at, replay=(7, run))
    ]
    return Subject(ops=table(*call(1e9), *rows))


def windowed(*rows: Op) -> Subject:
    return Subject(ops=replace(table(*rows), windowed=True))


WAITS = windowed(*(op("Add", [X], ns=4000, gap_ns=gap) for gap in (1e9, 8000.0)))


def calls(*shapes: object) -> Subject:
    """Return calls between signposts, each of an op on a shape."""
    rows = [op("Add", [shape]) for shape in shapes]  # type: ignore[list-item]
    posts = [
        Signpost(name, at + (name != "DECODE"))
        for at in range(len(rows))
        for name in ("DECODE", "DECODE_END")
    ]
    return Subject(ops=replace(table(*rows), signposts=tuple(posts)))


def traced(**facts: Scalar) -> Subject:
    return Subject(ops=table(op("Add", replay=(1, 1))), facts=facts)


def cached(entries: int) -> Subject:
    environment = {"program_cache_entries_after": entries}
    return measured(environment=environment, facts={"program_cache": 1})


def facts(**stated: Scalar) -> Subject:
    return Subject(facts=stated)


PADDED = report(
    [
        Operation(1, "ttnn.to_torch", inputs=(1,), outputs=(2,)),
        Operation(2, "ttnn.from_torch", outputs=(3,)),
        Operation(3, "ttnn.copy_host_to_device_tensor", inputs=(4, 5)),
        Operation(4, "ttnn.relu", inputs=(1,), outputs=(1,)),
    ],
    [
        record(1, 1, 1, 480, 640),  # 614,400 B in tiles
        record(2, 1, 1, 480, 640, memory=None),
        record(3, 1, 1, 200, 320, layout="ROW_MAJOR"),  # 128,000 B, no padding
        record(4, 1, 1, 80, 320, memory=None),
        record(5, 1, 10, 8, 320, dtype="FLOAT32"),  # 409,600 B, of which 307,200
    ],
)


def reads(queue: str | None, *, queues: int) -> Subject:
    """Return a report that reads 2 MiB."""
    arguments = {"cq_id": queue} if queue is not None else {}
    operation = Operation(1, "ttnn.from_device", arguments=arguments, inputs=(1,))
    made = report([operation], [record(1, 1, 4, 512, 512)])
    return Subject(report=made, facts={"num_command_queues": queues})


CASES = [
    Case("TTP401", replayed(), FOUND, 1600 / 4800, 300.0, "33.3 % of the time"),
    Case("TTP401", WAITS, NOT_ASKED),
    Case("TTP402", windowed(*call(1.2e6), *call(9e5)[1:]), UNKNOWN, told="1 of 2 gaps are of 1 ms"),
    Case(
        "TTP402", windowed(*call(3e5), *call(1e3)[1:], *call(2e5)[1:]), UNKNOWN,
        told="half of 3 gaps are of 200 µs or more: the window is of a first call",
    ),
    Case("TTP402", replace(measured(), ops=WAITS.ops), FOUND, 0.5, 7000.0, "at most 50.0 %"),
    Case("TTP403", calls(X, X, Y), FOUND, 1, told="call 3: Add 1x1x64x64 instead of Add 1x1x32x64"),
    Case("TTP403", traced(dynamic_shapes=True), FOUND, told="the test states"),
    *(
        Case("TTP405", subject, FOUND, 0, told="with a trace region of 0 B")
        for subject in (
            replace(
                traced(), observation=Observation("test", configuration={"trace_region_size": 0})
            ),
            facts(tt_xla=True, use_trace=True, TT_RUNTIME_TRACE_REGION_SIZE=None),
            facts(use_trace="1", trace_region_size="0"),
        )
    ),
    # What is observed counts, whatever is stated.
    Case("TTP406", cached(0), FOUND, 0, told="held 0 programs"),
    Case("TTP406", cached(1), CLEAN, 1),
    *(
        Case("TTP406", facts(**{name: value}), outcome, told=f"{name} says that")
        for name, value, outcome in (
            ("program_cache", True, CLEAN), ("program_cache", False, FOUND),
            (VARIABLE, None, CLEAN), (VARIABLE, "1", CLEAN), (VARIABLE, "0", FOUND),
        )
    ),
    *(Case("TTP407", facts(optimization_level=level), FOUND, 0) for level in (0, "0")),
    Case("TTP407", facts(optimization_level="best"), UNKNOWN, told="expected a number"),
    Case("TTP504", Subject(report=PADDED), FOUND, 307_200 / 1_152_000, told="sent in 2 transfers"),
    Case("TTP504", Subject(report=report([])), NOT_ASKED),
    Case("TTP505", reads("0", queues=2), FOUND, 2.0 * 2**20),
    Case("TTP505", reads(None, queues=1), FOUND, 2.0 * 2**20),
    Case("TTP505", reads("1", queues=2), CLEAN, 0),
]  # fmt: skip


@of_cases(CASES)
def test_answers(case: Case) -> None:
    case.check()


def test_what_gaps_tell_is_an_upper_bound() -> None:
    device = timed(2e6, name=KERNEL_TIME, source=Source.TRACY)
    called = replace(measured(timed(9e6), device), ops=WAITS.ops)
    (of_gaps,) = run_rules([rule_of("TTP402")], WAITS)
    (of_wall_time,) = run_rules([rule_of("TTP402")], called)
    assert (of_gaps.at_most, of_wall_time.at_most) == (True, False)
    assert (of_gaps.saving_ns, of_gaps.step_ns) == (7000.0, 16_000.0)

"""Rules on validity, and those asked of every test."""

from __future__ import annotations

from math import nan

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.bottleneck import held_back
from pytest_ttnn_perf.analysis.checklist.runner import all_rules, run_in_regions
from pytest_ttnn_perf.analysis.readers.report_db import OperationError
from pytest_ttnn_perf.analysis.readers.ttlang import (
    AutoProfile,
    LineOp,
    LineProfile,
    ThreadProfile,
    TtlangLog,
)
from pytest_ttnn_perf.core.finding import Subject
from pytest_ttnn_perf.core.ops import Unread
from pytest_ttnn_perf.machine.inspection import Conflict
from pytest_ttnn_perf.measure.helper_families import HelperPcc
from tests.analysis.rules.answers import Ask
from tests.analysis.rules.cases import CLEAN, FOUND, NOT_ASKED, UNKNOWN, Case, of_cases, of_ops
from tests.analysis.rules.observations import measured, timed
from tests.analysis.rules.reports import Operation, report
from tests.analysis.rules.tables import TraceReplays, on_host, op, table, tensor

LOST = LineProfile(
    12, "cb.reserve()", ops=(LineOp("cb_reserve", 90, hits=512), LineOp("cb_push", 80, hits=384))
)
LOG = TtlangLog(
    auto_profiles=(
        AutoProfile(100, (ThreadProfile("NCRISC", "read", 100, (LOST,)),), None, complete=True),
    )
)
MATMUL = op("MatmulDeviceOperation")
SAME = (TraceReplays(device=0, trace=7, replays=2, alike=2),)
WATCHER = Conflict("TT_METAL_WATCHER", "10", "makes the kernels report", "unset TT_METAL_WATCHER")
DUMP = Conflict("TTLANG_PERF_DUMP", "1", "profiles every call", "unset TTLANG_PERF_DUMP")
FALLBACKS = [on_host(f"(torch) {name}") for name in ("cat", "squeeze", "cat")]
ALIKE = [op(code, ns=1000) for code in ("Matmul", "Slice") for _ in range(5)]
UNREAD = (Unread(9, "impossible gap"), Unread(7, "impossible gap"), Unread(12, "no time"))
#: 2 MiB each: in, in and out take 21.8 us at the 288 GB/s of Wormhole.
X = tensor(1, 1, 1024, 1024)
TOO_FAST = op("BinaryNgDeviceOperation", [X, X], [X], ns=10_000.0)
MASKED = HelperPcc("pcc", "comp_pcc", 0.9991, nan, "actual holds 1 NaN")
LESS = HelperPcc("pcc_2", "assert_with_pcc", None, 0.5, "the values do not correlate as stated")

CASES = [
    Case("TTP001", measured(dropped=True), FOUND, 1, told="the device profiler ran out of room"),
    Case("TTP001", Subject(kernels=LOG), FOUND, 1, told="512 cb_reserve, 384 cb_push 128 zones"),
    Case("TTP001", measured(timed(5.0)), NOT_ASKED, told="no profiler ran"),
    Case("TTP002", Subject(ops=table(op("Matmul", replay=(7, 1)), traces=SAME)), CLEAN, 0),
    Case(
        "TTP004", Subject(conflicts=(WATCHER, DUMP)), FOUND, 2,
        told="TTLANG_PERF_DUMP=1 profiles every call: unset TTLANG_PERF_DUMP",
    ),
    Case("TTP004", replace(measured(timed(5.0)), conflicts=(WATCHER,)), FOUND, 1),
    Case("TTP004", replace(measured(timed(5.0)), conflicts=()), CLEAN, 0),
    Case("TTP007", of_ops(MATMUL, *FALLBACKS, MATMUL), FOUND, 3, told="2 x (torch) cat 2 ops"),
    Case("TTP007", of_ops(*FALLBACKS, MATMUL), CLEAN, 0),
    Case("TTP010", of_ops(*ALIKE, on_host("(torch) cat")), FOUND, told="10 of 10 ops took"),
    Case(
        "TTP010", Subject(ops=replace(table(MATMUL), unread=UNREAD)), FOUND, 3,
        told="3 of 4 device ops have an impossible gap (2) or no time (1), first in line 7",
    ),
    Case(
        "TTP908", Subject(helper_pccs=(MASKED, LESS)), FOUND, 2,
        told="comp_pcc says 0.9991, and the PCC does not exist: actual holds 1 NaN; 1 more",
    ),
]  # fmt: skip


@of_cases(CASES)
def test_answers(case: Case) -> None:
    case.check()


def test_nothing_else_is_said_of_a_capture_that_no_processor_ran() -> None:
    subject = Subject(ops=replace(table(op("Matmul", fw_ns=1100)), processors=False))
    findings = run_in_regions(all_rules(), subject)
    others = [one for one in findings if one.saving_ns is not None or one.fails]
    assert [one.code for one in others] == ["TTP010"]
    (movement,) = (one for one in findings if one.code == "TTP307")
    assert movement.outcome is UNKNOWN
    assert (movement.reason or "").endswith(
        "trusted: no processor ran a kernel, though ops have kernel durations"
    )
    assert held_back(subject, {})[0] is None


def test_an_op_without_a_time_is_not_too_fast_itself() -> None:
    answer = Ask("TTP012")(of_ops(TOO_FAST, TOO_FAST._replace(kernel_ns=0.0)))
    assert [evidence.subject for evidence in answer.evidence] == ["BinaryNg 1x1x1024x1024"]


def failed(reason: str, kind: str = "RuntimeError") -> OperationError:
    return OperationError(3, "ttnn.from_torch", kind, reason)


def test_what_found_no_room_comes_first_and_what_only_stopped_is_counted_apart() -> None:
    cut = failed("started but never completed", "incomplete_operation")
    starved = failed("Out of Memory: Not enough space to allocate 64 B DRAM buffer")
    errors = (cut, failed("bad shape"), starved)
    answer = Ask("TTP016")(report=replace(report([Operation(1, "ttnn.add")]), errors=errors))
    assert answer.reason == "2 operations failed, 1 for lack of memory; 1 operation did not end"
    assert "space to allocate" in answer.evidence[0].subject
    assert "never completed" in answer.evidence[2].subject

"""Rules on validity, and those asked of every test."""

from __future__ import annotations

from math import nan

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.bottleneck import held_back
from pytest_ttnn_perf.analysis.checklist.runner import all_rules, rule_of, run_in_regions
from pytest_ttnn_perf.analysis.readers.report_db import OperationError
from pytest_ttnn_perf.analysis.readers.ttlang import (
    AutoProfile,
    LineOp,
    LineProfile,
    ThreadProfile,
    TtlangLog,
)
from pytest_ttnn_perf.core.finding import RuleOutcome, Subject
from pytest_ttnn_perf.core.ops import Unread
from pytest_ttnn_perf.machine.inspection import Conflict
from pytest_ttnn_perf.measure.helper_families import HelperPcc
from tests.analysis.rules.answers import Ask, Evidence, limit, not_applicable
from tests.analysis.rules.observations import measured, timed
from tests.analysis.rules.reports import Operation, report
from tests.analysis.rules.tables import Op, TraceReplays, on_host, op, table, tensor

ttp001 = Ask("TTP001")
LIMIT = limit(0, "losses")


def with_line(*ops: LineOp) -> TtlangLog:
    thread = ThreadProfile("NCRISC", "read", 100, (LineProfile(12, "cb.reserve()", ops=ops),))
    return TtlangLog(auto_profiles=(AutoProfile(100, (thread,), None, complete=True),))


def test_markers_that_the_device_profiler_dropped() -> None:
    text = "the device profiler ran out of room and dropped markers"
    assert ttp001(measured(dropped=True)) == LIMIT.found(
        1, f"profiler data are not whole: {text}", [Evidence(text)]
    )


def test_zones_beyond_those_that_a_core_keeps() -> None:
    log = with_line(LineOp("cb_reserve", 90, hits=512), LineOp("cb_push", 80, hits=384))
    text = "NCRISC, source line 12: 512 cb_reserve, 384 cb_push"
    assert ttp001(kernels=log) == LIMIT.found(
        1, f"profiler data are not whole: {text}", [Evidence(text, 128, "zones")]
    )


def test_a_test_without_a_profiler_has_nothing_to_lose() -> None:
    assert ttp001(measured(timed(5.0))) == not_applicable("no profiler ran")


ttp002 = Ask("TTP002")
LIMIT_002 = limit(0, "traces")
ROW = op("MatmulDeviceOperation", replay=(7, 1))


def test_replays_that_are_the_same() -> None:
    traces = (TraceReplays(device=0, trace=7, replays=2, complete=True),)
    assert ttp002(ops=table(ROW, traces=traces)) == LIMIT_002.clean(0)


ttp004 = Ask("TTP004")
LIMIT_004 = limit(0, "variables")
WATCHER = Conflict("TT_METAL_WATCHER", "10", "makes the kernels report", "unset TT_METAL_WATCHER")
DUMP = Conflict("TTLANG_PERF_DUMP", "1", "profiles every call", "unset TTLANG_PERF_DUMP")


def test_variables_that_change_times() -> None:
    watcher = "TT_METAL_WATCHER=10 makes the kernels report: unset TT_METAL_WATCHER"
    dump = "TTLANG_PERF_DUMP=1 profiles every call: unset TTLANG_PERF_DUMP"
    assert ttp004(conflicts=(WATCHER, DUMP)) == LIMIT_004.found(
        2, f"{watcher}; {dump}", [Evidence(watcher), Evidence(dump)]
    )


def test_a_pass_that_takes_wall_times() -> None:
    subject = measured(timed(5.0))
    assert ttp004(replace(subject, conflicts=(WATCHER,))).value == 1
    assert ttp004(replace(subject, conflicts=())) == LIMIT_004.clean(0)


ttp007 = Ask("TTP007")
LIMIT_007 = limit(0, "ops")
MATMUL = op("MatmulDeviceOperation")


def test_ops_on_the_host() -> None:
    fallbacks = [on_host(f"(torch) {name}") for name in ("cat", "squeeze", "cat")]
    assert ttp007(ops=table(MATMUL, *fallbacks, MATMUL)) == LIMIT_007.found(
        3,
        "3 ops ran on the host, between ops on the device",
        [
            Evidence("2 x (torch) cat", 2, "ops"),
            Evidence("(torch) squeeze", 1, "ops"),
        ],
    )


ttp008 = Ask("TTP008")
LIMIT_008 = limit(0.9, "of the ops")


def test_ops_of_different_kinds_took_the_same_time() -> None:
    rows = [op(code, ns=1000) for code in ("Matmul", "Slice") for _ in range(5)]
    assert ttp008(ops=table(*rows, on_host("(torch) cat"))) == LIMIT_008.found(
        1.0,
        "100.0 % of 10 ops took exactly the same time: not measured",
        [Evidence("the time of each", 1000.0, "ns")],
    )


OPS = table(op("Matmul", fw_ns=1100))


def test_nothing_else_is_said_of_such_a_capture() -> None:
    subject = Subject(ops=replace(OPS, processors=False))
    findings = run_in_regions(all_rules(), subject)
    others = [one for one in findings if one.saving_ns is not None or one.fails]
    assert [one.code for one in others] == ["TTP009"]
    (movement,) = (one for one in findings if one.code == "TTP307")
    assert movement.outcome is RuleOutcome.NOT_MEASURED
    assert (movement.reason or "").endswith(
        "trusted: no processor ran a kernel, though ops have kernel durations"
    )
    assert held_back(subject, {})[0] is None


ttp010 = Ask("TTP010")
LIMIT_010 = limit(0, "ops")


def test_ops_without_a_time() -> None:
    lost = (Unread(9, "impossible gap"), Unread(7, "impossible gap"), Unread(12, "no time"))
    assert ttp010(ops=replace(table(op("Matmul")), unread=lost)) == LIMIT_010.found(
        3,
        "3 of 4 device ops have an impossible gap (2) or no time (1), first in line 7",
        [Evidence("impossible gap", 2, "ops"), Evidence("no time", 1, "ops")],
    )


ttp012 = Ask("TTP012")
#: 2 MiB each: in, in and out take 21.8 us at the 288 GB/s of Wormhole.
X = tensor(1, 1, 1024, 1024)


def add(ns: float) -> Op:
    return op("BinaryNgDeviceOperation", [X, X], [X], ns=ns)


def test_an_op_without_a_time_is_not_too_fast_itself() -> None:
    answer = ttp012(ops=table(add(10_000.0), add(0.0)))
    assert [evidence.subject for evidence in answer.evidence] == ["BinaryNg 1x1x1024x1024"]


ttp016 = Ask("TTP016")
CALL = Operation(1, "ttnn.add")


def failed(reason: str, kind: str = "RuntimeError") -> OperationError:
    return OperationError(3, "ttnn.from_torch", kind, reason)


def test_what_found_no_room_comes_first_and_what_only_stopped_is_counted_apart() -> None:
    cut = failed("started but never completed", "incomplete_operation")
    starved = failed("Out of Memory: Not enough space to allocate 64 B DRAM buffer")
    made = replace(report([CALL]), errors=(cut, failed("bad shape"), starved))
    answer = ttp016(report=made)
    assert answer.reason == "2 operations failed, 1 for lack of memory; 1 operation did not end"
    assert "space to allocate" in answer.evidence[0].subject
    assert "never completed" in answer.evidence[2].subject


MASKED = HelperPcc("pcc", "comp_pcc", 0.9991, nan, "actual holds 1 NaN")
LESS = HelperPcc("pcc_2", "assert_with_pcc", None, 0.5, "the values do not correlate as was told")


def test_what_a_helper_told_wrongly_is_named_with_both_numbers() -> None:
    answer = rule_of("TTP908").check(Subject(helper_pccs=(MASKED, LESS)))

    assert answer.outcome is RuleOutcome.FOUND
    assert answer.reason == (
        "pcc: comp_pcc says 0.9991, and the PCC does not exist: actual holds 1 NaN; 1 more"
    )
    assert [each.subject for each in answer.evidence] == [
        "pcc (comp_pcc): actual holds 1 NaN",
        "pcc_2 (assert_with_pcc): the values do not correlate as was told",
    ]

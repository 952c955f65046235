from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.ttlang import (
    AutoProfile,
    LineOp,
    LineProfile,
    Problem,
    ProblemKind,
    SimCounters,
    ThreadProfile,
    ThreadTotal,
    TtlangLog,
)
from pytest_ttnn_perf.core.metric import Source
from tests.rules.answers import Ask, Evidence, Subject, limit, not_applicable
from tests.rules.observations import measured, timed

ask = Ask("TTP001")
LIMIT = limit(0, "losses")
CLEAN = LIMIT.clean(0)


def with_line(*ops: LineOp) -> TtlangLog:
    total = ThreadTotal("NCRISC", "read", 8, 100, 50.0)
    thread = ThreadProfile(total, (LineProfile(12, "cb.reserve()", ops=ops),))
    return TtlangLog(auto_profiles=(AutoProfile(8, 100, (), (thread,), (total,), None, True),))


def test_markers_that_the_device_profiler_dropped() -> None:
    text = "the device profiler ran out of room and dropped markers"
    assert ask(measured(dropped=True)) == LIMIT.found(
        1, f"profiler data are not whole: {text}", [Evidence(text)]
    )


@pytest.mark.parametrize(
    ("kind", "what"),
    [
        (ProblemKind.DROPPED, "profiler data are not whole"),
        (ProblemKind.CUT, "the log is incomplete"),
        (ProblemKind.STALE, "profiler data are not whole"),
    ],
)
def test_what_tt_lang_lost(kind: ProblemKind, what: str) -> None:
    problem = Problem(4, kind, "markers were dropped!")
    log = TtlangLog(problems=(problem, problem._replace(line=9)))
    assert ask(kernels=log) == LIMIT.found(
        2,
        f"{what}: line 4: markers were dropped!, and 1 more",
        [
            Evidence("line 4: markers were dropped!"),
            Evidence("line 9: markers were dropped!"),
        ],
    )


def test_zones_beyond_those_that_a_core_keeps() -> None:
    log = with_line(LineOp("cb_reserve", 90, hits=512), LineOp("cb_push", 80, hits=384))
    text = "NCRISC, source line 12: 512 cb_reserve, 384 cb_push"
    assert ask(kernels=log) == LIMIT.found(
        1, f"profiler data are not whole: {text}", [Evidence(text, 128, "zones")]
    )


def test_pairs_that_are_whole_are_clean() -> None:
    log = with_line(LineOp("cb_wait", 90, hits=125), LineOp("cb_pop", 80, hits=125))
    assert ask(kernels=log) == CLEAN


def test_other_troubles_of_a_log_are_no_loss() -> None:
    log = TtlangLog(problems=(Problem(1, ProblemKind.UNKNOWN_CHIP, "arch: unknown"),))
    assert ask(kernels=log) == CLEAN


def test_a_whole_profile_is_clean() -> None:
    assert ask(measured(timed(5.0, source=Source.DEVICE))) == CLEAN


def test_a_test_without_a_profiler_has_nothing_to_lose() -> None:
    assert ask(measured(timed(5.0))) == not_applicable("no profiler ran")


def test_a_simulator_is_no_profiler() -> None:
    simulated = TtlangLog(sim=SimCounters({"dram_read_tiles": 4}))
    assert ask(kernels=simulated) == not_applicable("no profiler ran")


def test_without_input() -> None:
    assert ask(replace(Subject(), kernels=TtlangLog())) == CLEAN

from __future__ import annotations

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.hardware import Conflict
from pytest_ttnn_perf.core.metric import Source
from tests.rules.answers import Ask, Evidence, limit, not_applicable, not_measured
from tests.rules.observations import MetricObservation, accuracy, measured, timed

ask = Ask("TTP004")
LIMIT = limit(0, "variables")
WATCHER = Conflict("TT_METAL_WATCHER", "10", "makes the kernels report", "unset TT_METAL_WATCHER")
DUMP = Conflict("TTLANG_PERF_DUMP", "1", "profiles every call", "unset TTLANG_PERF_DUMP")


def test_variables_that_change_times() -> None:
    watcher = "TT_METAL_WATCHER=10 makes the kernels report: unset TT_METAL_WATCHER"
    dump = "TTLANG_PERF_DUMP=1 profiles every call: unset TTLANG_PERF_DUMP"
    assert ask(conflicts=(WATCHER, DUMP)) == LIMIT.found(
        2, f"{watcher}; {dump}", [Evidence(watcher), Evidence(dump)]
    )


def test_an_environment_without_them() -> None:
    assert ask(conflicts=()) == LIMIT.clean(0)


@pytest.mark.parametrize(
    "observed", [timed(5.0, source=Source.DEVICE), timed(name="wall_time"), accuracy(0.99)]
)
def test_a_pass_that_takes_no_wall_times(observed: MetricObservation) -> None:
    subject = measured(observed)
    for conflicts in ((WATCHER,), (), None):  # None: nobody looks in a profiled pass
        asked = replace(subject, conflicts=conflicts)
        assert ask(asked) == not_applicable("no wall time was taken")


def test_a_pass_that_takes_wall_times() -> None:
    subject = measured(timed(5.0))
    assert ask(replace(subject, conflicts=(WATCHER,))).value == 1
    assert ask(replace(subject, conflicts=())) == LIMIT.clean(0)


def test_without_input() -> None:
    why = "the environment in which the times were taken is not known"
    assert ask() == not_measured(why)
    assert ask(measured(timed(5.0))) == not_measured(why)

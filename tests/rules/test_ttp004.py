from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.checklist.rule import clean, found, not_applicable, not_measured
from pytest_ttnn_perf.analysis.checklist.rules.ttp004_conflicting_environment import (
    conflicting_environment,
)
from pytest_ttnn_perf.records.finding import Evidence, Subject
from pytest_ttnn_perf.records.hardware import Conflict
from pytest_ttnn_perf.records.metric import Source
from tests.rules.answers import ask
from tests.rules.observations import accuracy, measured, timed

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.observation import MetricObservation

RULE = conflicting_environment
WATCHER = Conflict("TT_METAL_WATCHER", "10", "makes the kernels report", "unset TT_METAL_WATCHER")
DUMP = Conflict("TTLANG_PERF_DUMP", "1", "profiles every call", "unset TTLANG_PERF_DUMP")


def test_variables_that_change_times() -> None:
    watcher = "TT_METAL_WATCHER=10 makes the kernels report: unset TT_METAL_WATCHER"
    dump = "TTLANG_PERF_DUMP=1 profiles every call: unset TTLANG_PERF_DUMP"
    assert ask(RULE, Subject(conflicts=(WATCHER, DUMP))) == found(
        f"{watcher}; {dump}",
        value=2,
        limit=0,
        unit="variables",
        evidence=[Evidence(watcher), Evidence(dump)],
    )


def test_an_environment_without_them() -> None:
    assert ask(RULE, Subject(conflicts=())) == clean(0, limit=0, unit="variables")


@pytest.mark.parametrize(
    "observed", [timed(5.0, source=Source.DEVICE), timed(name="wall_time"), accuracy(0.99)]
)
def test_a_pass_that_takes_no_wall_times(observed: MetricObservation) -> None:
    subject = measured(observed)
    for conflicts in ((WATCHER,), (), None):  # None: nobody looks in a profiled pass
        asked = replace(subject, conflicts=conflicts)
        assert ask(RULE, asked) == not_applicable("no wall time was taken")


def test_a_pass_that_takes_wall_times() -> None:
    subject = measured(timed(5.0))
    assert ask(RULE, replace(subject, conflicts=(WATCHER,))).value == 1
    assert ask(RULE, replace(subject, conflicts=())) == clean(0, limit=0, unit="variables")


def test_without_input() -> None:
    why = "the environment in which the times were taken is not known"
    assert ask(RULE, Subject()) == not_measured(why)
    assert ask(RULE, measured(timed(5.0))) == not_measured(why)

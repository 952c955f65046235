from __future__ import annotations

from pytest_ttnn_perf.analysis.checklist.rule import clean, found, not_applicable, not_measured
from pytest_ttnn_perf.analysis.checklist.rules.ttp005_many_kernel_invocations import (
    many_kernel_invocations,
)
from pytest_ttnn_perf.records.finding import Evidence, Subject
from pytest_ttnn_perf.records.ttlang import AutoProfile, PerfSummary, SignpostProfile, TtlangLog
from tests.rules.answers import ask

RULE = many_kernel_invocations
PROFILE = AutoProfile(8, 100, (), (), (), None, True)
SIGNPOSTS = SignpostProfile((), complete=True)


def test_profiles_of_several_calls() -> None:
    log = TtlangLog(auto_profiles=(PROFILE,) * 2, signpost_profiles=(SIGNPOSTS,) * 3)
    assert ask(RULE, Subject(kernels=log)) == found(
        "3 calls were profiled in one process: their cycles are added up",
        value=3,
        limit=1,
        unit="profiles",
        evidence=[
            Evidence("auto-profiles", 2, "profiles"),
            Evidence("signpost profiles", 3, "profiles"),
        ],
    )


def test_one_of_each_is_clean() -> None:
    log = TtlangLog(auto_profiles=(PROFILE,), signpost_profiles=(SIGNPOSTS,))
    assert ask(RULE, Subject(kernels=log)) == clean(1, limit=1, unit="profiles")


def test_perf_summaries_tell_programs_apart() -> None:
    log = TtlangLog(perf_summaries=(PerfSummary(()), PerfSummary(())))
    why = "no auto-profile and no signpost profile was printed"
    assert ask(RULE, Subject(kernels=log)) == not_applicable(why)


def test_without_input() -> None:
    assert ask(RULE, Subject()) == not_measured("needs output of tt-lang")

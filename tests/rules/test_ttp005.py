from __future__ import annotations

from pytest_ttnn_perf.analysis.readers.ttlang import (
    AutoProfile,
    PerfSummary,
    SignpostProfile,
    TtlangLog,
)
from tests.rules.answers import Ask, Evidence, limit, not_applicable

ask = Ask("TTP005")
LIMIT = limit(1, "profiles")
PROFILE = AutoProfile(8, 100, (), (), (), None, True)
SIGNPOSTS = SignpostProfile((), complete=True)


def test_profiles_of_several_calls() -> None:
    log = TtlangLog(auto_profiles=(PROFILE,) * 2, signpost_profiles=(SIGNPOSTS,) * 3)
    assert ask(kernels=log) == LIMIT.found(
        3,
        "3 calls were profiled in one process: their cycles are added up",
        [
            Evidence("auto-profiles", 2, "profiles"),
            Evidence("signpost profiles", 3, "profiles"),
        ],
    )


def test_one_of_each_is_clean() -> None:
    log = TtlangLog(auto_profiles=(PROFILE,), signpost_profiles=(SIGNPOSTS,))
    assert ask(kernels=log) == LIMIT.clean(1)


def test_perf_summaries_tell_programs_apart() -> None:
    log = TtlangLog(perf_summaries=(PerfSummary(()), PerfSummary(())))
    why = "no auto-profile and no signpost profile was printed"
    assert ask(kernels=log) == not_applicable(why)

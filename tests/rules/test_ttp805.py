from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, limit, not_applicable, not_measured
from tests.rules.kernel_logs import printed, program

ask = Ask("TTP805")
LIMIT = limit(2, "transfers per barrier")


def test_a_barrier_after_each_transfer_is_found() -> None:
    subject = printed(
        program(1, cores=4, reads=256, writes=240, read_barriers=256, write_barriers=160),
        program(2, cores=4, read_barriers=128, write_barriers=16),
    )
    assert ask(subject) == LIMIT.found(
        1.0,
        "reads of program 1 (kernel) have a barrier after every 1.0 transfers",
        [
            Evidence("reads of program 1 (kernel)", 1.0, LIMIT.unit),
            Evidence("writes of program 1 (kernel)", 1.5, LIMIT.unit),
        ],
    )


def test_the_limit_itself_is_clean() -> None:
    subject = printed(program(cores=4, read_barriers=128, write_barriers=16))
    assert ask(subject) == LIMIT.clean(2.0)


@pytest.mark.parametrize("barriers", [None, 0, 256])
def test_one_barrier_on_each_core_raises_no_question(barriers: int | None) -> None:
    assert ask(printed(program(cores=256, read_barriers=barriers))) == not_applicable(
        "no program has more than one barrier on a core"
    )


def test_without_a_summary_nothing_is_measured() -> None:
    why = "the output has no PERF SUMMARY: set TTLANG_PERF_DUMP=1"
    assert ask(printed()) == not_measured(why)

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, Subject, limit, not_applicable, not_measured
from tests.rules.kernel_logs import printed, program

ask = Ask("TTP803")
LIMIT = limit(0.5, "of the transfers")


def test_many_small_transfers_are_found() -> None:
    subject = printed(
        program(1, reads=100, writes=60, sizes={2048: None}),
        program(2, sizes={64: 20, 2049: 20}),
    )
    assert ask(subject) == LIMIT.found(
        0.9,
        "90.0 % of 200 transfers move 2048 B or less",
        [
            Evidence("program 1 (kernel): of 2048 B", 160, "transfers"),
            Evidence("program 2 (kernel): of 64 B", 20, "transfers"),
        ],
    )


def test_the_limit_itself_is_clean() -> None:
    assert ask(printed(program(sizes={2048: 32, 4096: 32}))) == LIMIT.clean(0.5)


def test_few_transfers_raise_no_question() -> None:
    assert ask(printed(program(sizes={2048: 63}))) == not_applicable("there are few transfers: 63")
    assert ask(printed(program(reads=0, writes=0))) == not_applicable("there are few transfers: 0")


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (printed(), "the output has no PERF SUMMARY: set TTLANG_PERF_DUMP=1"),
        (printed(program()), "the PERF SUMMARY does not tell the sizes of transfers"),
    ],
)
def test_without_sizes_nothing_is_measured(subject: Subject, reason: str) -> None:
    assert ask(subject) == not_measured(reason)

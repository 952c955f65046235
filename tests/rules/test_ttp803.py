from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Evidence, Subject, limit, not_applicable, not_measured
from tests.rules.kernel_logs import printed, program

ask = Ask("TTP803")
LIMIT = limit(0.5, "of the transfers")


def test_many_small_transfers_are_found() -> None:
    subject = printed(
        program(1, cores=4, reads=100, writes=60, read_barriers=50, sizes={2048: None}),
        program(2, sizes={64: 20, 2049: 20}),
    )
    assert ask(subject) == LIMIT.found(
        0.9,
        "90.0 % of 200 transfers move less than a tile, or a tile in programs that wait after "
        "every 2 transfers or fewer",
        [
            Evidence("program 1 (kernel): of 2048 B", 160, "transfers"),
            Evidence("program 2 (kernel): of 64 B", 20, "transfers"),
        ],
    )


@pytest.mark.parametrize("tile", [576, 1088, 2048])
@pytest.mark.parametrize("barriers", [None, 4, 33])
def test_a_tile_is_as_much_as_an_interleaved_tensor_gives(tile: int, barriers: int | None) -> None:
    """A page of such a tensor is one tile: larger blocks do not enlarge a transfer."""
    made = program(cores=4, reads=100, read_barriers=barriers, sizes={tile: 100})
    assert ask(printed(made)) == LIMIT.clean(0.0)


def test_one_barrier_on_each_core_is_not_waiting_often() -> None:
    made = program(cores=64, reads=64, read_barriers=64, sizes={2048: 64})
    assert ask(printed(made)) == LIMIT.clean(0.0)


def test_the_limit_itself_is_clean() -> None:
    assert ask(printed(program(sizes={512: 32, 4096: 32}))) == LIMIT.clean(0.5)


def test_few_transfers_raise_no_question() -> None:
    assert ask(printed(program(sizes={2048: 63}))) == not_applicable("there are few transfers: 63")
    assert ask(printed(program(reads=0, writes=0))) == not_applicable("there are few transfers: 0")


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (printed(), "the output has no PERF SUMMARY: set TTLANG_PERF_DUMP=1"),
        (printed(program()), "the PERF SUMMARY does not give the sizes of transfers"),
    ],
)
def test_without_sizes_nothing_is_measured(subject: Subject, reason: str) -> None:
    assert ask(subject) == not_measured(reason)

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Subject, limit, not_applicable, not_measured
from tests.rules.observations import io_measured, measured, timed

ask = Ask("TTP502")
LIMIT = limit(0.5, "of the shorter one")


def test_transfers_in_front_of_compute_are_found() -> None:
    assert ask(io_measured(6e6, 4e6, 9e6)) == LIMIT.found(
        0.25, "6 ms compute, 4 ms transfers, both at once 9 ms: 25.0 % of the shorter one is hidden"
    )


@pytest.mark.parametrize(
    ("both_ns", "overlap"), [(8e6, 0.5), (6e6, 1.0), (5.9e6, 1.0)], ids=["limit", "all", "noise"]
)
def test_half_and_more_is_clean(both_ns: float, overlap: float) -> None:
    assert ask(io_measured(6e6, 4e6, both_ns)) == LIMIT.clean(overlap)


def test_little_to_overlap_is_not_worth_the_question() -> None:
    assert ask(io_measured(10e6, 0.9e6, 12e6)) == not_applicable(
        "there is little to overlap: 0.9 ms beside 10 ms"
    )


@pytest.mark.parametrize(
    "subject", [measured(timed(6e6, name="io_compute_time")), io_measured(6e6, 0.0, 6e6)]
)
def test_without_all_three_times_nothing_is_measured(subject: Subject) -> None:
    assert ask(subject) == not_measured(
        "no profiler sees transfers: measure them with "
        "ttnn_perf.measure_io_overlap(compute=, transfer=, both=)"
    )


def test_a_tenth_is_worth_the_question() -> None:
    assert ask(io_measured(10e6, 1e6, 10e6)) == LIMIT.clean(1.0)


def test_it_saves_what_is_beyond_the_longer_one() -> None:
    saved = ask.saving(io_measured(6e6, 4e6, 9e6))
    assert saved == (3e6, "both − the longer one: 9 ms − 6 ms")

from __future__ import annotations

from tests.rules.answers import Ask, limit, not_measured
from tests.rules.observations import io_measured, measured

ask = Ask("TTP503")
LIMIT = limit(1.0, "times the compute time")


def test_transfers_that_take_longer_are_found() -> None:
    assert ask(io_measured(4e6, 6e6, 6e6)) == LIMIT.found(
        1.5, "transfers take 6 ms, compute 4 ms: 1.50 times as long"
    )


def test_the_limit_itself_is_clean() -> None:
    assert ask(io_measured(4e6, 4e6, 6e6)) == LIMIT.clean(1.0)


def test_without_times_nothing_is_measured() -> None:
    assert ask(measured()) == not_measured(
        "no profiler sees transfers: measure them with "
        "ttnn_perf.measure_io_overlap(compute=, transfer=, both=)"
    )


def test_it_saves_what_is_beyond_compute() -> None:
    assert ask.saving(io_measured(4e6, 6e6, 6e6)) == (2e6, "transfers − compute: 6 ms − 4 ms")

from __future__ import annotations

import pytest

from tests.rules.answers import Ask, Subject, clean, limit, not_measured
from tests.rules.observations import io_measured, measured

ask = Ask("TTP501")
LIMIT = limit(0.2, "of compute and transfers")
ONE = {"num_command_queues": 1}


def test_long_transfers_on_the_only_queue_are_found() -> None:
    assert ask(io_measured(6e6, 4e6, 10e6, facts=ONE)) == LIMIT.found(
        0.4, "transfers take 40.0 % of the time, and one command queue is open"
    )


def test_the_limit_itself_is_clean() -> None:
    assert ask(io_measured(8e6, 2e6, 10e6, facts=ONE)) == LIMIT.clean(0.2)


def test_two_queues_are_clean() -> None:
    subject = io_measured(6e6, 4e6, 10e6, facts={"num_command_queues": 2})
    assert ask(subject) == clean(reason="2 command queues are open")


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (
            Subject(facts={"use_trace": True}),
            "num_command_queues is not known: state it as a fact",
        ),
        (
            measured(facts=ONE),
            "one command queue is open; no profiler sees transfers: measure them with "
            "ttnn_perf.measure_io_overlap(compute=, transfer=, both=)",
        ),
    ],
)
def test_what_is_not_known_is_not_measured(subject: Subject, reason: str) -> None:
    assert ask(subject) == not_measured(reason)

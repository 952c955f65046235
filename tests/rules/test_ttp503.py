from __future__ import annotations

import pytest

from pytest_ttnn_perf.analysis.checklist.rule import Answer
from pytest_ttnn_perf.analysis.checklist.rules.ttp503_transfer_bound import transfer_bound
from pytest_ttnn_perf.records.finding import RuleOutcome, Subject
from tests.rules.answers import ask
from tests.rules.io_times import io_measured
from tests.rules.observations import measured

UNIT = "times the compute time"


def test_transfers_that_take_longer_are_found() -> None:
    assert ask(transfer_bound, io_measured(4e6, 6e6, 6e6)) == Answer(
        RuleOutcome.FOUND,
        "transfers take 6 ms, compute 4 ms: 1.50 times as long",
        1.5,
        1.0,
        UNIT,
    )


def test_the_limit_itself_is_clean() -> None:
    assert ask(transfer_bound, io_measured(4e6, 4e6, 6e6)) == Answer(
        RuleOutcome.CLEAN, None, 1.0, 1.0, UNIT
    )


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        (Subject(), "needs a measured test"),
        (
            measured(),
            "no profiler sees transfers: measure them with "
            "ttnn_perf.measure_io_overlap(compute=, transfer=, both=)",
        ),
    ],
)
def test_without_times_nothing_is_measured(subject: Subject, reason: str) -> None:
    assert ask(transfer_bound, subject) == Answer(RuleOutcome.NOT_MEASURED, reason)

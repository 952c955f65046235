"""Tests that measured what compute and transfers take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.rules.observations import measured, timed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.records.finding import Subject
    from pytest_ttnn_perf.records.hardware import Scalar


def io_measured(
    compute_ns: float,
    transfer_ns: float,
    both_ns: float,
    *,
    facts: Mapping[str, Scalar] | None = None,
) -> Subject:
    """Return a test that measured each alone, and both at once."""
    return measured(
        timed(compute_ns, name="io_compute_time"),
        timed(transfer_ns, name="io_transfer_time"),
        timed(both_ns, name="io_both_time"),
        facts=facts,
    )

"""Answers of rules that look at several things, any of which may be wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_ttnn_perf.checklist.rule import found
from pytest_ttnn_perf.model.finding import Evidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.checklist.rule import Answer


class Trouble(NamedTuple):
    """One of the things that are wrong, with its own number, limit and unit."""

    text: str
    value: float | None = None
    limit: float | None = None
    unit: str = ""


def found_troubles(troubles: Sequence[Trouble]) -> Answer:
    """Answer that all of these are wrong; the value is that of the first, which proves most."""
    first = troubles[0]
    return found(
        "; ".join(trouble.text for trouble in troubles),
        value=first.value,
        limit=first.limit,
        unit=first.unit,
        evidence=(Evidence(trouble.text, trouble.value, trouble.unit) for trouble in troubles),
    )

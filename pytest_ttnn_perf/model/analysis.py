"""The numbers behind the checklist: distributions, and what weighs most in them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

#: What can be looked at: known without reading the code that looks.
NAMES: Final = (
    *("dtype", "fidelity", "layout", "padding", "sharding", "reshards", "memory", "host-overhead"),
    *("trace", "queues", "conv", "matmul", "devices", "cores", "dram", "bottlenecks"),
)


class AnalysisOutcome(Enum):
    """Whether there is anything to tell."""

    MEASURED = "MEASURED"
    NOT_MEASURED = "NOT_MEASURED"
    NOT_APPLICABLE = "NOT_APPLICABLE"


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of the whole; fractions have a unit "of" something."""

    label: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Row:
    """One bar of a section. ``count`` is of the ops, tensors or calls that make up the value."""

    label: str
    value: float
    share: float | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class Section:
    """Rows in the order in which they are worth reading.

    Values are in ``unit``, and shares are fractions ``of`` something, such as "of kernel time".
    """

    heading: str
    unit: str
    rows: tuple[Row, ...]
    of: str = ""


@dataclass(frozen=True, slots=True)
class Analysis:
    """What is to be said on one subject; ``reason`` says why there is nothing."""

    name: str
    title: str
    outcome: AnalysisOutcome = AnalysisOutcome.MEASURED
    reason: str | None = None
    figures: tuple[Figure, ...] = ()
    sections: tuple[Section, ...] = ()
    notes: tuple[str, ...] = ()

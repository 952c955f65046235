"""An op table in few rows: what is kept beside a baseline, to say later which op did it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_ttnn_perf.model.ops import Signature


@dataclass(frozen=True, slots=True)
class OpGroup:
    """Ops of one signature that are set up alike, of one execution on one device.

    Of several devices, ``count`` is that of the device that runs most of them, ``total_ns`` the
    mean. ``settings`` are those that decide how fast the op is, as ``key=value``.
    """

    signature: Signature
    cores: int | None
    fidelity: str | None
    settings: str
    count: int
    total_ns: float
    median_ns: float


@dataclass(frozen=True, slots=True)
class OpGroups:
    """The groups of a table, sorted. ``kernel_time`` names the column that the times are from."""

    kernel_time: str
    groups: tuple[OpGroup, ...]

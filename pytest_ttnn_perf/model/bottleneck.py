"""What holds a model or a kernel back most."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class BottleneckKind(Enum):
    """What can be in the way, in the words of a sentence."""

    TRANSFER = "transfer-bound"
    HOST = "host-bound"
    CORES = "underutilised cores"
    SMALL_TRANSFERS = "small transfers"
    DRAM_TRAFFIC = "excess DRAM traffic"
    MEMORY = "memory-bound"
    COMPUTE = "compute-bound"


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """A bottleneck, and the number that decided: ``value`` against ``limit``, both in ``unit``."""

    kind: BottleneckKind
    sentence: str
    value: float
    limit: float
    unit: str

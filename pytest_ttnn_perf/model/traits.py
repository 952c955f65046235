"""What a test can be recognised by when its name has changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_ttnn_perf.model.metric import Metric
    from pytest_ttnn_perf.model.op_groups import OpGroups


@dataclass(frozen=True, slots=True)
class Traits:
    """What a test ran and measured: its value of each metric, in the metric's unit, and its ops."""

    values: Mapping[Metric, float]
    ops: OpGroups | None = None

"""The metrics of what an artifact recorded."""

from __future__ import annotations

from typing import Final

from pytest_ttnn_perf.model.metric import Better, Kind, Metric, Source

_UNITS: Final = {Kind.TIME: "ns", Kind.BYTES: "B"}


def recorded(
    name: str, kind: Kind, *, better: Better | None = None, source: Source = Source.DEVICE
) -> Metric:
    """Return the metric of a recorded quantity; its kind tells the unit and which way is better.

    >>> recorded("l1_peak_bytes", Kind.BYTES).unit
    'B'
    """
    return Metric(name, _UNITS.get(kind, ""), better or kind.usual_direction, kind, source)

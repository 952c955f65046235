"""What kind of system this is."""

from __future__ import annotations

import enum

from . import _machine

_NAMES = (
    "INVALID N150 N300 T3K GALAXY TG P100 P150 P150_X2 P150_X4 P150_X8 SIMULATOR_WORMHOLE_B0 "
    "SIMULATOR_BLACKHOLE N300_2x2 P300 SIMULATOR_QUASAR BLACKHOLE_GALAXY P300_X2 CUSTOM"
)
ClusterType = enum.Enum("ClusterType", _NAMES, start=0)  # type: ignore[misc]


def get_cluster_type() -> ClusterType:
    return ClusterType[_machine.context().script.cluster]

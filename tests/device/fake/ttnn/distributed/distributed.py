"""Meshes: where TTNN keeps these functions, and calls them itself."""

# ruff: noqa: PLR0917, TID252 (the names and arguments are TTNN's)

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _machine, device
from ..types import MeshShape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..device import MeshDevice


def get_num_devices() -> int:
    return device.GetNumAvailableDevices()


def get_device_ids() -> list[int]:
    return list(range(get_num_devices()))


def open_mesh_device(
    mesh_shape: MeshShape | None = None,
    l1_small_size: int = device.DEFAULT_L1_SMALL_SIZE,
    trace_region_size: int = device.DEFAULT_TRACE_REGION_SIZE,
    num_command_queues: int = 1,
    offset: Sequence[int] | None = None,
    physical_device_ids: Sequence[int] = (),
    worker_l1_size: int = device.DEFAULT_WORKER_L1_SIZE,
) -> MeshDevice:
    options = dict(locals())
    shape = mesh_shape or MeshShape(1, len(_machine.context().chips))
    first = offset[-1] if offset else 0
    ids = physical_device_ids or range(first, first + shape.mesh_size())
    return device.opened(list(ids), shape, options)


def close_mesh_device(mesh_device: MeshDevice) -> None:
    mesh_device.close()

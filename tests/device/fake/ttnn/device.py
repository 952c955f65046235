"""Devices: opened, asked, closed. Closing one does not give the chip back."""

# ruff: noqa: N802, ARG001 (the names and arguments are TTNN's)

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from . import _machine, _profiler, _programs
from . import _realtime as realtime
from .types import (
    Arch,
    CoreCoord,
    MeshShape,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

DEFAULT_L1_SMALL_SIZE = 0
DEFAULT_TRACE_REGION_SIZE = 0
DEFAULT_WORKER_L1_SIZE = 0


_ids = count()
_open: dict[tuple[int, ...], MeshDevice] = {}


class MeshDevice:
    """One chip or several; made by the functions below."""

    def __init__(self, ids: Sequence[int], shape: MeshShape, options: Mapping[str, Any]) -> None:
        context = _machine.context()
        self._context = context
        self._id = next(_ids)
        self._ids = list(ids)
        self.chips = tuple(ids)
        self.shape = shape
        self.options = dict(options)
        self.trace_region_size = int(options.get("trace_region_size", 0))
        self.cache: set[tuple[str, int]] = set()
        self.cache_entries = 0
        self.traces: dict[int, _programs.Trace] = {}
        self.capture: int | None = None
        self.is_open = True
        _programs.write_logs()
        realtime.opened()

    def __repr__(self) -> str:
        grid = "x".join(map(str, self.shape))
        return f"MeshDevice({grid} grid, {len(self._ids)} devices)"

    def id(self) -> int:
        return self._id

    def arch(self) -> Arch:
        return Arch[str(self._context.script.arch).upper()]

    def get_device_ids(self) -> list[int]:
        return list(self._ids)

    def get_num_devices(self) -> int:
        return len(self._ids)

    def compute_with_storage_grid_size(self) -> CoreCoord:
        return CoreCoord(8, 8)

    def num_program_cache_entries(self) -> int:
        return self.cache_entries

    def close(self) -> None:
        if self.is_open:
            _profiler.read(self, closing=True)
            _open.pop(tuple(self._ids), None)
        self.is_open = False


def opened(ids: Sequence[int], shape: MeshShape, options: Mapping[str, Any]) -> MeshDevice:
    available = len(_machine.context().chips)
    if any(id_ >= available for id_ in ids) or len(ids) != shape.mesh_size():
        info = f"Requested mesh of {shape} from {available} devices: {list(ids)}"
        raise _machine.fatal("distributed/system_mesh.cpp:140", "is_in_system_mesh", info)
    key = tuple(ids)
    if key not in _open:
        _open[key] = MeshDevice(ids, shape, options)
    return _open[key]


def open_device(
    *,
    device_id: int,
    l1_small_size: int = DEFAULT_L1_SMALL_SIZE,
    trace_region_size: int = DEFAULT_TRACE_REGION_SIZE,
    num_command_queues: int = 1,
    worker_l1_size: int = DEFAULT_WORKER_L1_SIZE,
) -> MeshDevice:
    """Open a chip; one that is open already is returned as it is."""
    return opened([device_id], MeshShape(1, 1), locals())


def CreateDevice(
    device_id: int,
    num_command_queues: int = 1,
    l1_small_size: int = DEFAULT_L1_SMALL_SIZE,
    trace_region_size: int = DEFAULT_TRACE_REGION_SIZE,
    *,
    worker_l1_size: int = DEFAULT_WORKER_L1_SIZE,
) -> MeshDevice:
    return opened([device_id], MeshShape(1, 1), locals())


def close_device(device: MeshDevice) -> None:
    """Wait for the device, unless that fails, and close it."""
    try:
        synchronize_device(device)
    except RuntimeError:
        _machine.write(2, "close_device: synchronize_device failed.\n")
    device.close()


def CloseDevice(device: MeshDevice) -> None:
    device.close()


def synchronize_device(
    device: MeshDevice,
    cq_id: int | None = None,
    sub_device_ids: Sequence[object] = (),
) -> None:
    if not device.is_open:
        raise _machine.fatal("distributed/mesh_device.cpp:590", "is_open", "Device is closed")
    _programs.wait(device)


def ReadDeviceProfiler(device: MeshDevice) -> None:
    """Read what the device profiler has; never inside a capture, which it would spoil."""
    _programs.refuse_capture(device, "Reads are not supported during trace capture.")
    _profiler.read(device)


def GetNumAvailableDevices() -> int:
    return len(_machine.context().chips)


def GetNumPCIeDevices() -> int:
    context = _machine.context()
    return sum(map(context.is_local, range(len(context.chips))))


def get_arch_name() -> str:
    """Tell the architecture without touching the chip; options are read anew at every call."""
    script, _ = _machine.read_options()
    return "invalid" if script is None else str(script.arch)


def is_trace_capture_active(device: MeshDevice) -> bool:
    return device.capture is not None


ProgramRealtimeRecord = realtime.Record
ProgramRealtimeRecordBatch = realtime.Batch


def RegisterProgramRealtimeProfilerCallback(callback: Callable[[realtime.Batch], object]) -> int:
    return realtime.register(callback)


def UnregisterProgramRealtimeProfilerCallback(handle: int) -> None:
    realtime.unregister(handle)


def IsProgramRealtimeProfilerActive() -> bool:
    return realtime.is_active()

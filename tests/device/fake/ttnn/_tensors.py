"""Tensors that are numpy arrays, and the few operations on them."""

from __future__ import annotations

import enum
from itertools import count
from typing import TYPE_CHECKING, Any

from . import _machine, _programs, graph

if TYPE_CHECKING:
    from collections.abc import Callable

    from .device import MeshDevice


class DataType(enum.Enum):
    BFLOAT16 = 0
    FLOAT32 = 1
    UINT32 = 2
    BFLOAT8_B = 3
    BFLOAT4_B = 4
    INT32 = 7

    def __str__(self) -> str:
        return f"DataType.{self.name}"


class Layout(enum.Enum):
    ROW_MAJOR = 0
    TILE = 1

    def __str__(self) -> str:
        return f"Layout.{self.name}"


class MemoryConfig:
    """Where a tensor lies, and how it is spread."""

    def __init__(self, memory_layout: str = "INTERLEAVED", buffer_type: str = "DRAM") -> None:
        self.name = f"{buffer_type}_{memory_layout}"
        self._text = (
            f"MemoryConfig(memory_layout=TensorMemoryLayout::{memory_layout},"
            f"buffer_type=BufferType::{buffer_type},shard_spec=std::nullopt)"
        )

    def __repr__(self) -> str:
        return self._text


DRAM_MEMORY_CONFIG = MemoryConfig()
L1_MEMORY_CONFIG = MemoryConfig(buffer_type="L1")
_ids = count(1)


class Tensor:
    """An array on the host, or on a device where ``device()`` is one."""

    def __init__(
        self,
        data: Any,
        dtype: DataType = DataType.BFLOAT16,
        device: MeshDevice | None = None,
        layout: Layout = Layout.TILE,
        memory_config: MemoryConfig = DRAM_MEMORY_CONFIG,
    ) -> None:
        self.data = _rounded(data, dtype)
        self.dtype, self.layout = dtype, layout
        self.tensor_id = next(_ids)
        self._device, self._memory = device, memory_config

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.data.shape)

    def device(self) -> MeshDevice | None:
        return self._device

    def memory_config(self) -> MemoryConfig:
        return self._memory

    def cpu(self) -> Tensor:
        """Read the tensor back; as with every read, the device is waited for."""
        if self._device is not None:
            info = "Reads are not supported during trace capture."
            _programs.refuse_capture(self._device, info)
            _programs.wait(self._device)
        return Tensor(self.data.copy(), self.dtype, None, self.layout, self._memory)

    def to(self, target: Layout | MeshDevice) -> Tensor:
        if isinstance(target, Layout):
            return Tensor(self.data, self.dtype, self._device, target, self._memory)
        return Tensor(self.data, self.dtype, target, self.layout, self._memory)

    def to_numpy(self) -> Any:
        return self.cpu().data

    def described(self) -> dict[str, str]:
        """Return what the profiler's table says of the tensor."""
        extents = [1] * (4 - len(self.shape)) + [*self.shape]
        padded = [*extents[:-2], *(-(-extent // 32) * 32 for extent in extents[-2:])]
        padded = padded if self.layout is Layout.TILE else extents
        cells = {
            f"INPUT_0_{name}_PAD[LOGICAL]": f"{outer}[{inner}]"
            for name, outer, inner in zip("WZYX", padded, extents, strict=True)
        }
        memory = f"DEV_0_{self._memory.name}"
        kind = {"INPUT_0_LAYOUT": self.layout.name, "INPUT_0_DATATYPE": self.dtype.name}
        return {**cells, **kind, "INPUT_0_MEMORY": memory}


def _rounded(data: Any, dtype: DataType) -> Any:
    import numpy as np

    array = np.array(data, dtype=np.float32)
    if dtype is DataType.FLOAT32:
        return array
    return ((array.view(np.uint32) + np.uint32(0x8000)) & np.uint32(0xFFFF0000)).view(np.float32)


def from_torch(
    tensor: Any,
    dtype: DataType = DataType.BFLOAT16,
    *,
    layout: Layout = Layout.ROW_MAJOR,
    device: MeshDevice | None = None,
    memory_config: MemoryConfig = DRAM_MEMORY_CONFIG,
    mesh_mapper: object = None,  # noqa: ARG001
) -> Tensor:
    """Make a tensor of whatever numpy can read."""
    if device is not None:
        _programs.refuse_capture(device, "Writes are not supported during trace capture.")
    return Tensor(tensor, dtype, device, layout, memory_config)


def copy_host_to_device_tensor(host: Tensor, target: Tensor, cq_id: int = 0) -> None:  # noqa: ARG001
    device = target.device()
    assert device is not None
    _programs.refuse_capture(device, "Writes are not supported during trace capture.")
    target.data[...] = host.data


def _run(
    by: str, compute: Callable[[], Any], inputs: list[Tensor], others: dict[str, object]
) -> Tensor:
    first = inputs[0]
    device = first.device()
    if device is None or not device.is_open:
        info = "Input tensor A must be on device, got storage type: StorageType::HOST"
        raise _machine.fatal("../ttnn/operations/device_operation.hpp:412", "on_device", info)
    launched = _programs.launch(device, by, first.described())
    memory, layout = first.memory_config(), first.layout
    for other in others.values():
        memory = other if isinstance(other, MemoryConfig) else memory
        layout = other if isinstance(other, Layout) else layout
    output = Tensor(compute(), first.dtype, device, layout, memory)
    if device.capture is not None:
        # Nothing has run: the sums are done when the trace is.
        output.data[...] = 0
        device.traces[device.capture].sums.append(lambda: _repeat(output, compute))
    graph.record(f"ttnn.{by}", launched, inputs, output, others)
    return output


def _repeat(output: Tensor, compute: Callable[[], Any]) -> None:
    output.data[...] = _rounded(compute(), output.dtype)


def _function(by: str, compute: Callable[..., Any]) -> Callable[..., Tensor]:
    def call(*args: Any, **named: Any) -> Tensor:
        found = [*args, *named.values()]
        inputs = [each for each in found if isinstance(each, Tensor)]
        others = {f"arg_{at}": each for at, each in enumerate(args) if each not in inputs}
        others |= {name: each for name, each in named.items() if each not in inputs}
        return _run(by, lambda: compute(*(each.data for each in inputs)), inputs, others)

    call.__name__ = call.__qualname__ = by
    return call


add = _function("add", lambda a, b: a + b)
relu = _function("relu", lambda a: a.clip(0))
matmul = _function("matmul", lambda a, b: a @ b)
conv2d = _function("conv2d", lambda a, b, bias=0: a @ b + bias)  # of a window of one by one
to_memory_config = _function("to_memory_config", lambda a: a.copy())

"""How full a device is when it has run out of memory, and what has helped others."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_ttnn_perf.device.runtime import Runtime

_SAID: Final = ("Out of Memory", "out of memory", "beyond max L1 size", "clash with L1 buffers")
_KINDS: Final = ("L1", "L1_SMALL", "DRAM", "TRACE")
_REMEDIES: Final = (
    "a smaller act_block_h_override makes a convolution take less L1",
    "slice a convolution in DRAM, or keep skip connections there",
    "bfloat8_b takes a little more than half of what bfloat16 takes",
    "deallocate activations that are not used any more; larger l1_small_size takes from L1",
)
#: What tt-metal says of a trace that is larger than the memory set aside for traces.
_TRACE: Final = re.compile(
    r"trace buffers of size (\d{1,18})B on .{0,80}?but only (\d{1,18})B is allocated for trace",
    re.S,
)


def ran_out_of_memory(text: str) -> bool:
    """Tell whether an error says that a device has no memory left."""
    return any(said in text for said in _SAID)


def trace_report(text: str) -> str | None:
    """Say what to do about a trace that did not fit; None for any other error.

    >>> trace_report("trace buffers of size 8192B on Device 1, but only 0B is allocated for trace")
    'the trace takes 8,192 bytes, and 0 are set aside: open the device with trace_region_size=8192'
    """
    found = _TRACE.search(text)
    if found is None:
        return None
    needed, there = map(int, found.groups())
    remedy = f"open the device with trace_region_size={needed}"
    return f"the trace takes {needed:,} bytes, and {there:,} are set aside: {remedy}"


def memory_report(runtime: Runtime, devices: Iterable[Any]) -> str:
    """Say how full the open devices are, and what may be done."""
    lines = [line for device in devices for line in _state(runtime, device)]
    return "\n".join([*lines, *(f"- {remedy}" for remedy in _REMEDIES)])


def _state(runtime: Runtime, device: Any) -> Iterator[str]:
    kinds = getattr(runtime.ttnn, "BufferType", None)
    view_of = getattr(runtime.ttnn, "get_memory_view", None)
    for name in _KINDS:
        kind = getattr(kinds, name, None)
        if kind is None or view_of is None:
            continue
        try:
            view = view_of(device, kind)
        except (RuntimeError, TypeError):
            continue
        if not view.total_bytes_per_bank:
            continue
        used, total = view.total_bytes_allocated_per_bank, view.total_bytes_per_bank
        yield (
            f"{name}: {used:,} of {total:,} bytes used in each of {view.num_banks} banks; the "
            f"largest free block has {view.largest_contiguous_bytes_free_per_bank:,}"
        )

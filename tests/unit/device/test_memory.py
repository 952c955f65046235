"""What is known of a device that has run out of memory."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace

import pytest

from pytest_ttnn_perf.device.profilers import memory_report, ran_out_of_memory, trace_report
from pytest_ttnn_perf.device.ttnn import Runtime


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Out of Memory: Not enough space to allocate 65536 B L1 buffer", True),
        ("Statically allocated circular buffers in program 3 clash with L1 buffers", True),
        ("circular buffers on core range grow to 1600000 B which is beyond max L1 size", True),
        ("Input tensor A must be on device", False),
    ],
)
def test_the_errors_that_say_so_are_known(text: str, expected: bool) -> None:
    assert ran_out_of_memory(text) is expected


@pytest.mark.parametrize(
    "text",
    [
        "Creating trace buffers of size 751616B on MeshDevice 1, but only 4096B is allocated for "
        "trace region.",
        "TT_FATAL @ trace_buffer.cpp:12: size <= region\ninfo:\nCreating trace buffers of size "
        "751616B on MeshDevice 1,\nbut only 4096B is allocated for trace region.\nbacktrace:\n",
    ],
    ids=["one line", "as raised"],
)
def test_a_trace_that_did_not_fit_says_how_much_it_needs(text: str) -> None:
    assert not ran_out_of_memory(text)
    assert trace_report(text) == (
        "the trace takes 751,616 bytes, and 4,096 are set aside: open the device with "
        "trace_region_size=751616"
    )


def test_other_errors_are_none_of_a_trace() -> None:
    assert trace_report("Out of Memory: Not enough space to allocate 65536 B TRACE buffer") is None


def view(used: int, total: int) -> SimpleNamespace:
    return SimpleNamespace(
        num_banks=64,
        total_bytes_per_bank=total,
        total_bytes_allocated_per_bank=used,
        largest_contiguous_bytes_free_per_bank=total - used,
    )


def runtime(**views: SimpleNamespace) -> Runtime:
    """Return a ttnn that tells of these kinds of memory, and raises for all others."""

    def get_memory_view(_device: object, kind: str) -> SimpleNamespace:
        if kind not in views:
            raise RuntimeError(kind)
        return views[kind]

    ttnn = ModuleType("ttnn")
    kinds = SimpleNamespace(L1="L1", DRAM="DRAM", TRACE="TRACE")
    vars(ttnn).update(BufferType=kinds, get_memory_view=get_memory_view)
    return Runtime(ttnn)


def test_the_report_says_how_full_it_is_and_what_has_helped() -> None:
    lines = memory_report(runtime(L1=view(1000, 1500), TRACE=view(0, 0)), ["device"]).splitlines()
    assert lines[0] == (
        "L1: 1,000 of 1,500 bytes used in each of 64 banks; the largest free block has 500"
    )
    assert all(line.startswith("- ") for line in lines[1:])
    remedies = "\n".join(lines[1:])
    for known in ("act_block_h", "DRAM", "skip connections", "bfloat8_b"):
        assert known in remedies


def test_a_ttnn_that_tells_nothing_still_has_remedies() -> None:
    assert memory_report(Runtime(ModuleType("ttnn")), ["device"]).startswith("- ")

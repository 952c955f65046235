"""What the simulator counted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.readers.device_csv import sim_metrics
from pytest_ttnn_perf.analysis.readers.ttlang import SimCounters, SimTensor
from pytest_ttnn_perf.analysis.readers.ttlang_sim import read_sim_trace
from pytest_ttnn_perf.core.errors import InputError
from pytest_ttnn_perf.core.metric import Better, Kind, Metric, Source
from pytest_ttnn_perf.core.observation import MetricObservation

if TYPE_CHECKING:
    from pathlib import Path


Event = dict[str, object]


def event(tick: int, name: str, kernel: str | None = None, **more: object) -> Event:
    return {"tick": tick, "kernel": kernel, "event": name, **more}


OPERATION: list[Event] = [
    event(0, "operation_start", node=0),
    event(0, "operation_start", node=1),
    event(0, "kernel_start", "n0-r"),
    event(1, "kernel_start", "n1-r"),
    event(1, "kernel_block", "n0-r", op="reserve", on="dfb_1"),
    event(4, "kernel_unblock", "n0-r"),
    event(4, "dfb_reserve_end", "n0-r", dfb="dfb_1", tiles=16),
    event(5, "dfb_wait_end", "n0-r", dfb="dfb_1", tiles=8),
    event(
        6, "copy_end", "n0-r", tensor="a", tiles=5, direction="read",
        local_l1=1, remote_l1=2, dram=2,
    ),
    event(6, "copy_end", "n0-r", tensor="b", tiles=3, direction="write", dram=3),
    event(6, "copy_end", "n0-r", tensor=None, tiles=9),
    event(7, "pipe_send", "n0-r", pipe="p", tiles=2),
    event(7, "pipe_recv", "n1-r", pipe="p", tiles=4),
    event(8, "kernel_end", "n0-r"),
    event(9, "kernel_end", "n1-r"),
    event(9, "operation_end", node=0),
    event(9, "operation_end", node=1),
]  # fmt: skip


def text(events: list[Event]) -> str:
    return "".join(json.dumps(one) + "\n" for one in events)


def read(tmp_path: Path, content: str | bytes) -> SimCounters:
    file = tmp_path / "trace.jsonl"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_sim_trace(file)


def test_a_trace(tmp_path: Path) -> None:
    found = read(tmp_path, text(OPERATION))
    assert found.counters == {
        "operations": 1, "kernels": 2, "events": 17, "sim_ticks": 9, "sim_stall_ticks": 3,
        "dfb_reserves": 1, "dfb_tiles_reserved": 16, "dfb_waits": 1, "dfb_tiles_waited": 8,
        "pipe_sends": 1, "pipe_tiles_sent": 2, "pipe_receives": 1, "pipe_tiles_received": 4,
        "tensor_reads": 1, "tensor_writes": 1, "tiles_read": 5, "tiles_written": 3,
        "local_l1_read_tiles": 1, "local_l1_write_tiles": 0, "remote_l1_read_tiles": 2,
        "remote_l1_write_tiles": 0, "dram_read_tiles": 2, "dram_write_tiles": 3,
        "nodes_working": 1, "copies_in_flight": 0,
    }  # fmt: skip
    assert [tensor.name for tensor in found.tensors] == ["a", "b"]
    assert found.tensors[0].counters["tiles_read"] == 5
    assert found.tensors[1].counters["dram_write_tiles"] == 3


def test_ticks_begin_again_in_each_operation(tmp_path: Path) -> None:
    found = read(tmp_path, text(OPERATION * 3))
    once = read(tmp_path, text(OPERATION))
    assert found.counters == {name: 3 * count for name, count in once.counters.items()}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "no events: no tt-lang operation ran"),
        ('{"tick": 1}\n', "the field is missing"),
        ('{"tick": 1, "tick": 2}\n', "appears twice"),
        (text(OPERATION)[:-1], "the file is cut: its last line has no line end"),
        (text(OPERATION[:-1]), "it ends before the operation does"),
        (b"\xff\n", "expected an event"),
        ("[" * 60_000 + "\n", "nested too deeply"),
        ("x" * 70_000, "a line of more than 65,536 bytes"),
    ],
)
def test_a_trace_that_is_none(tmp_path: Path, content: str | bytes, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read(tmp_path, content)


def test_every_counter_in_all_and_of_every_tensor() -> None:
    counters = SimCounters(
        {"kernels": 12, "sim_ticks": 780, "dram_read_bytes": 4096},
        (SimTensor("a", {"tiles_read": 0}), SimTensor("W", {"dram_read_bytes": 64})),
    )

    assert list(sim_metrics(counters)) == [
        MetricObservation(Metric(name, unit, Better.EQUAL, kind, Source.SIM), (count,))
        for name, unit, kind, count in [
            ("sim_kernels", "", Kind.COUNT, 12),
            ("sim_ticks", "", Kind.COUNT, 780),
            ("sim_dram_read_bytes", "B", Kind.BYTES, 4096),
            ("sim_tiles_read_a", "", Kind.COUNT, 0),
            ("sim_dram_read_bytes_W", "B", Kind.BYTES, 64),
        ]
    ]


@pytest.mark.parametrize("name", ["tensor_7", "tensor_9310", "tensor_b4f0"])
def test_a_tensor_that_is_called_after_its_address_counts_in_all_only(name: str) -> None:
    counters = SimCounters({}, tuple(SimTensor(each, {"tiles_read": 1}) for each in ("a", name)))
    assert [found.metric.name for found in sim_metrics(counters)] == ["sim_tiles_read_a"]

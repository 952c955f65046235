"""Real output of tt-lang and its simulator: every figure of it is read, and read right."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from pytest_ttnn_perf.analysis.readers.ttlang import (
    Problem,
    ProblemKind,
    TtlangLog,
    is_perf_summary_json,
    is_ttlang_log,
    parse_ttlang,
    read_perf_summary_json,
    read_ttlang_log,
)
from pytest_ttnn_perf.analysis.readers.ttlang_sim import (
    is_sim_trace,
    read_sim_trace,
)
from tests.harness.corpus import corpus

#: The samples: how many summaries, reports, tables of signposts, flow and pipe graphs each has.
SAMPLES = {
    "v1_1_1_perf_summary.txt": (1, 0, 0, 0, 0),
    "perf_summary_docs_cores.txt": (1, 0, 0, 0, 0),
    "perf_summary_docs_nodes.txt": (1, 0, 0, 0, 0),
    "v1_1_1_auto_profile.plain.txt": (0, 1, 0, 0, 0),
    "v1_1_1_auto_profile.ansi.txt": (0, 1, 0, 0, 0),
    "demo-one.txt": (0, 1, 0, 0, 0),
    "many-ops.txt": (0, 1, 0, 0, 0),
    "v1_1_1_signpost_profile.txt": (0, 0, 1, 0, 0),
    "signpost_docs.txt": (0, 0, 1, 0, 0),
    "v1_1_1_cb_flow_graph.txt": (0, 0, 0, 1, 0),
    "pipe_graph_inferred.txt": (0, 0, 0, 0, 1),
}
#: This one was cut out of a report: nothing says that no row follows.
WITHOUT_END = "signpost_docs.txt"
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def sample(name: str) -> str:
    return COLOUR.sub("", corpus(f"ttlang/{name}").read_text(encoding="utf-8"))


def parse(text: str) -> TtlangLog:
    return parse_ttlang(text, Path("sample.txt"))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_is_understood(name: str) -> None:
    log = read_ttlang_log(corpus(f"ttlang/{name}"))
    found = (
        log.perf_summaries,
        log.auto_profiles,
        log.signpost_profiles,
        log.flow_graphs,
        log.pipe_graphs,
    )
    assert tuple(map(len, found)) == SAMPLES[name]
    assert is_ttlang_log(sample(name))
    end = (Problem(1, ProblemKind.CUT, "SIGNPOST PROFILE: no closing line"),)
    assert log.problems == (end if name == WITHOUT_END else ())


def test_the_text_agrees_with_the_exact_form() -> None:
    file = corpus("ttlang/v1_1_1_perf_summary.json")
    document = json.loads(file.read_text(encoding="utf-8"))
    assert is_perf_summary_json(file.read_text(encoding="utf-8"))
    exact = read_perf_summary_json(file)
    (rounded,) = read_ttlang_log(corpus("ttlang/v1_1_1_perf_summary.txt")).perf_summaries
    assert (exact.arch, exact.clock_mhz, exact.max_compute_cores) == (
        rounded.arch,
        rounded.clock_mhz,
        rounded.max_compute_cores,
    )
    for raw, one, other in zip(document["programs"], exact.programs, rounded.programs, strict=True):
        assert one.program_id == other.program_id == raw["program_id"]
        assert one.name == other.name == raw.get("name")
        assert list(one.grid) == list(other.grid) == raw["grid"]
        assert one.cores == other.cores == raw["num_cores"]
        assert one.duration.cycles == other.duration.cycles == raw["duration_cycles"]
        assert one.dram_channels == other.dram_channels == raw["dram_channels"]
        for field, written in [
            ("dram_read", "dram_bytes_read"),
            ("dram_write", "dram_bytes_written"),
        ]:
            near = getattr(other, field)
            assert getattr(one, field).bytes == raw[written]
            assert near.bytes == pytest.approx(raw[written], rel=0.05)
            assert near.transfers == getattr(one, field).transfers
        sizes = {size.bytes: size.transfers for size in one.transfer_sizes}
        assert sizes == {int(size): count for size, count in raw["transfer_sizes"].items()}


def test_a_trace_of_the_simulator() -> None:
    file = corpus("ttlang/sim/mm4_small.jsonl.gz")
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        text = stream.read()
    assert is_sim_trace(text)
    events = [json.loads(line) for line in text.splitlines()]
    names = Counter(event["event"] for event in events)
    counters = read_sim_trace(file).counters
    assert counters["events"] == len(events)
    assert counters["kernels"] == names["kernel_start"]
    assert counters["sim_ticks"] == max(event["tick"] for event in events)
    signs = {"kernel_block": -1, "kernel_unblock": 1}
    stalled = sum(signs.get(event["event"], 0) * event["tick"] for event in events)
    assert counters["sim_stall_ticks"] == stalled
    for way in ("read", "write"):
        tiles = sum(
            event["dram"]
            for event in events
            if event["event"] == "copy_end" and event["direction"] == way
        )
        assert counters[f"dram_{way}_tiles"] == tiles
    for event, counter in [("dfb_reserve_end", "dfb_reserves"), ("dfb_wait_end", "dfb_waits")]:
        assert counters[counter] == names[event]

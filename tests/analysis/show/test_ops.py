"""The table of ops: what a row says of an op, on real captures."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.analysis.readers.ops_csv import read_ops_csv
from tests.harness.captures import capture, op
from tests.harness.corpus import corpus

if TYPE_CHECKING:
    from pathlib import Path

    from tests.harness.project import Project


def rows_of(project: Project, name: str, *options: str) -> list[dict[str, Any]]:
    file = str(corpus(f"ops_perf/{name}.csv"))
    ran = project.cli("show", file, "--ops", "--format", "json", *options)
    assert ran.code == 0, ran.errors
    rows: list[dict[str, Any]] = json.loads(ran.text)["ops"]
    return rows


@pytest.mark.parametrize(
    ("name", "number", "expected"),
    [
        ("llama70b_final", 373, {
            "dtypes": "BF16 x BFP4 => BF16", "size": "32x8192x28672", "working_cores": 100,
            "memory": "L1 x DRAM => L1W/100", "config": "1D w2 sub 1x3 core 1x9 L1acc",
            "line": 420, "call": 381953, "category": "matmul", "bound_basis": "modelled",
        }),
        # Weights in all banks of DRAM: a core per bank computes, whatever the profiler counts.
        ("gemma_sliding_decode_final", 424, {
            "cores": 80, "working_cores": 8, "memory": "L1W x DRAMW => L1W/32",
            "config": "DS w3 core 1x4 L1acc",
        }),
        ("segformer_encoder_2025_02", 783, {
            "size": "16384x896x32", "dtypes": "BF16 x BF16 => BFP8",
            "config": "ABH 8/8 sub 8x1 ADB w7x7 s4x4 d1x1 p3,3",
        }),
        ("segformer_encoder_2024_10", 486, {"config": "ABH 8/8 sub 4x1 ADB w7x7 s4x4 d1x1 p3,3"}),
    ],
)  # fmt: skip
def test_a_row_says_how_an_op_is_set_up(
    project: Project, name: str, number: int, expected: dict[str, Any]
) -> None:
    row = next(row for row in rows_of(project, name) if row["number"] == number)
    assert {key: row[key] for key in expected} == expected


def test_a_sharded_elementwise_op_works_where_its_shards_are(project: Project) -> None:
    rows = rows_of(project, "llama70b_mc_final")
    adds = [row for row in rows if row["op"].startswith("BinaryNg") and "L1W/" in row["memory"]]
    shards = [int(row["memory"].rpartition("/")[2]) for row in adds]
    assert adds
    assert [row["working_cores"] for row in adds] == shards
    assert any(row["working_cores"] < row["cores"] for row in adds)


def test_shares_of_a_step_add_up(project: Project) -> None:
    steps: dict[object, float] = {}
    for row in rows_of(project, "falcon3_7b_tp4"):
        if row["share"] is not None:
            key = (row["region"], row["step"], row["device"])
            steps[key] = steps.get(key, 0.0) + row["share"]
    assert list(steps.values()) == pytest.approx([1.0] * len(steps))


@pytest.mark.parametrize("width", [80, 160])
def test_it_fits_and_uses_the_width(
    project: Project, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    file = str(corpus("ops_perf/llama70b_final.csv"))
    lines = project.cli("show", file, "--ops", "--region", "decode").text.splitlines()
    assert max(map(len, lines)) <= width
    heading = next(line for line in lines if "time µs" in line).split()
    assert {"%", "cores", "bound", "DRAM", "FLOP"} <= {*heading}
    assert ({"dtypes", "memory", "config"} <= {*heading}) is (width == 160)


@pytest.mark.parametrize(
    ("by", "field"), [("time", "kernel_ns"), ("gap", "gap_ns"), ("saving", "saving_ns")]
)
def test_ops_are_sorted(project: Project, by: str, field: str) -> None:
    found = [row[field] or 0.0 for row in rows_of(project, "qwen3_32b_bfp4", "--sort", by)]
    assert found == sorted(found, reverse=True)


def test_the_chip_follows_from_its_clock_and_may_be_named(project: Project) -> None:
    assert read_ops_csv(corpus("ops_perf/segformer_encoder_2024_10.csv")).arch == "wormhole_b0"
    assert read_ops_csv(corpus("ops_perf/oft_2025_09_v2.csv")).arch == "blackhole"
    p150 = rows_of(project, "bh_p100_dlv3")
    p100 = rows_of(project, "bh_p100_dlv3", "--board", "p100")
    least = [(a["least_ns"], b["least_ns"]) for a, b in zip(p150, p100, strict=True)]
    assert any(a and b and b > a for a, b in least)
    file = str(corpus("ops_perf/bh_p100_dlv3.csv"))
    refused = project.cli("show", file, "--ops", "--board", "n150")
    assert refused.code == 2
    assert "bh_p100_dlv3.csv is of blackhole" in refused.errors
    assert "add --ops" in project.cli("show", file, "--board", "p100").errors
    assert "n150, p100 or p150" in project.cli("check", file, "--board", "p999").errors


MEASURED = {
    "DRAM BW UTIL (%)": "71.0", "NOC UTIL (%)": "12.5", "ETH BW UTIL (%)": "3.0",
    "Avg FPU util on full grid (%)": "20.0", "HOST DURATION [ns]": "5200", "SUB DEVICE ID": "1",
}  # fmt: skip


def test_what_was_measured_comes_before_a_model(project: Project) -> None:
    text = capture(op("MatmulDeviceOperation", 60_000), op("MatmulDeviceOperation", 50_000))
    head, first, *others = csv.reader(io.StringIO(text))
    rows = [
        [*head, *MEASURED],
        [*first, *MEASURED.values()],
        *([*row, *[""] * 6] for row in others),
    ]
    lines = io.StringIO()
    csv.writer(lines).writerows(rows)
    (project.path / "counted.csv").write_text(lines.getvalue())
    found = json.loads(project.cli("show", "counted.csv", "--ops", "--format", "json").text)["ops"]
    keys = ("dram_fraction", "compute_fraction", "noc_fraction", "ethernet_fraction", "bound")
    assert [found[0][key] for key in keys] == [0.71, 0.2, 0.125, 0.03, "DRAM"]
    assert (found[0]["bound_basis"], found[0]["host_ns"], found[0]["sub_device"]) == (
        "measured", 5200.0, 1,
    )  # fmt: skip
    assert found[1]["bound_basis"] != "measured"


STREAMED = (
    "DEVICE ID,GLOBAL CALL COUNT,EXECUTION,CORE COUNT,DEVICE KERNEL START CYCLE,"
    "DEVICE KERNEL END CYCLE,DEVICE KERNEL DURATION [ns]\n"
)


def test_the_streaming_profiler_has_times_without_names(project: Project, tmp_path: Path) -> None:
    ran = ((1024, 0, 100), (2048, 0, 300), (3072, 0, 400), (2048, 1, 500), (3072, 1, 600))
    rows = sorted(ran)
    file = tmp_path / "ops.csv"
    file.write_text(STREAMED + "".join(f"0,{c},{e},64,{at},{at + 90},90\n" for c, e, at in rows))
    text = project.cli("show", str(file), "--ops").text
    assert "no names of ops, nor operands" in " ".join(text.split())
    assert text.index("call 2048") < text.index("call 3072")
    regions = json.loads(project.cli("show", str(file), "--format", "json").text)["regions"]
    assert [(one["basis"], one["steps"], one["ops"]) for one in regions] == [("replay", 2, 2)]

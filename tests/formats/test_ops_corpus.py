"""Real captures of every version, held against what pandas makes of the same files."""

from __future__ import annotations

import csv
import re
from statistics import median
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from pytest_ttnn_perf.analysis.ops.regions import most_common_duration, why_invalid, window
from pytest_ttnn_perf.analysis.readers.detect import op_table_of
from pytest_ttnn_perf.analysis.readers.device_csv import device_metrics, gated_ops
from pytest_ttnn_perf.analysis.readers.ops_csv import read_ops_csv
from pytest_ttnn_perf.core.metric import split_metric
from tests.analysis.rules.captures import TABLES
from tests.harness.captures import VARIETY
from tests.harness.corpus import corpus

if TYPE_CHECKING:
    from pathlib import Path

KERNEL = "DEVICE KERNEL DURATION [ns]"
GAP = "OP TO OP LATENCY [ns]"
TRACE, REPLAY = "METAL TRACE ID", "METAL TRACE REPLAY SESSION ID"


@pytest.fixture(params=VARIETY)
def file(request: pytest.FixtureRequest) -> Path:
    """Return one capture after another."""
    return corpus(request.param)


def frame_of(file: Path) -> Any:
    """Return a capture as pandas reads it, with a kernel time for the one file that has none."""
    frame = pd.read_csv(file, low_memory=False)
    if KERNEL not in frame:
        frame[KERNEL] = frame.filter(regex="DM FW|TRISC FW").max(axis=1)
    return frame


def test_rows_and_drops(file: Path) -> None:
    frame, table = frame_of(file), read_ops_csv(file)
    kinds = frame["OP TYPE"].value_counts().to_dict()
    device_rows = frame[~frame["OP TYPE"].isin(["signpost", "python_fallback"])]
    ghosts = int(device_rows[KERNEL].isna().sum())
    assert table.rows == len(frame)
    assert len(table.signposts) == kinds.get("signpost", 0)
    assert sum(table.columns.host) == kinds.get("python_fallback", 0)
    assert table.dropped == ({"no kernel duration": ghosts} if ghosts else {})
    assert len(table) + len(table.signposts) + sum(table.dropped.values()) == table.rows


def test_the_ops_beside_a_baseline_add_up_to_its_time(file: Path) -> None:
    table = read_ops_csv(file)
    metrics = [m for m in device_metrics(table, file=file.name) if m.gated]
    times = {split_metric(m.metric.name)[1]: m for m in metrics if m.metric.is_kernel_time}
    ops = gated_ops(table)
    if ops is None:
        assert [time.samples for time in times.values()] == [()]
        return
    assert set(ops.regions) == set(times)
    for region, time in times.items():
        total = sum(group.total_ns for group in ops.of(region).groups)
        assert total == pytest.approx(median(time.samples), rel=1e-9)


def test_columns_are_those_of_the_file(file: Path) -> None:
    frame, table = frame_of(file), read_ops_csv(file)
    kept = frame[frame[KERNEL].notna()]
    ops = [op for op in table if not op.host]
    assert [op.kernel_ns for op in ops] == kept[KERNEL].tolist()
    assert [op.signature.op for op in ops] == kept["OP CODE"].tolist()
    for name, field in (
        (GAP, "gap_ns"), ("DEVICE FW DURATION [ns]", "fw_ns"), ("CORE COUNT", "cores"),
        ("DEVICE FW START CYCLE", "start_cycle"), (TRACE, "trace"), (REPLAY, "replay"),
        ("MATH FIDELITY", "fidelity"),
    ):  # fmt: skip
        if name in kept:
            expected = [None if pd.isna(value) else value for value in kept[name]]
            assert [getattr(op, field) for op in ops] == expected
    ideal = kept["PM IDEAL [ns]"].tolist() if "PM IDEAL [ns]" in kept else [1] * len(kept)
    assert [op.ideal_ns for op in ops] == [None if value == 1 else value for value in ideal]
    texts = kept["ATTRIBUTES"].fillna("").replace("None", "").tolist()
    assert [op.attributes for op in ops] == texts


def test_operands_are_those_of_the_file(file: Path) -> None:
    frame, table = frame_of(file), read_ops_csv(file)
    kept = frame[frame[KERNEL].notna()]
    ops = [op for op in table if not op.host]
    for kind, operands in (("INPUT", "inputs"), ("OUTPUT", "outputs")):
        for number in range(len(frame.filter(regex=f"{kind}_[0-9]+_LAYOUT").columns)):
            columns = kept.filter(regex=f"^{kind}_{number}_")
            extents = columns.filter(regex="_[WZYX]($|_PAD)").to_numpy().tolist()
            shapes = [[_padded(cell) for cell in row] for row in extents]
            others = columns.filter(regex="_(LAYOUT|DATATYPE|MEMORY)$").to_numpy().tolist()
            for op, shape, other in zip(ops, shapes, others, strict=True):
                tensors = getattr(op.signature, operands)
                assert (number < len(tensors)) is not pd.isna(other[0])
                if number < len(tensors):
                    tensor = tensors[number]
                    assert list(tensor.padded) == shape
                    assert [tensor.layout, tensor.dtype] == other[:2]
                    assert re.fullmatch(rf"DEV_\d+_{tensor.memory}", other[2])


def _padded(cell: Any) -> int | None:
    return None if pd.isna(cell) else int(float(str(cell).partition("[")[0]))


def test_replays_and_whether_they_are_complete(file: Path) -> None:
    frame, table = frame_of(file), read_ops_csv(file)
    if REPLAY not in frame:
        assert table.traces == ()
        return
    traced = frame[frame[KERNEL].notna() & frame[TRACE].notna()]
    sequences = traced.groupby(["DEVICE ID", TRACE, REPLAY])["OP CODE"].agg(tuple)
    expected = [
        (int(device), int(trace), len(own), own.nunique() == 1)
        for (device, trace), own in sequences.groupby(level=[0, 1])
    ]
    assert [(t.device, t.trace, t.replays, t.complete) for t in table.traces] == expected


def test_windows_by_the_convention_of_names(file: Path) -> None:
    frame, table = frame_of(file), read_ops_csv(file)
    marks = frame[frame["OP TYPE"] == "signpost"]["OP CODE"]
    for name in {mark for mark in marks if f"{mark}_END" in set(marks)}:
        begin = marks[marks == name].index[0]
        end = marks[marks == f"{name}_END"].index[0]
        totals = frame.loc[begin:end].groupby("DEVICE ID")[KERNEL].sum()
        expected = {int(device): ns for device, ns in totals.to_dict().items() if ns}
        assert window(table, name, None).kernel_ns_by_device == expected


BROKEN = {
    "qwen27_incumbent_full_attention.csv": "12 of 33 complete",
    "qwen_27b_linear_incomplete_replays.csv": "10 of 15 complete",
}


@pytest.mark.parametrize("name", TABLES)
def test_every_real_capture(name: str) -> None:
    table = op_table_of(corpus(f"ops_perf/{name}"))
    flaw = why_invalid(table, name)
    lost = f"{name}: the replays of trace 0 on device 3 ran different ops: {BROKEN.get(name)}"
    assert flaw == (lost if name in BROKEN else None)
    alike = most_common_duration(table)
    assert alike is None or alike.share < 0.15


def test_a_report_of_kernel_durations_alone_is_valid(tmp_path: Path) -> None:
    """As tt-metal's device performance tests make them."""
    with corpus("ops_perf/llama_8b_final_decode.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    others = ("DEVICE F", "DEVICE B", "DEVICE N", "DEVICE T")
    kept = [name for name in rows[0] if not name.startswith(others)]
    file = tmp_path / "ops.csv"
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows({name: row[name] for name in kept} for row in rows)
    assert why_invalid(op_table_of(file), "ops.csv") is None

"""Analyses of meshes, of L1 and of command queues."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.captures.report_db import read_report_db
from pytest_ttnn_perf.analysis.checklist.analyses.placements import L1, MESH, OVERLAP
from pytest_ttnn_perf.records.finding import Analysis, AnalysisOutcome, Figure, Row, Subject
from pytest_ttnn_perf.records.ttnn_report import BufferType
from pytest_ttnn_perf.report.analysis import analysis_listing
from tests.formats.test_report_db_corpus import query
from tests.harness.corpus import corpus
from tests.rules.analyses import section, why_not_measured
from tests.rules.convolving import DEVICE
from tests.rules.reports import COPY, Operation, linear, placed, record, report
from tests.rules.tables import op, table

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.analyses.analysis import Kind


def numbered(text: str, number: int) -> str:
    return text.replace("device_id=1", f"tensor_id={number}, device_id=1")


def on_mesh(*texts: str) -> Analysis:
    texts = tuple(numbered(text, at) for at, text in enumerate(texts, start=1))
    calls = [
        replace(linear(at, texts[0], text), inputs=(1, at + 1))
        for at, text in enumerate(texts)
        if at
    ]
    tensors = [record(at, 4, 1, 32, 64) for at in range(1, len(texts) + 1)]
    return MESH.analysis(Subject(report=report(calls, tensors)))


def test_what_is_replicated_and_what_is_sharded() -> None:
    mesh = "2, 4"
    found = on_mesh(
        placed(mesh, "PlacementShard(0)", COPY),
        placed(mesh, COPY, "PlacementShard(3)"),
        placed(mesh, "PlacementShard(2)", "PlacementShard(3)"),
        placed(mesh, COPY, COPY),
    )
    of = "of the bytes on a device"
    size = 4 * 32 * 64 * 2.0
    assert found.figures == (
        Figure("the mesh is 2x4", 8, "devices"),
        Figure("weights that every device has a copy of", size, "B"),
    )
    kinds = {row.label for row in found.sections[0].rows}
    assert kinds == {
        "input, sharded: dim 0 over 2, 4 copies",
        "weight, sharded: dim 3 over 4, 2 copies",
        "weight, sharded: dim 2 over 2, dim 3 over 4",
        "weight, replicated",
    }
    assert {row.value for row in found.sections[1].rows} == {size}
    assert found.sections[1].of == of
    labels = [row.label for row in found.sections[1].rows]
    assert "replicated, weight of ttnn.linear 4x1x32x64 BFLOAT16" in labels


def test_one_device_is_no_mesh() -> None:
    found = on_mesh(placed("1", COPY), placed("1", COPY))
    assert found.outcome is AnalysisOutcome.NOT_APPLICABLE
    assert found.reason == "one device: nothing is spread over a mesh"


def test_calls_without_arguments_do_not_tell() -> None:
    reason = why_not_measured(MESH.analysis(Subject(report=report([Operation(1, "ttnn.add")]))))
    assert reason is not None
    assert reason.startswith("the report does not say how tensors are placed on the mesh")


CONV = Operation(
    1, "ttnn.conv2d", device_operations=("Conv2d",), cb_bytes_per_core=2_500,
    l1_by_core={(0, 0): 5_000, (1, 0): 1_000, (1, 1): 10},
)  # fmt: skip
RELU = Operation(2, "ttnn.relu", device_operations=("Unary",), bytes_per_bank={BufferType.L1: 100})
VIEW = Operation(3, "ttnn.reshape")


def l1_of(*operations: Operation) -> Analysis:
    return L1.analysis(Subject(report=replace(report(operations), devices=(DEVICE,))))


def test_l1_over_the_operations_and_by_core() -> None:
    found = l1_of(CONV, RELU, VIEW)

    assert found.figures[:2] == (
        Figure("most in use, at ttnn.conv2d", 7_500, "B"),
        Figure("left free there", 2_500, "B"),
    )
    assert found.picture == (
        "L1 of the fullest core, 9.766 KiB, at each operation",
        "= tensors, c circular buffers, ? unknown, . free",
        "    1 conv2d                 |================cccccccc........| 2.441 KiB free",
        "    2 relu                   |=?..............................| 9.668 KiB free",
        "",
        "% of L1 that tensors take on each core, at operation 1, ttnn.conv2d:",
        "        x0   x1",
        "  y0  50.0 10.0",
        "  y1     -  0.1",
    )
    tensors, circular, free, cores = found.sections
    assert tensors == section(
        "tensors, on the fullest core", "B", "of L1",
        ("ttnn.conv2d (operation 1)", 5_000, 0.5), ("ttnn.relu (operation 2)", 100, 0.01),
    )  # fmt: skip
    assert circular.rows == (Row("ttnn.conv2d (operation 1)", 2_500, 0.25),)
    assert [row.value for row in free.rows] == [2_500, 9_900]
    assert [row.label for row in cores.rows] == [
        f"ttnn.conv2d (operation 1), core {core}" for core in ("0-0", "1-0", "1-1")
    ]
    assert found.notes[0].startswith("circular buffers are not given by 1 of 2 operations")


def test_a_long_program_still_makes_a_picture() -> None:
    calls = [replace(RELU, id=at, bytes_per_bank={BufferType.L1: at}) for at in range(1, 401)]
    found = l1_of(*calls)
    lines = analysis_listing(found).text("table").splitlines()
    bars = [line for line in lines if "|" in line]
    assert (len(bars), len(found.sections[0].rows)) == (40, 400)
    assert bars[-1].startswith("  400 relu")
    assert "each line is the fullest of 10 operations; --format json lists all" in lines
    assert max(map(len, found.picture)) <= 80


def test_an_l1_that_is_more_than_full_stays_in_its_bar() -> None:
    full = l1_of(replace(CONV, l1_by_core={(0, 0): 99_999}))
    bar = next(line for line in full.picture if "|" in line)
    assert bar == f"    1 {'conv2d':<22} |{'=' * 32}|       0 B free"


@pytest.mark.parametrize("kind", [MESH, L1, OVERLAP], ids=lambda kind: kind.name)
def test_an_op_table_does_not_tell(kind: Kind) -> None:
    reason = why_not_measured(kind.analysis(Subject(ops=table(op("Add")))))
    assert reason is not None
    assert reason.startswith("needs a report database")


def test_a_report_that_does_not_tell_what_a_core_has() -> None:
    reason = why_not_measured(L1.analysis(Subject(report=report([CONV]))))
    assert reason == "the report does not say how much L1 a core has"


READ = Operation(3, "ttnn.to_torch", inputs=(1,), arguments={"cq_id": "1"})


def overlap_of(*operations: Operation) -> Analysis:
    return OVERLAP.analysis(Subject(report=report(operations, [record(1, 32, 32)])))


def test_command_queues_of_programs_and_transfers() -> None:
    found = overlap_of(replace(CONV, queues=(0, 0)), replace(RELU, queues=(0,)), READ)
    assert found.figures == (Figure("command queues in use", 2, "queues"),)
    assert found.sections == (
        section("programs", "programs", "of programs", ("queue 0", 3, 1.0)),
        section(
            "calls", "programs", "of programs",
            ("queue 0, ttnn.conv2d", 2, 2 / 3, 2), ("queue 0, ttnn.relu", 1, 1 / 3),
        ),
        section("transfers", "B", "of the bytes sent", ("to the host, queue 1", 2048.0, 1.0)),
    )  # fmt: skip
    assert found.notes[0] == "2 queues are in use: what is on different ones can overlap"
    assert found.notes[1].startswith("whether transfers and programs overlap: not measured")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"cq_id": "0"}, "all is on one queue, where each waits for the one before: nothing can"),
        ({}, "programs are on one queue; on which one transfers are is unknown: pass cq_id"),
    ],
    ids=["one", "unknown"],
)
def test_one_queue(arguments: dict[str, str], said: str) -> None:
    found = overlap_of(replace(CONV, queues=(0,)), replace(READ, arguments=arguments))
    assert found.notes[0].startswith(said)


def test_programs_that_do_not_name_their_queue() -> None:
    reason = why_not_measured(overlap_of(CONV))
    assert reason is not None
    assert reason.startswith("no program gives its command queue")


def test_a_real_report() -> None:
    file = corpus("report_db/cnn_small/db.sqlite")
    subject = Subject(report=read_report_db(file))
    cores = {
        f"{x}-{y}": size
        for x, y, size in query(
            file,
            "SELECT core_x, core_y, sum(chunk_size) FROM buffer_chunks "
            "WHERE operation_id = 9 AND buffer_type = 1 GROUP BY core_x, core_y",
        )
    }
    found = L1.analysis(subject)
    assert {
        row.label.rpartition("core ")[2]: row.value
        for row in found.sections[3].rows
        if "(operation 9)" in row.label
    } == cores
    assert max(map(len, found.picture)) <= 80
    ((programs,),) = query(file, "SELECT count(*) FROM operation_executions")
    assert OVERLAP.analysis(subject).sections[0].rows == (Row("queue 0", programs, 1.0),)

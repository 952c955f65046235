"""Analyses of real captures: each ends in numbers or a reason, and the numbers are the files'."""

from __future__ import annotations

from argparse import Namespace
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.analysis.show.groups import ANALYSES, AnalysisOutcome, analysis_listing
from pytest_ttnn_perf.cli.common import capture_of
from pytest_ttnn_perf.core.finding import Subject
from pytest_ttnn_perf.report.tables import Style
from tests.analysis.rules.captures import KERNEL, REPORTS, device_rows
from tests.analysis.rules.tables import op, table
from tests.formats.test_report_db_corpus import query
from tests.harness.corpus import corpus
from tests.harness.golden import assert_golden

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_ttnn_perf.analysis.show.groups import Analysis

FALCON, OFT = "falcon3_7b_tp4.csv", "blackhole_oft_conv.csv"
CLIP = "blackhole_clip_encoder.csv"
BYTES = {
    "FLOAT32": 4, "INT32": 4, "UINT32": 4, "BFLOAT16": 2, "UINT16": 2,
    "BFLOAT8_B": 1.0625, "BFLOAT4_B": 0.5625,
}  # fmt: skip


def operands_of(row: dict[str, str]) -> Iterator[tuple[str, list[int], str]]:
    """Yield the operands of a row: slot, padded shape, data type."""
    for column in [name for name in row if name.endswith("_DATATYPE") and row[name]]:
        slot = column.removesuffix("_DATATYPE")
        cells = [row[f"{slot}_{axis}_PAD[LOGICAL]"] for axis in "WZYX"]
        yield slot, [int(cell.partition("[")[0]) for cell in cells], row[column]


def subject_of(**artifacts: Any) -> Subject:
    """Return artifacts that are named as the options of the command name them."""
    names = ("csv", "db", "log", "start", "end", "region", "arch", "board")
    usual: dict[str, Any] = dict.fromkeys(names)
    usual["fact"] = []
    options = Namespace(**{**usual, **artifacts})
    return capture_of(options, []).read(options)


@cache
def captured(name: str) -> Subject:
    """Return a capture."""
    return subject_of(csv=corpus(f"ops_perf/{name}"))


def told(name: str, of: str) -> Analysis:
    """Return an analysis of a capture, which has to tell something."""
    analysis = ANALYSES[name].analysis(captured(of))
    assert analysis.outcome is AnalysisOutcome.MEASURED
    return analysis


def shares(analysis: Analysis, heading: str) -> Mapping[str, float]:
    """Return the shares of a section."""
    (section,) = (each for each in analysis.sections if each.heading == heading)
    return {row.label: row.share or 0.0 for row in section.rows}


def answered(subject: Subject) -> None:
    """Check that every analysis ends in numbers or in a reason, and can be shown."""
    for kind in ANALYSES.values():
        analysis = kind.analysis(subject)
        measured = analysis.outcome is AnalysisOutcome.MEASURED
        assert measured is bool(analysis.figures or analysis.sections), analysis
        assert measured is (analysis.reason is None), analysis
        assert all(section.rows for section in analysis.sections)
        listing = analysis_listing([("", analysis)])
        lines = listing.text("table", Style(100, wrap=True)).splitlines()
        assert all(len(line) <= 100 for line in lines)
        assert all(listing.text(shape) for shape in ("table", "json", "csv"))
        assert len(listing.rows) >= 1


def numbers(subject: Subject) -> Iterator[str]:
    """Yield what every analysis tells: the first rows of each section."""
    for kind in ANALYSES.values():
        analysis = kind.analysis(subject)
        yield f" {analysis.name} {analysis.outcome.value} {analysis.reason or ''}"
        yield from (f"  {each.label}: {each.value:.6g} {each.unit}" for each in analysis.figures)
        for section in analysis.sections:
            yield f"  {section.heading}, {section.unit} {section.of}, {len(section.rows)} rows"
            for row in section.rows[:3]:
                share = "" if row.share is None else f" {row.share:.6g}"
                yield f"    {row.label}: {row.value:.6g}{share} of {row.count}"


@pytest.mark.parametrize(
    ("kind", "files"),
    [
        ("csv", [f"ops_perf/{name}" for name in (FALCON, OFT, CLIP)]),
        ("db", [f"report_db/{name}" for name in REPORTS]),
    ],
)
def test_numbers_of_analyses(kind: str, files: list[str]) -> None:
    subjects = {file: subject_of(**{kind: corpus(file)}) for file in files}
    for subject in subjects.values():
        answered(subject)
    lines = [line for file, subject in subjects.items() for line in (file, *numbers(subject))]
    assert_golden(f"analyses_of_{kind}", "\n".join(lines))


@pytest.mark.parametrize("code", ["MatmulDeviceOperation", "Conv2dDeviceOperation", "Reshard", "X"])
@pytest.mark.parametrize("nanoseconds", [0.0, 100.0])
def test_every_analysis_of_an_op_that_tells_nothing(code: str, nanoseconds: float) -> None:
    silent = table(op(code, ns=nanoseconds, cores=None), available_cores=None, arch=None)
    answered(Subject(ops=silent))


@pytest.mark.parametrize("name", [FALCON, OFT])
def test_shares_of_data_formats(name: str) -> None:
    sizes: dict[str, float] = defaultdict(float)
    for row in device_rows(name):
        for _, (w, z, y, x), dtype in operands_of(row):
            sizes[dtype] += w * z * y * x * BYTES[dtype]
    total = sum(sizes.values())
    expected = {dtype: size / total for dtype, size in sizes.items()}
    assert shares(told("dtype", name), "operands") == pytest.approx(expected)


@pytest.mark.parametrize(("name", "used"), [(CLIP, 0.659), (FALCON, 0.301)])
def test_cores_weighted_by_time(name: str, used: float) -> None:
    rows = list(device_rows(name))
    time = sum(float(row[KERNEL]) for row in rows)
    working = sum(float(row[KERNEL]) * float(row["CORE COUNT"]) for row in rows)
    available = float(rows[0]["AVAILABLE WORKER CORE COUNT"])
    (found, *_) = (each.value for each in told("cores", name).figures)
    assert found == pytest.approx(working / (available * time))
    assert found == pytest.approx(used, abs=0.0005)


def test_l1_and_queues_are_those_of_the_report() -> None:
    file = corpus("report_db/cnn_small/db.sqlite")
    ((held,),) = query(
        file,
        "SELECT sum(max_size_per_bank) FROM buffers WHERE operation_id = 9 AND buffer_type = 1",
    )
    subject = subject_of(db=file)
    (operation,) = (each for each in subject.report.operations if each.id == 9)
    (row,) = (
        row
        for row in ANALYSES["l1"].analysis(subject).sections[-1].rows
        if "(operation 9)" in row.label
    )
    assert row.value == held + operation.cb_bytes_per_core
    ((programs,),) = query(file, "SELECT count(*) FROM operation_executions")
    queues = ANALYSES["queues"].analysis(subject).sections[-1]
    assert [(row.label, row.value) for row in queues.rows] == [("queue 0", programs)]

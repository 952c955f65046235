"""Which format a file has is told by its content."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.readers.detect import ArtifactKind, kind_of, read_run
from pytest_ttnn_perf.analysis.readers.graph import read_held
from pytest_ttnn_perf.analysis.readers.ops_csv import read_cpp_report, read_ops_csv
from pytest_ttnn_perf.analysis.readers.report_db import read_report_db
from pytest_ttnn_perf.analysis.readers.tt_smi import read_tt_smi
from pytest_ttnn_perf.analysis.readers.ttlang import read_perf_summary_json, read_ttlang_log
from pytest_ttnn_perf.analysis.readers.ttlang_sim import read_sim_trace
from pytest_ttnn_perf.core.errors import InputError
from tests.harness.corpus import captures, corpus

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TEXTS = {
    ArtifactKind.OPS_CSV: "OP CODE,OP TYPE,DEVICE ID,DEVICE KERNEL DURATION [ns]\n",
    ArtifactKind.RUN_RECORD: '{"format": 1, "tests": {}}',
    ArtifactKind.TTLANG_LOG: "some output before\n=== PERF SUMMARY ===\narch: blackhole\n",
}


@pytest.mark.parametrize("kind", TEXTS)
def test_a_text_is_known_by_what_it_begins_with(tmp_path: Path, kind: ArtifactKind) -> None:
    file = tmp_path / "any.name"
    file.write_text(TEXTS[kind])
    assert kind_of(file) is kind
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert kind_of(file) is kind


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "expected a capture or a run record, found an empty file"),
        (
            b"hello\n",
            "its format is not known; known formats: a run record, an ops_perf_results CSV",
        ),
        (
            b"ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000\n",
            "a profile_log_device CSV is not read: give",
        ),
        # What the profiler writes of a run without ops.
        (b"\r\n", "its format is not known; known formats: a run record"),
        (bytes(range(256)), "its format is not known; known formats: a run"),
        (b"\x1f\x8b" + b"x" * 30, "not a whole gzip file: Unknown compression method"),
        (gzip.compress(b"x" * 9999)[:-20], "not a whole gzip file: Compressed file ended before"),
    ],
    ids=[
        "empty",
        "text",
        "device log",
        "blank",
        "binary",
        "not packed",
        "packed and cut",
    ],  # packing stamps the time
)
def test_anything_else_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        kind_of(file)
    assert str(caught.value).startswith(f"{file}: {problem}")


@pytest.mark.parametrize(
    "read",
    [kind_of, read_ops_csv, read_cpp_report, read_held, read_report_db,
     read_ttlang_log, read_perf_summary_json, read_sim_trace, read_tt_smi],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_by_every_reader(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    for file, problem in (
        (tmp_path, "expected a file, found a folder"),
        (tmp_path / "none", "cannot read: No such file"),
    ):
        with pytest.raises(InputError, match=problem):
            read(file)


@pytest.mark.parametrize(
    ("pattern", "kind"),
    {
        "ops_perf/*.csv": ArtifactKind.OPS_CSV,
        "report_db/*/db.sqlite": ArtifactKind.REPORT_DB,
        "ttlang/*.txt": ArtifactKind.TTLANG_LOG,
        "ttlang/*.json": ArtifactKind.PERF_SUMMARY_JSON,
        "ttlang/sim/*.gz": ArtifactKind.SIM_TRACE,
    }.items(),
)
def test_every_capture_of_the_corpus_is_known(pattern: str, kind: ArtifactKind) -> None:
    names = captures(pattern)
    assert {name: kind_of(corpus(name)) for name in names} == dict.fromkeys(names, kind) != {}


def test_of_a_graph_capture_its_report_database_is_read() -> None:
    for name in captures("report_db/*/graph_capture.json"):
        for read in (kind_of, read_run):
            with pytest.raises(InputError, match=r"python -m ttnn\.graph_report \S+ FOLDER"):
                read(corpus(name))

"""Which format a file has is told by its content."""

from __future__ import annotations

import gzip
import sqlite3
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf._base.errors import InputError
from pytest_ttnn_perf.analysis.captures.detect import ArtifactKind, kind_of
from tests.harness.corpus import corpus, corpus_folder

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = {
    ArtifactKind.OPS_CSV: "OP CODE,OP TYPE,DEVICE ID,DEVICE KERNEL DURATION [ns]\n",
    ArtifactKind.DEVICE_LOG: "ARCH: wormhole_b0, CHIP_FREQ[MHz]: 1000, Max Compute Cores: 64\n",
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


def test_packed_files_are_looked_into(tmp_path: Path) -> None:
    file = tmp_path / "capture"
    file.write_bytes(gzip.compress(TEXTS[ArtifactKind.OPS_CSV].encode()))
    assert kind_of(file) is ArtifactKind.OPS_CSV


def test_a_database_is_known_by_its_magic(tmp_path: Path) -> None:
    file = tmp_path / "capture.csv"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE operations (operation_id INTEGER)")
    assert kind_of(file) is ArtifactKind.REPORT_DB


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "expected a capture or a run record, found an empty file"),
        (b"hello\n", "its content is none that is known: a run record, an ops_perf_results CSV"),
        (bytes(range(256)), "its content is none that is known"),
        (b"\x1f\x8b" + b"x" * 30, "cannot read: Unknown compression method"),
        (gzip.compress(b"x" * 9999)[:-20], "cannot read: Compressed file ended before"),
    ],
    ids=["empty", "text", "binary", "not packed", "packed and cut"],  # packing stamps the time
)
def test_anything_else_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        kind_of(file)
    assert str(caught.value).startswith(f"{file}: {problem}")


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected a file, found a folder"):
        kind_of(tmp_path)
    with pytest.raises(InputError, match="cannot read: No such file"):
        kind_of(tmp_path / "none")


def test_every_capture_of_the_corpus_is_known() -> None:
    corpus("ops_perf")
    folder = corpus_folder()
    expected = {
        "ops_perf/*.csv": ArtifactKind.OPS_CSV,
        "report_db/*/db.sqlite": ArtifactKind.REPORT_DB,
        "report_db/*/graph_capture.json": ArtifactKind.GRAPH_JSON,
        "ttlang/*.txt": ArtifactKind.TTLANG_LOG,
        "ttlang/*.json": ArtifactKind.PERF_SUMMARY_JSON,
        "ttlang/sim/*.gz": ArtifactKind.SIM_TRACE,
        "ttlang/sim/*.txt": ArtifactKind.SIM_STATS,
    }
    for pattern, kind in expected.items():
        files = sorted(folder.glob(pattern))
        assert files
        assert {file.name: kind_of(file) for file in files} == dict.fromkeys(
            [file.name for file in files], kind
        )

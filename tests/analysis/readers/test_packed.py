"""Any format is read as it is, or packed with gzip."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.analysis.readers.detect import kind_of
from pytest_ttnn_perf.analysis.readers.ops_csv import read_ops_csv
from pytest_ttnn_perf.analysis.readers.report_db import read_report_db
from pytest_ttnn_perf.core import files
from pytest_ttnn_perf.core.errors import InputError
from tests.harness.captures import capture, op
from tests.harness.corpus import corpus

if TYPE_CHECKING:
    from pathlib import Path


def packed(tmp_path: Path, content: bytes, name: str = "capture.csv.gz") -> Path:
    file = tmp_path / name
    file.write_bytes(gzip.compress(content))
    return file


def test_a_real_capture_is_read_packed(tmp_path: Path) -> None:
    plain = corpus("ops_perf/llama_8b_final_decode.csv")
    file = packed(tmp_path, plain.read_bytes(), plain.name)  # known by content, not by name
    assert kind_of(file) is kind_of(plain)
    assert read_ops_csv(file) == read_ops_csv(plain)


def test_what_is_cut_or_damaged(tmp_path: Path) -> None:
    whole = gzip.compress(capture(*[op("Matmul", ns) for ns in range(1, 5000)]).encode())
    file = tmp_path / "ops.csv.gz"
    file.write_bytes(whole[:-20])
    with pytest.raises(InputError, match=r"ops\.csv\.gz: not a whole gzip file: "):
        read_ops_csv(file)
    file.write_bytes(whole[:100] + b"\0" * 50 + whole[150:])
    with pytest.raises(InputError, match="not a whole gzip file: "):
        read_ops_csv(file)


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    file = packed(tmp_path, b"\n" * 2**22)
    with pytest.raises(InputError, match="it unpacks to more than 65,536 bytes"):
        files.read_text(file, most_bytes=2**16)


def test_a_database_is_to_be_unpacked_first(tmp_path: Path) -> None:
    file = packed(tmp_path, b"SQLite format 3\x00" + b"\0" * 200, "db.sqlite.gz")
    with pytest.raises(InputError, match=r"unpack it first, with `gunzip -k db\.sqlite\.gz`"):
        read_report_db(file)

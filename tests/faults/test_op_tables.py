"""Op tables beside baselines: written with them or not at all, and refused by their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import key_folder
from pytest_ttnn_perf.core.errors import InputError, WriteError
from pytest_ttnn_perf.core.files import write_bytes
from pytest_ttnn_perf.core.ops import OpGroup, OpGroups, Signature
from pytest_ttnn_perf.gate import store as store_module
from pytest_ttnn_perf.gate.store import BaselineStore, ops_text
from tests.faults.amender import FILE, HARDWARE, stored

if TYPE_CHECKING:
    from pathlib import Path

TEST = f"{FILE}::test_a"
HEADER = "op,inputs,outputs,cores,fidelity,settings,count,total_ns,median_ns,time"


def table(total_ns: float) -> OpGroups:
    return OpGroups("TIME", (OpGroup(Signature("Matmul"), 64, None, "", 1, total_ns, total_ns),))


def amend(root: Path, total_ns: float) -> None:
    baseline = replace(stored(int(total_ns)), op_table=table(total_ns))
    BaselineStore(root).amend_keys({HARDWARE: {TEST: lambda _: baseline}})


def ops_file(root: Path) -> Path:
    (file,) = key_folder(root, HARDWARE).rglob("*.csv")
    return file


@pytest.mark.parametrize("before", ["a table", "nothing"])
def test_a_baseline_that_cannot_be_written_leaves_its_table_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    if before == "a table":
        amend(tmp_path, 100.0)
    files = {file: file.read_bytes() for file in tmp_path.rglob("*.*") if file.is_file()}

    def refused(file: Path, content: bytes) -> None:
        if file.suffix == ".json":
            raise WriteError(file, OSError(28, "No space left on device"))
        write_bytes(file, content)

    (tmp_path / ".gitignore").touch()
    monkeypatch.setattr(store_module, "write_bytes", refused)
    with pytest.raises(WriteError, match="No space left on device"):
        amend(tmp_path, 200.0)

    kept = {file: file.read_bytes() for file in tmp_path.rglob("*.*") if file.is_file()}
    assert {file: text for file, text in kept.items() if file.name[0] != "."} == {
        file: text for file, text in files.items() if file.name[0] != "."
    }


def test_a_table_that_cannot_be_written_keeps_the_baseline(tmp_path: Path) -> None:
    amend(tmp_path, 100.0)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*.json")}
    folder = ops_file(tmp_path).parent
    ops_file(tmp_path).unlink()
    folder.rmdir()
    folder.write_text("a file in its place")

    with pytest.raises(WriteError, match=r"test_a\.csv: cannot write: "):
        amend(tmp_path, 200.0)

    assert {file: file.read_bytes() for file in tmp_path.rglob("*.json")} == before


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["op,count"], f"1: expected the columns {HEADER}"),
        ([HEADER, "Matmul,,,64"], "2: expected 10 cells, found 4"),
        (
            [HEADER, "Matmul,,,many,,,1,1,1,TIME"],
            "2: cores: expected a whole number of at least 0, found 'many'",
        ),
        (
            [HEADER, "Matmul,,,64,,,0,1,1,TIME"],
            "2: count: expected a whole number of at least 1, found 0",
        ),
        (
            [HEADER, "Matmul,,,64,,,1,-1,1,TIME"],
            "2: total_ns: expected a time of at least 0, found -1.0",
        ),
        (
            [HEADER, "Matmul,,,64,,,1,nan,1,TIME"],
            "2: total_ns: expected a finite number, found nan",
        ),
        ([HEADER, '"Matmul'], "2: unexpected end of data"),
    ],
)
def test_a_damaged_table_is_refused_with_its_line(
    tmp_path: Path, lines: list[str], problem: str
) -> None:
    amend(tmp_path, 100.0)
    file = ops_file(tmp_path)
    file.write_text("".join(f"{line}\n" for line in lines))

    with pytest.raises(InputError) as raised:
        BaselineStore(tmp_path).ops_of(HARDWARE, TEST)

    assert str(raised.value) == f"{file}:{problem}"


def test_a_table_is_as_it_was_written(tmp_path: Path) -> None:
    amend(tmp_path, 100.5)
    assert ops_file(tmp_path).read_text() == ops_text(table(100.5))
    assert BaselineStore(tmp_path).ops_of(HARDWARE, TEST) == table(100.5)
    assert BaselineStore(tmp_path).ops_of(HARDWARE, f"{FILE}::test_b") is None

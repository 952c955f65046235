"""Times of single cores: columns that many captures have, and few fill."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf._base.errors import InputError
from pytest_ttnn_perf.analysis.captures.cpp_report import read_cpp_report
from pytest_ttnn_perf.analysis.captures.ops_cells import PER_CORE
from pytest_ttnn_perf.analysis.captures.ops_rows import TimeCells, usual_times
from tests.unit.captures.ops_text import HEADER, fallback, op, read, signpost, text
from tests.unit.captures.test_cpp_report import HEADER as REPORT_HEADER
from tests.unit.captures.test_cpp_report import ROW as REPORT_ROW

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.records.ops import OpTable
    from tests.unit.captures.ops_text import Row

WITH_CORES = (*HEADER, *PER_CORE, "LAST")


def told(least: object, most: object, **cells: object) -> Row:
    """Return an op whose cores took at least and at most so long."""
    return {**op(**cells), PER_CORE[0]: str(least), PER_CORE[1]: str(most)}  # type: ignore[arg-type]


def cores(table: OpTable) -> list[tuple[float | None, float | None]]:
    return [(row.core_min_ns, row.core_max_ns) for row in table]


@pytest.mark.parametrize("header", [WITH_CORES, WITH_CORES[:-1]], ids=["inside", "at the end"])
def test_columns_that_are_filled(tmp_path: Path, header: tuple[str, ...]) -> None:
    rows = [told(1, 900), signpost("A"), fallback(), told(2.5, 990.5), op(kernel="")]
    table = read(tmp_path, text(rows, header=header))
    assert cores(table) == [(1.0, 900.0), (None, None), (2.5, 990.5)]


@pytest.mark.parametrize("header", [HEADER, WITH_CORES, (*HEADER, PER_CORE[0])])
def test_columns_that_are_empty_or_not_there(tmp_path: Path, header: tuple[str, ...]) -> None:
    rows = [op(), {**op(), PER_CORE[0]: ""}]
    table = read(tmp_path, text(rows, header=header))
    assert (table.columns.core_min_ns, table.columns.core_max_ns) == ((), ())
    assert cores(table.select([1])) == [(None, None)]


def test_one_column_without_the_other_tells_nothing(tmp_path: Path) -> None:
    table = read(tmp_path, text([told(1, 2)], header=(*HEADER, PER_CORE[0])))
    assert cores(table) == [(None, None)]


def test_some_rows_are_not_told(tmp_path: Path) -> None:
    rows = [told(1, 900), op(), told("nan", "None"), told(3, 800)]
    table = read(tmp_path, text(rows, header=WITH_CORES))
    assert cores(table) == [(1.0, 900.0), (None, None), (None, None), (3.0, 800.0)]
    assert table.columns.kernel_ns == [1000.0] * 4


def test_replays_and_windows_keep_each_op_with_its_own(tmp_path: Path) -> None:
    rows = [told(1, 10, trace=1, replay=1, cycle=9), told(2, 20, trace=1, replay=1, cycle=5)]
    table = read(tmp_path, text(rows, header=WITH_CORES))
    assert cores(table) == [(2.0, 20.0), (1.0, 10.0)]
    assert cores(table.select([1])) == [(1.0, 10.0)]


def test_what_is_no_number_is_refused_with_its_column_and_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"csv:3: .*PER CORE MAX .*found 'fast'"):
        read(tmp_path, text([told(1, 2), told(1, "fast")], header=WITH_CORES))


def test_the_report_of_a_device(tmp_path: Path) -> None:
    def report(*values: str) -> OpTable:
        file = tmp_path / "cpp_device_perf_report.csv"
        header = f"{REPORT_HEADER.strip()},{','.join(PER_CORE)}\n"
        rows = "".join(f"{REPORT_ROW.strip()},{value}\n" for value in values)
        file.write_text(header + rows)
        return read_cpp_report(file)

    assert cores(report("5,900", ",")) == [(5.0, 900.0), (None, None)]
    assert report(",").columns.core_max_ns == ()


def test_empty_columns_do_not_make_reading_slow() -> None:
    cells = TimeCells([b"9"], [], [], [], [b""], [b""])
    assert usual_times(cells) is not None  # otherwise rows are read one by one

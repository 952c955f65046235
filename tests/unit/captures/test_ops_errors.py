"""A file that is not a whole ops CSV is refused with the place, and never half read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf._base.errors import InputError
from pytest_ttnn_perf.analysis.captures import ops_csv as ops_records
from tests.unit.captures.ops_text import HEADER, KERNEL, op, read, tensor, tensor_columns, text

if TYPE_CHECKING:
    from pathlib import Path

LEAST = ("OP CODE", "OP TYPE", "DEVICE ID", KERNEL)
GOOD = op() | tensor("INPUT_0", "1[1]", "1[1]", "1[1]", "1[1]")


def refusal(folder: Path, content: str | bytes) -> str:
    """Return what is wrong with a file, without its folder."""
    with pytest.raises(InputError) as caught:
        read(folder, content)
    return str(caught.value).removeprefix(f"{folder / 'ops_perf_results.csv'}:").lstrip()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "1: the file is empty"),
        (b"\n\n", "1: expected a header, found an empty line"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "1: not a CSV file: no line of column names"),
        (b"\xff\xfeO\x00P\x00", "1: not a CSV file: no line of column names"),
        (b"caf\xe9,b\n", "1: expected UTF-8 text, found other bytes: "),
        (b"x" * 2**20, "1: not a CSV file: no line of column names"),
        (b'{"format": 1}', "1: not an ops CSV: expected columns 'OP CODE' and 'OP TYPE' in the"),
        (b"OP CODE,ID\n", "1: not an ops CSV: expected columns 'OP CODE' and 'OP TYPE' in the"),
        (
            b"GLOBAL CALL COUNT,DEVICE FW DURATION [ns]\n1,2\n",
            "1: a report of the device alone, without op names: profile with the host's data",
        ),
    ],
)
def test_not_an_ops_csv(tmp_path: Path, content: bytes, problem: str) -> None:
    assert refusal(tmp_path, content).startswith(problem)


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (("OP CODE", "OP TYPE", KERNEL), "1: expected a column 'DEVICE ID' in the header"),
        (
            ("OP CODE", "OP TYPE", "DEVICE ID"),
            f"1: expected a column {KERNEL!r} in the header, found no time at all",
        ),
        ((*LEAST, "A", "B", "A"), "1: the column 'A' stands twice in the header"),
        (
            (*LEAST, "MATH FIDELITY", "MATH FIDELITY "),
            "1: the column 'MATH FIDELITY' stands twice in the header",
        ),
    ],
)
def test_a_header_that_cannot_be_used(
    tmp_path: Path, header: tuple[str, ...], problem: str
) -> None:
    assert refusal(tmp_path, text([op()], header=header)) == problem


def test_no_rows_are_nothing_captured(tmp_path: Path) -> None:
    assert refusal(tmp_path, text([])) == "no rows below the header: nothing was captured"
    assert refusal(tmp_path, text([]) + "\r\n\r\n").startswith("no rows below the header")


@pytest.mark.parametrize(
    ("column", "cell", "problem"),
    [
        (KERNEL, "fast", "expected a number, found 'fast'"),
        (KERNEL, "inf", "expected a number, found 'inf'"),
        (KERNEL, "1e101", "expected a number, found '1e101'"),
        ("DEVICE FW DURATION [ns]", "a" * 99, f"expected a number, found '{'a' * 40}…'"),
        ("OP TO OP LATENCY [ns]", "-inf", "expected a number, found '-inf'"),
        ("DEVICE FW START CYCLE", "1.5", "expected a whole number, found '1.5'"),
        ("DEVICE FW START CYCLE", "9" * 200, f"expected a number, found '{'9' * 40}…'"),
        ("DEVICE ID", "-1", "expected a number from 0, found -1"),
        ("DEVICE ID", "0.5", "expected a whole number, found '0.5'"),
        ("CORE COUNT", "x", "expected a number, found 'x'"),
        ("PM IDEAL [ns]", "[1]", "expected a number, found '[1]'"),
        ("METAL TRACE ID", "t", "expected a number, found 't'"),
        ("METAL TRACE REPLAY SESSION ID", "r", "expected a number, found 'r'"),
        ("INPUT_0_W_PAD[LOGICAL]", "wide", "expected an extent such as 448[147], found 'wide'"),
        ("INPUT_0_X_PAD[LOGICAL]", "", "expected an extent such as 448[147], found ''"),
        ("INPUT_0_X_PAD[LOGICAL]", "-1", "expected an extent such as 448[147], found '-1'"),
        ("INPUT_0_X_PAD[LOGICAL]", "9" * 30, "expected an extent such as 448[147], found '999"),
    ],
)
@pytest.mark.parametrize("before", [0, 1, 150])
def test_a_wrong_value_is_named_with_its_line(
    tmp_path: Path, column: str, cell: str, problem: str, before: int
) -> None:
    rows = [*[GOOD] * before, GOOD | {column: cell}, GOOD]
    name = "INPUT_0" if column.startswith("INPUT_0") else column
    assert refusal(tmp_path, text(rows)).startswith(f"{before + 2}: {name}: {problem}")


def test_the_line_is_right_below_cells_of_several_lines(tmp_path: Path) -> None:
    rows = [op(attributes="a\nb\nc"), op(kernel="", attributes="d\ne"), GOOD, op(kernel="x")]
    assert refusal(tmp_path, text(rows, end="\n")).startswith("8: ")


def test_a_wrong_value_in_a_column_of_quasar(tmp_path: Path) -> None:
    names = ("DEVICE DM FW DURATION [ns]", "DEVICE TRISC FW DURATION [ns]")
    row = op() | {names[0]: "5", names[1]: "x"}
    found = refusal(tmp_path, text([row], header=(*LEAST[:3], *names, "END")))
    assert found == f"2: {names[0]}: expected a number, found 'x'"


@pytest.mark.parametrize("header", [HEADER, (*LEAST, "A", *tensor_columns("INPUT_0")), LEAST])
@pytest.mark.parametrize("change", [-1, 1])
def test_a_row_of_another_width(tmp_path: Path, header: tuple[str, ...], change: int) -> None:
    first, row = text([GOOD], header=header, end="\n").splitlines()
    other = row + ",more" if change > 0 else row.rpartition(",")[0]
    width = len(header)
    found = refusal(tmp_path, "\n".join([first, row, other, row, ""]))
    assert found == f"3: expected {width} values as in the header, found {width + change}"


def test_a_cut_last_line(tmp_path: Path) -> None:
    whole = text([GOOD, GOOD])
    found = refusal(tmp_path, whole[: whole.rindex("DEV_1")])
    assert re.fullmatch(r"3: the file is cut: its last line has 20 of 38 values", found)


def test_a_last_value_that_may_be_cut(tmp_path: Path) -> None:
    found = refusal(tmp_path, text([op(kernel=4800)], header=LEAST).rstrip()[:-1])
    assert found == "2: the last line has no line end, so its last value may be cut off"


def test_a_quote_that_is_never_closed(tmp_path: Path) -> None:
    whole = text([GOOD, op(attributes='x "y"'), GOOD])
    found = refusal(tmp_path, whole.replace('"x ""y"""', '"x ""y""'))
    assert found == "3: a quote opens here and is never closed: the file is cut or damaged"


def test_a_line_without_end_is_not_swallowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ops_records, "LONGEST_RECORD", 10_000)
    found = refusal(tmp_path, text([GOOD, op(attributes="x" * 20_000), GOOD]))
    assert found == "3: a line of more than 10,000 bytes"
    found = refusal(tmp_path, text([GOOD, op(attributes='"' + "x\n" * 20_000), GOOD]))
    assert found == "3: a quote opens here and is never closed: the file is cut or damaged"


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    content = text([GOOD, op(attributes="?!"), GOOD]).encode().replace(b"?!", b"\xe9")
    assert refusal(tmp_path, content).startswith(
        "3: ATTRIBUTES: expected UTF-8 text, found other bytes: "
    )
    content = text([op("?!")]).encode().replace(b"?!", b"\xe9")
    assert refusal(tmp_path, content).startswith(
        "2: OP CODE: expected UTF-8 text, found other bytes: "
    )

"""Captures of ops: what they tell, and what is wrong with those that cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.core.errors import InputError
from pytest_ttnn_perf.core.ops import HOST, Op, Signature, Tensor, Unread
from tests.analysis.readers.ops_text import (
    HEADER,
    KERNEL,
    fallback,
    op,
    read,
    signpost,
    tensor,
    tensor_columns,
    text,
)

if TYPE_CHECKING:
    from pathlib import Path


DRAM = "DRAM_INTERLEAVED"


def test_an_op_with_all_it_says(tmp_path: Path) -> None:
    row = op(
        "MatmulDeviceOperation", kernel=4800, device=3, fw=5000, gap=-12, cycle=12482573256535,
        device_arch="WORMHOLE_B0", attributes="{'a': '1'; 'b': \"2\"}", math_fidelity="HiFi2",
        core_count=64, available_worker_core_count=72, trace=7, replay=2, ideal=1190,
    )  # fmt: skip
    row |= tensor("INPUT_0", "1[1]", "1[1]", "448[147]", "32[32]")
    row |= tensor("OUTPUT_0", "1[1]", "1[1]", "448[147]", "64[64]", memory="DEV_12_L1_INTERLEAVED")
    table = read(tmp_path, text([row]))
    first = Tensor((1, 1, 448, 32), (1, 1, 147, 32), "TILE", "BFLOAT16", DRAM)
    result = Tensor((1, 1, 448, 64), (1, 1, 147, 64), "TILE", "BFLOAT16", "L1_INTERLEAVED")
    assert list(table) == [
        Op(
            signature=Signature("MatmulDeviceOperation", (first,), (result,)),
            device=3,
            kernel_ns=4800.0,
            fw_ns=5000.0,
            gap_ns=-12.0,
            ideal_ns=1190.0,
            cores=64,
            fidelity="HiFi2",
            attributes="{'a': '1'; 'b': \"2\"}",
            trace=7,
            replay=2,
            start_cycle=12482573256535,
            host=False,
            number=1,
            line=2,
            call=table.op(0).call,
        )
    ]
    assert (table.format, table.rows, table.dropped) == ("v2.1", 1, {})
    assert (table.arch, table.available_cores) == ("wormhole_b0", 72)
    assert table.kernel_time == KERNEL
    assert table.devices == (3,)


def test_the_first_version_wrote_padded_extents_alone(tmp_path: Path) -> None:
    columns = tensor_columns("INPUT_0", suffix="")
    row = op() | tensor("INPUT_0", "1.0", "12", "384.0", "768.0", suffix="")
    table = read(
        tmp_path, text([row], header=("OP CODE", "OP TYPE", "DEVICE ID", KERNEL, *columns))
    )
    assert table.format == "v1"
    (only,) = table.signatures
    assert only.inputs == (Tensor((1, 12, 384, 768), None, "TILE", "BFLOAT16", DRAM),)


def test_operands_are_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    names = [f"INPUT_{number}" for number in (10, 2, 0, 1)]
    header = ("OP CODE", "OP TYPE", "DEVICE ID", KERNEL, *sum(map(tensor_columns, names), ()))
    row = op()
    for number in (0, 2, 10):
        row |= tensor(f"INPUT_{number}", "1[1]", "1[1]", "1[1]", f"{number}[{number}]")
    (signature,) = read(tmp_path, text([row], header=header)).signatures
    assert [tensor.padded[3:] for tensor in signature.inputs] == [(0,), (), (2,), (10,)]


@pytest.mark.parametrize("nothing", ["", "None", "nan", "NaN", " "])
def test_a_number_may_be_left_out_in_several_words(tmp_path: Path, nothing: str) -> None:
    row = op(fw=nothing, gap=nothing, cycle=nothing, core_count=nothing, trace=nothing)
    only = read(tmp_path, text([row])).op(0)
    assert only[3:5] == (None, None)
    assert (only.start_cycle, only.cores, only.trace) == (None, None, None)


def test_what_rows_disagree_on_is_not_said_of_the_capture(tmp_path: Path) -> None:
    rows = [op(device_arch=arch, available_worker_core_count=n) for arch, n in (("a", 1), ("b", 2))]
    table = read(tmp_path, text(rows))
    assert (table.arch, table.available_cores) == (None, None)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (op(kernel=""), "no kernel duration"),
        (op(device=""), "no device"),
        (op(kernel=-1), "negative kernel duration"),
        (op(kernel=100, gap=-1_000_001), "impossible gap"),
        (op(kernel=100, gap=-1_000_000), None),
        (op(kernel=4_000_000, gap=-2_000_000), None),
        (op(kernel=4_000_000, gap=-2_000_001), "impossible gap"),
        (op(kernel=0), "kernel duration of 0"),
    ],
)
def test_a_row_is_an_op_or_counted_by_its_reason(
    tmp_path: Path, row: dict[str, str], reason: str | None
) -> None:
    table = read(tmp_path, text([op("Other"), row, op("Other")]))
    assert table.dropped == ({} if reason is None else {reason: 1})
    assert table.rows == len(table) + sum(table.dropped.values()) == 3
    assert [only.signature.op for only in table][:: len(table) - 1] == ["Other", "Other"]


def test_ops_of_a_device_without_a_time_are_told_by_their_lines(tmp_path: Path) -> None:
    rows = [op(), op(kernel=-1), signpost("S"), op(kernel=""), fallback(), op(device="")]
    unknown = op(kernel="", device="") | {"OP TYPE": "unknown"}
    assert read(tmp_path, text([*rows, unknown])).unread == (
        Unread(3, "negative kernel duration", 0),
        Unread(5, "no kernel duration", 1),
        Unread(7, "no device", 1),
    )


@pytest.mark.parametrize(
    ("other", "excused"),
    [
        ({}, True),
        ({"global_call_count": 8}, False),
        ({"device": 1}, False),
        ({"cycle": 5}, False),
        ({"trace": 0, "replay": 3}, False),
        ({"code": "Softmax"}, False),
    ],
    ids=["recorded", "another call", "another device", "began", "replayed", "another op"],
)
def test_what_a_trace_recorded_and_its_replays_ran_rightly_has_no_time(
    tmp_path: Path, other: dict[str, Any], excused: bool
) -> None:
    recorded = op(**{"kernel": "", "cycle": "", "global_call_count": 7, **other})
    replays = [op(trace=0, replay=number, global_call_count=7) for number in (1, 2)]
    assert (read(tmp_path, text([recorded, *replays])).unread == ()) is excused


def test_a_fallback_on_the_host_is_an_op_without_device(tmp_path: Path) -> None:
    table = read(tmp_path, text([op(device=1, kernel=5), fallback(), op(device=0, kernel=7)]))
    host = table.op(1)
    assert (host.signature, host.host) == (Signature("(torch) cat"), True)
    assert (host.device, host.kernel_ns, host.fw_ns, host.attributes) == (HOST, 0.0, None, "")
    assert table.devices == (0, 1)
    assert table.kernel_ns_by_device == {0: 7.0, 1: 5.0}
    assert table.dropped == {}


def test_empty_lines_are_no_rows(tmp_path: Path) -> None:
    lines = text([op(), op()], end="\n").splitlines()
    table = read(tmp_path, "\n".join([lines[0], "", lines[1], "", "", lines[2], "", ""]))
    assert (table.rows, len(table)) == (2, 2)


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
        (b"\n\n", "1: not a CSV file: no line of column names"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "1: not a CSV file: no line of column names"),
        (b"caf\xe9,b\n", "1: expected UTF-8 text, found other bytes: "),
        (b'{"format": 1}', "1: not an ops CSV: expected columns 'OP CODE' and 'OP TYPE' in the"),
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
        ((*LEAST, "A", "B", "A"), "1: the column 'A' appears twice in the header"),
        (
            (*LEAST, "MATH FIDELITY", "MATH FIDELITY "),
            "1: the column 'MATH FIDELITY' appears twice in the header",
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
        (KERNEL, "1e101", "expected a number, found '1e101'"),
        ("DEVICE FW DURATION [ns]", "a" * 99, f"expected a number, found '{'a' * 40}…'"),
        ("DEVICE FW START CYCLE", "1.5", "expected a whole number, found '1.5'"),
        ("DEVICE FW START CYCLE", "9" * 200, f"expected a number, found '{'9' * 40}…'"),
        ("DEVICE ID", "-1", "expected a number from 0, found -1"),
        ("PM IDEAL [ns]", "[1]", "expected a number, found '[1]'"),
        ("INPUT_0_W_PAD[LOGICAL]", "wide", "expected an extent such as 448[147], found 'wide'"),
        ("INPUT_0_X_PAD[LOGICAL]", "", "expected an extent such as 448[147], found ''"),
        ("INPUT_0_X_PAD[LOGICAL]", "9" * 30, "expected an extent such as 448[147], found '999"),
    ],
)
def test_a_wrong_value_is_named_with_its_line(
    tmp_path: Path, column: str, cell: str, problem: str
) -> None:
    rows = [GOOD, GOOD | {column: cell}, GOOD]
    name = "INPUT_0" if column.startswith("INPUT_0") else column
    assert refusal(tmp_path, text(rows)).startswith(f"3: {name}: {problem}")


def test_the_line_is_right_below_cells_of_several_lines(tmp_path: Path) -> None:
    rows = [op(attributes="a\nb\nc"), op(kernel="", attributes="d\ne"), GOOD, op(kernel="x")]
    assert refusal(tmp_path, text(rows, end="\n")).startswith("8: ")


@pytest.mark.parametrize("header", [HEADER, (*LEAST, "A", *tensor_columns("INPUT_0")), LEAST])
@pytest.mark.parametrize("change", [-1, 1])
def test_a_row_of_another_width(tmp_path: Path, header: tuple[str, ...], change: int) -> None:
    first, row = text([GOOD], header=header, end="\n").splitlines()
    other = row + ",more" if change > 0 else row.rpartition(",")[0]
    width = len(header)
    found = refusal(tmp_path, "\n".join([first, row, other, row, ""]))
    assert found == f"3: expected {width} values as in the header, found {width + change}"


def test_a_last_value_that_may_be_cut(tmp_path: Path) -> None:
    found = refusal(tmp_path, text([op(kernel=4800)], header=LEAST).rstrip()[:-1])
    assert found == "2: the last line has no line end, so its last value may be cut off"


def test_a_quote_that_is_never_closed(tmp_path: Path) -> None:
    whole = text([GOOD, op(attributes='x "y"'), GOOD])
    found = refusal(tmp_path, whole.replace('"x ""y"""', '"x ""y""'))
    assert found == "3: a quote opens here and is never closed: the file is cut or damaged"


def test_a_value_without_end_is_not_swallowed(tmp_path: Path) -> None:
    found = refusal(tmp_path, text([GOOD, op(attributes="x, y" * 50_000), GOOD]))
    assert found == "3: not a CSV file: field larger than field limit (131072)"
    found = refusal(tmp_path, text([GOOD, op(attributes='"' + "x\n" * 100_000), GOOD]))
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

"""The profiler's ``cpp_device_perf_report.csv``: device times without anything from the host."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from pytest_ttnn_perf._base.errors import InputError
from pytest_ttnn_perf._base.files import reading, unpacked
from pytest_ttnn_perf.analysis.captures.ops_cells import (
    PER_CORE,
    CellError,
    count,
    in_column,
    number,
    text,
    whole,
)
from pytest_ttnn_perf.analysis.captures.ops_rows import (
    TimesOfOne,
    in_replay_order,
    reason_to_drop,
    unless_blank,
)
from pytest_ttnn_perf.records.ops import Columns, OpTable, Signature, Unread

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


_OP: Final = "OP NAME"
_DEVICE: Final = "DEVICE ID"
_KERNEL: Final = "DEVICE KERNEL DURATION [ns]"
_REQUIRED: Final = ("GLOBAL CALL COUNT", _DEVICE, _OP, _KERNEL)
_START_CYCLES: Final = ("DEVICE FW START CYCLE", "DEVICE KERNEL START CYCLE")
_LONGEST_LINE: Final = 2**16


def is_cpp_report(head: str) -> bool:
    """Return whether a text begins as such a report does: by its first line."""
    return _is_header(_names(head.partition("\n")[0]))


def _names(line: str) -> list[str]:
    return [name.strip() for name in line.removeprefix("\ufeff").split(",")]


def _is_header(names: list[str]) -> bool:
    # An ops CSV has most of these columns too, and a code instead of a name.
    return all(name in names for name in _REQUIRED) and "OP CODE" not in names


def read_cpp_report(file: Path) -> OpTable:
    """Read a report into an op table: no operands, attributes or fidelities are in it.

    Raises:
        InputError: with file and line; also for a file that is cut, or has no row.
    """
    with reading(file), unpacked(file) as stream:
        return _read(file, stream)


class _Row(NamedTuple):
    """An op of the report."""

    op: str
    device: int
    kernel_ns: float | None
    fw_ns: float | None
    gap_ns: float | None
    cores: int | None
    trace: int | None
    replay: int | None
    start_cycle: int | None
    arch: str
    available_cores: int | None
    core_min_ns: float | None
    core_max_ns: float | None


def _read(file: Path, stream: BinaryIO) -> OpTable:
    header = stream.readline(_LONGEST_LINE)
    if not header.strip():
        raise InputError(file, "the file is empty" if not header else "expected a header", line=1)
    names = _names(header.decode("utf-8", "replace"))
    if not _is_header(names):
        problem = f"expected a header with {', '.join(_REQUIRED)}: no device perf report"
        raise InputError(file, problem, line=1)
    rows: list[_Row] = []
    line_number = 1
    while line := stream.readline(_LONGEST_LINE):
        line_number += 1
        try:
            rows.append(_row(line, names))
        except CellError as cause:
            raise InputError(file, str(cause), line=line_number) from cause
    if not rows:
        raise InputError(file, "no rows below the header: nothing was captured")
    return _table(rows)


def _row(line: bytes, names: list[str]) -> _Row:
    cells = line.rstrip(b"\r\n").split(b",")
    if not line.endswith(b"\n"):
        message = "the last line has no line end: the file is cut, or no report"
        raise CellError(message)
    if len(cells) != len(names):
        message = f"expected {len(names)} values as in the header, found {len(cells)}"
        raise CellError(message)
    by_name = dict(zip(names, cells, strict=True))

    def read(name: str, as_: Callable[[bytes], float | None]) -> float | None:
        return in_column(name, as_, by_name.get(name, b""))

    def integer(name: str, as_: Callable[[bytes], int | None] = count) -> int | None:
        return in_column(name, as_, by_name.get(name, b""))

    device = integer(_DEVICE)
    if device is None:
        message = f"{_DEVICE}: expected a number, found nothing"
        raise CellError(message)
    cycles = [integer(name) for name in _START_CYCLES]
    return _Row(
        in_column(_OP, text, by_name[_OP]).strip(),
        device,
        read(_KERNEL, number),
        read("DEVICE FW DURATION [ns]", number),
        read("OP TO OP LATENCY [ns]", number),
        integer("CORE COUNT"),
        integer("METAL TRACE ID", whole),
        integer("METAL TRACE REPLAY SESSION ID", whole),
        next((cycle for cycle in cycles if cycle is not None), None),
        text(by_name.get("DEVICE ARCH", b"")).strip().lower(),
        integer("AVAILABLE WORKER CORE COUNT"),
        *(read(name, number) for name in PER_CORE),
    )


def _table(rows: list[_Row]) -> OpTable:
    reasons = [reason_to_drop(TimesOfOne(row.kernel_ns)) for row in rows]
    unread = [Unread(line, why) for line, why in enumerate(reasons, start=2) if why is not None]
    ops = [row for row, why in zip(rows, reasons, strict=True) if why is None]
    numbers: dict[str, int] = {}
    nothing = [-1] * len(ops)
    columns, traces = in_replay_order(
        Columns(
            signature=[numbers.setdefault(row.op, len(numbers)) for row in ops],
            device=[row.device for row in ops],
            kernel_ns=[row.kernel_ns or 0.0 for row in ops],
            fw_ns=[row.fw_ns for row in ops],
            gap_ns=[row.gap_ns for row in ops],
            ideal_ns=[None] * len(ops),
            cores=[row.cores for row in ops],
            fidelity=nothing,
            attributes=nothing,
            trace=[row.trace for row in ops],
            replay=[row.replay for row in ops],
            start_cycle=[row.start_cycle for row in ops],
            host=[False] * len(ops),
            core_min_ns=unless_blank([row.core_min_ns for row in ops]),
            core_max_ns=unless_blank([row.core_max_ns for row in ops]),
        )
    )
    return OpTable(
        format="cpp device report",
        rows=len(rows),
        columns=columns,
        signatures=[Signature(op) for op in numbers],
        traces=traces,
        dropped=Counter(row.reason for row in unread),
        unread=tuple(unread),
        arch=next((row.arch for row in rows if row.arch), None),
        available_cores=max((row.available_cores or 0 for row in rows), default=0) or None,
    )

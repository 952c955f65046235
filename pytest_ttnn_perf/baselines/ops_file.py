"""The op table beside a baseline: a CSV that a diff can be read of."""

from __future__ import annotations

import contextlib
import csv
import io
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.atomic import write_text
from pytest_ttnn_perf._support.errors import DecodeError, InputError, WriteError
from pytest_ttnn_perf._support.json_text import read_text
from pytest_ttnn_perf.model.encoding.op_groups import COLUMNS, decode_group, group_cells
from pytest_ttnn_perf.model.encoding.value import Value
from pytest_ttnn_perf.model.op_groups import OpGroups

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

#: The last column names the profiler's column that the times are from; it is the same in all rows.
_HEADER: Final = (*COLUMNS, "time")
_TEXTS: Final = frozenset({"op", "inputs", "outputs", "settings"})
_WHOLE: Final = frozenset({"cores", "count"})


def ops_text(ops: OpGroups) -> str:
    """Lay groups out, a line for each."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_HEADER)
    for group in ops.groups:
        writer.writerow([*map(_shortest, group_cells(group)), ops.kernel_time])
    return text.getvalue()


def read_ops_file(file: Path) -> OpGroups:
    """Read the groups beside a baseline.

    Raises:
        InputError: with file, line and what was expected.
    """
    reader = csv.reader(io.StringIO(read_text(file)), strict=True)
    groups, kernel_time = [], ""
    try:
        header = next(reader, [])
        if tuple(header) != _HEADER:
            raise InputError(file, f"expected the columns {','.join(_HEADER)}", line=1)
        for row in reader:
            if len(row) != len(_HEADER):
                problem = f"expected {len(_HEADER)} cells, found {len(row)}"
                raise InputError(file, problem, line=reader.line_num)
            *cells, kernel_time = row
            groups.append(decode_group(Value(list(map(_parsed, COLUMNS, cells)))))
    except csv.Error as cause:
        raise InputError(file, str(cause), line=reader.line_num) from cause
    except DecodeError as cause:
        column = COLUMNS[int(cause.path[0])]
        problem = f"{column}: expected {cause.expected}, found {cause.found}"
        raise InputError(file, problem, line=reader.line_num) from cause
    return OpGroups(kernel_time, tuple(groups))


@contextlib.contextmanager
def replaced(texts: Mapping[Path, str]) -> Iterator[None]:
    """Write files that belong to one which is written inside; if that fails, they are as before.

    Raises:
        WriteError: a file cannot be written.
    """
    before = {file: file.read_text(encoding="utf-8") for file in texts if file.exists()}
    try:
        for file, text in texts.items():
            write_text(file, text)
        yield
    except WriteError:
        with contextlib.suppress(OSError, WriteError):
            for file in texts:
                if file in before:
                    write_text(file, before[file])
                else:
                    file.unlink(missing_ok=True)
        raise


def _shortest(cell: str | float | None) -> str | float | None:
    return int(cell) if isinstance(cell, float) and cell.is_integer() else cell


def _parsed(column: str, cell: str) -> str | float | None:
    """Return a cell as JSON would have it; what is no number stays the text that it is."""
    if column in _TEXTS:
        return cell
    if not cell:
        return None
    if column == "fidelity":
        return cell
    with contextlib.suppress(ValueError):
        return int(cell) if column in _WHOLE or cell.isdecimal() else float(cell)
    return cell

"""The op table beside a baseline: a CSV that a diff can be read of."""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.atomic import write_text
from pytest_ttnn_perf._support.errors import DecodeError, InputError, WriteError
from pytest_ttnn_perf.model.encoding.op_groups import COLUMNS, decode_group, group_cells
from pytest_ttnn_perf.model.encoding.value import Value
from pytest_ttnn_perf.model.op_groups import OpGroups

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: The last column names the profiler's column that the times are from; it is the same in all rows.
_HEADER: Final = (*COLUMNS, "time")
_TEXTS: Final = frozenset({"op", "inputs", "outputs", "settings"})
_WHOLE: Final = frozenset({"cores", "count"})
#: Far more than any model has kinds of ops: a line for each.
LARGEST: Final = 64 * 2**20
_KINDS: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
)


def strange(file: Path, folder: Path) -> str | None:
    """Say what is in the place of a table if that is no file of a size in ``folder``.

    Baselines may be someone else's: a link in them leads anywhere, and whoever opens a pipe waits.
    None where there is a file, or nothing. Nothing is opened.
    """
    real = os.path.realpath(file)
    if not Path(real).is_relative_to(os.path.realpath(folder)):
        return f"a link that leads out of it, to {real}"
    try:
        state = file.stat()
    except OSError as cause:
        nowhere = cause.errno == errno.ELOOP or file.is_symlink()
        return "a link that leads nowhere" if nowhere else None
    return _no_table(state)


def _no_table(state: os.stat_result) -> str | None:
    if not stat.S_ISREG(state.st_mode):
        return next((name for is_one, name in _KINDS if is_one(state.st_mode)), "a device")
    return f"{state.st_size} bytes" if state.st_size > LARGEST else None


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
    reader = csv.reader(io.StringIO(_text(file)), strict=True)
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


def _text(file: Path) -> str:
    """Read a file that may have become something else since it was looked at."""
    try:
        with open(file, encoding="utf-8", opener=_without_waiting) as stream:
            found = _no_table(os.fstat(stream.fileno()))
            if found is not None:
                raise InputError(file, f"expected a file, found {found}")
            return stream.read()
    except IsADirectoryError as cause:
        raise InputError(file, "expected a file, found a folder") from cause
    except UnicodeDecodeError as cause:
        raise InputError(file, f"not a text file: {cause.reason} at byte {cause.start}") from cause
    except OSError as cause:
        raise InputError(file, f"cannot read: {cause.strerror or cause}") from cause


def _without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NONBLOCK)  # of a pipe, otherwise, for who writes to it


@contextlib.contextmanager
def replaced(texts: Mapping[Path, str]) -> Iterator[None]:
    """Write files that belong to one which is written inside; if that fails, they are as before.

    Raises:
        WriteError: a file cannot be written.
    """
    before = {  # what is damaged may stay so, and must not keep a good one from being written
        file: file.read_text(encoding="utf-8", errors="replace") for file in texts if file.exists()
    }
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

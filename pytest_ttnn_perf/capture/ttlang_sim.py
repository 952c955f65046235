"""What tt-lang's simulator counted: from its trace, or from the tables made of one."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from pytest_ttnn_perf._support.errors import DecodeError, InputError
from pytest_ttnn_perf._support.json_text import loads
from pytest_ttnn_perf.capture.ttlang_lines import bounded_text, plain_lines
from pytest_ttnn_perf.capture.ttlang_sim_events import Events
from pytest_ttnn_perf.capture.ttlang_sim_tables import TITLES, read_tables
from pytest_ttnn_perf.model.encoding.value import Value

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_ttnn_perf.model.ttlang_sim import SimCounters

_GZIP_MAGIC: Final = b"\x1f\x8b"
#: No event is longer: what is, is no trace.
_LONGEST_LINE: Final = 2**16


def is_sim_trace(head: str) -> bool:
    """Return whether a text begins as a trace does."""
    first = head.partition("\n")[0]
    return first.startswith('{"tick": ') and '"event": ' in first


def is_sim_stats(head: str) -> bool:
    """Return whether a text has a table of the simulator's."""
    return any(line in TITLES for line in plain_lines(head))


def read_sim_trace(file: Path) -> SimCounters:
    """Read a trace: a JSON document per line, also compressed with gzip.

    Raises:
        InputError: with file and line; also for a trace that is cut, or has no event.
    """
    try:
        with file.open("rb") as plain:
            packed = plain.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
            plain.seek(0)
            if not packed:
                return _read_events(file, plain)
            with gzip.GzipFile(fileobj=plain) as unpacked:
                return _read_events(file, cast("BinaryIO", unpacked))
    except IsADirectoryError as cause:
        raise InputError(file, "expected a file, found a folder") from cause
    except (EOFError, zlib.error) as cause:
        raise InputError(file, f"not a whole gzip file: {cause}") from cause
    except OSError as cause:
        raise InputError(file, f"cannot read: {cause.strerror or cause}") from cause


def _read_events(file: Path, stream: BinaryIO) -> SimCounters:
    events = Events()
    number = 0
    while line := stream.readline(_LONGEST_LINE):
        number += 1
        if not line.endswith(b"\n"):
            problem = "the file is cut: its last line has no line end"
            if len(line) >= _LONGEST_LINE:
                problem = f"a line of more than {_LONGEST_LINE:,} bytes: no trace of the simulator"
            raise InputError(file, problem, line=number)
        try:
            events.add(Value(loads(line.decode("utf-8"))))
        except (ValueError, DecodeError) as cause:
            problem = f"expected an event of the simulator: {cause}"
            raise InputError(file, problem, line=number) from cause
    if not number:
        raise InputError(file, "no events: no tt-lang operation ran in the simulator")
    try:
        return events.counters()
    except ValueError as cause:
        raise InputError(file, str(cause), line=number) from cause


def read_sim_stats(file: Path) -> SimCounters:
    """Read the tables of ``tt-lang-sim-stats``. They have no ticks.

    Raises:
        InputError: with file and line; also for a table that is cut or does not add up.
    """
    return read_tables(plain_lines(bounded_text(file)), file)

"""The lines of a program in a perf summary: what each of them says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf.capture.ttlang_lines import DECIMAL, WHOLE, whole
from pytest_ttnn_perf.model.ttlang import (
    Barriers,
    Bytes,
    KernelTime,
    NocCount,
    ProgramPerf,
    Span,
    Transfers,
    TransferSize,
)

if TYPE_CHECKING:
    from collections.abc import Callable

CHIP: Final = re.compile(
    rf"arch: (\S{{1,100}}), freq: ({DECIMAL}) MHz, max_compute_cores: ({WHOLE})"
)
COUNT: Final = re.compile(rf"programs: ({WHOLE})(?: \(.*\))?")
PROGRAM: Final = re.compile(r"--- Program (-?[0-9]{1,20})(?: \((.*)\))? ---")

_REQUIRED: Final = ("grid", "duration", "dram_read", "dram_write")
_KERNEL_TIMES: Final = "kernel_times"
#: The last line that a program can have, now and in the first releases.
_LAST_THREADS: Final = ("TRISC_2", "NCRISC:")

_SIZE: Final = rf"({DECIMAL}) (B|KB|MB)"
_SPAN: Final = rf"({WHOLE}) cycles \(({DECIMAL}) (us|ms)\)"
_ONE_SIZE: Final = re.compile(rf"{_SIZE} \(uniform\)")
_COUNTED_SIZE: Final = re.compile(rf"{_SIZE}x({WHOLE})")
_NOC: Final = re.compile(rf"(NOC_[0-9]{{1,3}})=({WHOLE})")
_KERNEL_TIME: Final = re.compile(rf"    ([A-Z]{{1,20}}(?:_[0-9])?:?) +{_SPAN}(?: - {_SPAN})?")


def _bytes(number: str, unit: str) -> Bytes:
    """Read a size; KB and MB are binary, with one decimal.

    >>> _bytes("512.0", "KB"), _bytes("64", "B")
    (Bytes(bytes=524288, within=52), Bytes(bytes=64, within=0))
    """
    if unit == "B":
        return Bytes(round(float(number)))
    factor = 2**10 if unit == "KB" else 2**20
    return Bytes(round(float(number) * factor), -(-factor // 20))


def _span(cycles: str, time: str, unit: str) -> Span:
    return Span(whole(cycles), float(time) * (1000 if unit == "ms" else 1))


def _grid(found: re.Match[str]) -> dict[str, object]:
    x, y, cores = found.groups()
    return {"grid": (whole(x), whole(y)), "cores": whole(cores)}


def _duration(found: re.Match[str]) -> dict[str, object]:
    return {"duration": _span(*found.groups())}


_MOVED: Final = {
    "DRAM read": "dram_read",
    "DRAM write": "dram_write",
    "L1 read": "l1_read",
    "L1 write": "l1_write",
    "L1 multicast": "multicast",
}


def _moved(found: re.Match[str]) -> dict[str, object]:
    what, number, unit, transfers = found.groups()
    return {_MOVED[what]: Transfers(_bytes(number, unit), whole(transfers))}


def _targets(found: re.Match[str]) -> dict[str, object]:
    cores, x, y = map(whole, found.groups())
    return {"l1_targets": cores, "l1_target_grid": (x, y)}


def _bandwidth(found: re.Match[str]) -> dict[str, object]:
    return {"bandwidth_gb_s": float(found[1])}


def _sizes(found: re.Match[str]) -> dict[str, object]:
    one = _ONE_SIZE.fullmatch(found[1])
    if one is not None:
        return {"transfer_sizes": (TransferSize(_bytes(*one.groups()), None),)}
    parts = [_COUNTED_SIZE.fullmatch(part) for part in found[1].split(", ")]
    sizes = [TransferSize(_bytes(part[1], part[2]), whole(part[3])) for part in parts if part]
    return {"transfer_sizes": tuple(sizes)} if len(sizes) == len(parts) else {}


def _barriers(found: re.Match[str]) -> dict[str, object]:
    reads, each_read, writes, each_write = (
        None if number is None else whole(number) for number in found.groups()
    )
    return {
        "read_barriers": Barriers(reads or 0, each_read),
        "write_barriers": Barriers(writes or 0, each_write),
    }


def _noc(found: re.Match[str]) -> dict[str, object]:
    parts = [_NOC.fullmatch(part) for part in found[2].split(", ")] if found[2] else []
    counts = [NocCount(part[1], whole(part[2])) for part in parts if part]
    return {f"noc_{found[1]}": tuple(counts)} if len(counts) == len(parts) else {}


def _semaphores(found: re.Match[str]) -> dict[str, object]:
    return {"semaphore_events": whole(found[1])}


def _channels(found: re.Match[str]) -> dict[str, object]:
    return {"dram_channels": whole(found[1])}


def _kernel_times(_: re.Match[str]) -> dict[str, object]:
    return {_KERNEL_TIMES: ()}


#: No two of the quantifiers beside each other match the same: time grows with length, no faster.
_FIELDS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], dict[str, object]]], ...]] = (
    (re.compile(rf"grid: ({WHOLE})x({WHOLE}) \(({WHOLE}) (?:cores|nodes)\)"), _grid),
    (re.compile(rf"duration: {_SPAN}"), _duration),
    (re.compile(rf"  ({'|'.join(_MOVED)}): +{_SIZE} +\(({WHOLE}) transfers(?:, pipe)?\)"), _moved),
    (
        re.compile(rf"  L1 targets: +({WHOLE}) (?:cores|nodes) \(({WHOLE})x({WHOLE})\)"),
        _targets,
    ),
    (re.compile(rf"  effective BW: +({DECIMAL}) GB/s(?: \(.*\))?"), _bandwidth),
    (re.compile(r"  transfer sizes?: +(\S.*)"), _sizes),
    (
        re.compile(
            rf"  barriers: +({WHOLE}) read(?: \(1 per ({WHOLE}) reads\))?,"
            rf" ({WHOLE}) write(?: \(1 per ({WHOLE}) writes\))?"
        ),
        _barriers,
    ),
    (re.compile(rf"  semaphores: +({WHOLE}) events"), _semaphores),
    (re.compile(r"  noc (reads|writes):(?: +(\S.*))?"), _noc),
    (re.compile(rf"  DRAM channels: +({WHOLE})"), _channels),
    (re.compile(r"  kernel time:"), _kernel_times),
)


class ProgramFields:
    """What the lines of one program said so far."""

    def __init__(self, program_id: int, name: str | None) -> None:
        # Each entry becomes a field of the record, which has the types.
        self._said: dict[str, Any] = {"program_id": program_id, "name": name}
        self._kernel_times: list[KernelTime] = []
        self._last_line = ""
        self.closed = False

    def read(self, line: str) -> bool:
        """Take in a line; False for one that is not understood, or says what another said."""
        understood = self._read(line)
        self._last_line = line if understood else ""
        return understood

    def _read(self, line: str) -> bool:
        if _KERNEL_TIMES in self._said:
            found = _KERNEL_TIME.fullmatch(line)
            if found is not None:
                return self._add_kernel_time(found)
        for pattern, fields in _FIELDS:
            found = pattern.fullmatch(line)
            if found is not None:
                said = fields(found)
                if not said or said.keys() & self._said.keys():
                    return False
                self._said.update(said)
                return True
        return False

    def _add_kernel_time(self, found: re.Match[str]) -> bool:
        thread = found[1].rstrip(":")
        if any(known.thread == thread for known in self._kernel_times):
            return False
        shortest = _span(*found.group(2, 3, 4))
        longest = shortest if found[5] is None else _span(*found.group(5, 6, 7))
        self._kernel_times.append(KernelTime(thread, shortest, longest))
        return True

    def close_at_end(self) -> None:
        """Close the program at the end of the log, if its last line can be no other's."""
        self.closed = self._last_line.strip().startswith(_LAST_THREADS)

    def record(self) -> ProgramPerf | None:
        """Return the program; None where a line is missing that every program has."""
        if not self.closed or any(name not in self._said for name in _REQUIRED):
            return None
        return ProgramPerf(**{**self._said, _KERNEL_TIMES: tuple(self._kernel_times)})

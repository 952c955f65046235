"""The profiler's raw ``profile_log_device.csv``: how long the kernels of each program ran."""

from __future__ import annotations

import re
from array import array
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple

from pytest_ttnn_perf._base.errors import InputError
from pytest_ttnn_perf._base.files import reading, unpacked
from pytest_ttnn_perf.records.ttnn_report import DeviceLog, ProgramTime

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


#: device, run host ID, trace, replay
Key = tuple[int, int, int | None, int | None]
Core = tuple[int, int]
#: No chip has more kinds of processors; arrays below have a place for each.
_MOST_RISCS: Final = 64
_UNKNOWN: Final = -1


class Marker(NamedTuple):
    """A start or an end of a kernel."""

    key: Key
    core: Core
    risc: str
    cycle: int
    is_start: bool


class Programs:
    """Collects programs from markers.

    Memory counts here: a core of a program is one array, the start and the end of each processor.
    """

    def __init__(self, clock_mhz: float) -> None:
        self._ns_per_cycle = 1000 / clock_mhz
        self._riscs: dict[str, int] = {}
        self._cycles: dict[tuple[Key, int], dict[Core, array[int]]] = {}
        # How often a marker was seen, for those seen more than once.
        self._repeats: dict[tuple[Key, Core, int], int] = {}

    def add(self, marker: Marker) -> str | None:
        """Take in a marker; return what is wrong with it.

        Where nothing else tells two executions of a program apart, the second start of the same
        processor on the same core is of the second execution, and so on.
        """
        risc = self._riscs.setdefault(marker.risc, len(self._riscs))
        if risc >= _MOST_RISCS:
            return f"more than {_MOST_RISCS} kinds of processors: no device log"
        slot = 2 * risc + (not marker.is_start)
        cycles = self._of_core(marker.key, marker.core, 0, slot)
        if cycles[slot] != _UNKNOWN:
            seen = (marker.key, marker.core, slot)
            execution = self._repeats[seen] = self._repeats.get(seen, 0) + 1
            cycles = self._of_core(marker.key, marker.core, execution, slot)
        cycles[slot] = marker.cycle
        return None

    def _of_core(self, key: Key, core: Core, execution: int, slot: int) -> array[int]:
        cores = self._cycles.setdefault((key, execution), {})
        cycles = cores.get(core)
        if cycles is None:
            cycles = cores[core] = array("q")
        if len(cycles) <= slot:
            # Always a start and an end.
            cycles.extend([_UNKNOWN] * (2 * (slot // 2 + 1) - len(cycles)))
        return cycles

    def records(self) -> tuple[ProgramTime, ...]:
        """Return the programs by device, in the order in which they began."""
        programs = [self._program(key, cores.values()) for (key, _), cores in self._cycles.items()]
        # One whose start is not known comes last.
        order = [
            (program.device, program.start_cycle is None, program.start_cycle or 0, at)
            for at, program in enumerate(programs)
        ]
        return tuple(programs[at] for *_, at in sorted(order))

    def _program(self, key: Key, cores: Iterable[array[int]]) -> ProgramTime:
        starts: list[int] = []
        ends: list[int] = []
        complete, count = True, 0
        for cycles in cores:
            count += 1
            pairs = [
                pair
                for pair in zip(cycles[::2], cycles[1::2], strict=True)
                if pair != (_UNKNOWN, _UNKNOWN)
            ]
            starts += [begin for begin, _ in pairs if begin != _UNKNOWN]
            ends += [end for _, end in pairs]
            complete &= all(_UNKNOWN < begin <= end for begin, end in pairs)
        start = min(starts, default=None)
        if not complete or start is None:
            return ProgramTime(*key, start, None, count)
        return ProgramTime(*key, start, (max(ends) - start) * self._ns_per_cycle, count)


_CHIP: Final = re.compile(
    r"ARCH: ([^,\s]{1,100}), *CHIP_FREQ\[MHz\]: ([0-9]{1,9}(?:\.[0-9]{1,9})?)"
    r"(?:, *Max Compute Cores: ([0-9]{1,9}))?"
)
_LONGEST_LINE: Final = 2**16
_DEVICE: Final = "PCIe slot"
_RUN: Final = "run host ID"
_REQUIRED: Final = (
    _DEVICE, "core_x", "core_y", "RISC processor type", "time[cycles since reset]", _RUN,
    "zone name",
)  # fmt: skip
#: Earlier releases had another name for the column that tells starts from ends, and no traces.
_TYPES: Final = ("type", "zone phase")
_TRACE: Final = "trace id"
_REPLAY: Final = "trace id counter"
_KERNEL: Final = b"-KERNEL"
_STARTS: Final = frozenset({b"ZONE_START", b"begin"})
_ENDS: Final = frozenset({b"ZONE_END", b"end"})
_NUMBER: Final = re.compile(rb" *[0-9]{1,18} *")
_NO_NUMBERS: Final = frozenset({b"", b"-1"})


def is_device_log(head: str) -> bool:
    """Return whether a text begins as a device log does."""
    return _CHIP.match(head.removeprefix("\ufeff")) is not None


def read_device_log(file: Path) -> DeviceLog:
    """Read a log, line by line: logs of gigabytes exist.

    Only the zones of whole kernels are timed. A program's time is from the first start to the last
    end over all its cores and processors, as in the profiler's own reports.

    Raises:
        InputError: with file and line; also for a log that is cut inside a line, or has no row.
    """
    with reading(file), unpacked(file) as stream:
        return _Reader(file, stream).read()


class _Places(NamedTuple):
    """Where the columns are; -1 for one that the log does not have."""

    device: int
    core_x: int
    core_y: int
    risc: int
    time: int
    run: int
    zone: int
    kind: int
    trace: int
    replay: int


class _Reader:
    def __init__(self, file: Path, stream: BinaryIO) -> None:
        self._file = file
        self._stream = stream
        self._number = 0

    def read(self) -> DeviceLog:
        arch, clock_mhz, cores = self._chip()
        names = [name.strip() for name in self._text(self._line()).split(",")]
        places = self._places(names)
        programs = Programs(clock_mhz)
        rows = 0
        while line := self._line():
            if line.count(b",") != len(names) - 1:
                self._refuse_width(line, len(names))
            rows += 1
            if _KERNEL in line:
                self._add(programs, line, places)
        if not rows:
            raise self._refusal("no rows below the header: nothing was captured")
        return DeviceLog(arch, clock_mhz, cores, rows, programs.records())

    def _line(self) -> bytes:
        line = self._stream.readline(_LONGEST_LINE)
        self._number += bool(line)
        if len(line) >= _LONGEST_LINE:
            raise self._refusal(f"a line of more than {_LONGEST_LINE:,} bytes: no device log")
        return line

    def _refusal(self, problem: str) -> InputError:
        return InputError(self._file, problem, line=self._number or None)

    def _text(self, line: bytes) -> str:
        try:
            return line.decode("utf-8")
        except UnicodeDecodeError as cause:
            raise self._refusal(f"not a text file: {cause.reason}") from cause

    def _chip(self) -> tuple[str, float, int | None]:
        line = self._text(self._line()).strip().removeprefix("\ufeff")
        if not self._number:
            raise self._refusal("the file is empty")
        found = _CHIP.fullmatch(line)
        if found is None:
            expected = "ARCH: <arch>, CHIP_FREQ[MHz]: <number>, Max Compute Cores: <number>"
            raise self._refusal(f"expected {expected!r}, found {line[:60]!r}")
        if not float(found[2]):
            raise self._refusal("expected the clock of the chip, found 0 MHz")
        return found[1], float(found[2]), None if found[3] is None else int(found[3])

    def _places(self, names: list[str]) -> _Places:
        kind = next((name for name in _TYPES if name in names), _TYPES[0])
        missing = [name for name in (*_REQUIRED, kind) if name not in names]
        if missing:
            raise self._refusal(f"expected a column {missing[0]!r} in the header of a device log")
        wanted = (*_REQUIRED, kind, _TRACE, _REPLAY)
        return _Places._make(names.index(name) if name in names else -1 for name in wanted)

    def _refuse_width(self, line: bytes, expected: int) -> None:
        found = line.count(b",") + 1
        problem = f"expected {expected} values as in the header, found {found}"
        if not line.endswith(b"\n"):
            problem = f"the file is cut: its last line has {found} of {expected} values"
        raise self._refusal(problem)

    def _add(self, programs: Programs, line: bytes, places: _Places) -> None:
        cells = line.split(b",")
        kind = cells[places.kind].strip()
        if not cells[places.zone].strip().endswith(_KERNEL) or kind not in _STARTS | _ENDS:
            return
        trace = None if places.trace < 0 else self._optional(cells[places.trace])
        replay = None if places.replay < 0 else self._optional(cells[places.replay])
        device, x, y, time, run = (
            self._whole(cells[at])
            for at in (places.device, places.core_x, places.core_y, places.time, places.run)
        )
        risc = self._text(cells[places.risc]).strip()
        marker = Marker((device, run, trace, replay), (x, y), risc, time, is_start=kind in _STARTS)
        problem = programs.add(marker)
        if problem:
            raise self._refusal(problem)

    def _whole(self, cell: bytes) -> int:
        if not _NUMBER.fullmatch(cell):
            shown = cell[:40].decode("utf-8", "replace")
            raise self._refusal(f"expected a whole number, found {shown!r}")
        return int(cell)

    def _optional(self, cell: bytes) -> int | None:
        return None if cell.strip() in _NO_NUMBERS else self._whole(cell)

"""The section PERF SUMMARY of a tt-lang log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf._base.files import parse_json
from pytest_ttnn_perf.analysis.captures.ttlang_lines import (
    DECIMAL,
    PERF_SUMMARY,
    WHOLE,
    bounded_text,
    is_rule,
    whole,
)
from pytest_ttnn_perf.records.json_value import LARGEST_COUNT, Value
from pytest_ttnn_perf.records.ttlang import (
    Barriers,
    Bytes,
    KernelTime,
    NocCount,
    PerfSummary,
    ProblemKind,
    ProgramPerf,
    Span,
    Transfers,
    TransferSize,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_ttnn_perf.analysis.captures.ttlang_lines import Lines


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


#: No two of the quantifiers beside each other match the same: time grows with length, no faster.
_FIELDS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], dict[str, object]]], ...]] = (
    (re.compile(rf"grid: ({WHOLE})x({WHOLE}) \(({WHOLE}) (?:cores|nodes)\)"), _grid),
    (re.compile(rf"duration: {_SPAN}"), lambda found: {"duration": _span(*found.groups())}),
    (re.compile(rf"  ({'|'.join(_MOVED)}): +{_SIZE} +\(({WHOLE}) transfers(?:, pipe)?\)"), _moved),
    (
        re.compile(rf"  L1 targets: +({WHOLE}) (?:cores|nodes) \(({WHOLE})x({WHOLE})\)"),
        _targets,
    ),
    (
        re.compile(rf"  effective BW: +({DECIMAL}) GB/s(?: \(.*\))?"),
        lambda found: {"bandwidth_gb_s": float(found[1])},
    ),
    (re.compile(r"  transfer sizes?: +(\S.*)"), _sizes),
    (
        re.compile(
            rf"  barriers: +({WHOLE}) read(?: \(1 per ({WHOLE}) reads\))?,"
            rf" ({WHOLE}) write(?: \(1 per ({WHOLE}) writes\))?"
        ),
        _barriers,
    ),
    (
        re.compile(rf"  semaphores: +({WHOLE}) events"),
        lambda found: {"semaphore_events": whole(found[1])},
    ),
    (re.compile(r"  noc (reads|writes):(?: +(\S.*))?"), _noc),
    (re.compile(rf"  DRAM channels: +({WHOLE})"), lambda found: {"dram_channels": whole(found[1])}),
    (re.compile(r"  kernel time:"), lambda _: {_KERNEL_TIMES: ()}),
)


class ProgramFields:
    """Collects the fields of one program from its lines."""

    def __init__(self, program_id: int, name: str | None) -> None:
        # Each entry becomes a field of the record, which has the types.
        self._values: dict[str, Any] = {"program_id": program_id, "name": name}
        self._kernel_times: list[KernelTime] = []
        self._last_line = ""
        self.closed = False

    def read(self, line: str) -> bool:
        """Take in a line; False for one that is not understood, or says what another said."""
        understood = self._read(line)
        self._last_line = line if understood else ""
        return understood

    def _read(self, line: str) -> bool:
        if _KERNEL_TIMES in self._values:
            found = _KERNEL_TIME.fullmatch(line)
            if found is not None:
                return self._add_kernel_time(found)
        for pattern, fields in _FIELDS:
            found = pattern.fullmatch(line)
            if found is not None:
                values = fields(found)
                if not values or values.keys() & self._values.keys():
                    return False
                self._values.update(values)
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
        if not self.closed or any(name not in self._values for name in _REQUIRED):
            return None
        return ProgramPerf(**{**self._values, _KERNEL_TIMES: tuple(self._kernel_times)})


_TITLE: Final = "PERF SUMMARY"
#: What tt-lang prints for a chip it does not know, with a clock and a core count it made up.
UNKNOWN_ARCH: Final = "unknown"


def is_program(line: str) -> bool:
    """Return whether a line begins a program: where a log was cut out of a longer one."""
    return PROGRAM.fullmatch(line) is not None


def read_perf_summary(lines: Lines) -> PerfSummary:
    """Read a summary from its heading on, or from its first program where it has none.

    A program that lacks a line is left out, and the summary says that it is not complete.
    """
    start = lines.number
    heading = lines.peek()
    section = _Section()
    lines.begin(past_heading=heading is not None and not is_program(heading))
    while not lines.ends():
        line = lines.peek() or ""
        if is_rule(line) or section.is_over(line):
            break
        if section.read(line):
            lines.take()
        else:
            lines.skip_unread(_TITLE)
    if lines.peek() is not None:
        section.finish(sure=not lines.gave_up)
    elif lines.last_is_whole:
        section.finish_at_end()
    summary = section.record(needs_chip=heading == PERF_SUMMARY)
    if not summary.complete:
        lines.report(ProblemKind.CUT, f"{_TITLE}: {section.missing()}", line=start)
    if section.chip is not None and summary.arch is None:
        problem = f"{_TITLE}: tt-lang did not find the device log: clock and cores are made up"
        lines.report(ProblemKind.UNKNOWN_CHIP, problem, line=start)
    return summary


class _Section:
    """Collects the programs of a summary from its lines."""

    def __init__(self) -> None:
        self.chip: tuple[str, float, int] | None = None
        self._announced: int | None = None
        self._programs: list[ProgramFields] = []

    def is_over(self, line: str) -> bool:
        """Return whether a line comes after the section: a program ends with an empty line."""
        behind_program = bool(self._programs) and self._programs[-1].closed
        return bool(line) and behind_program and not is_program(line)

    def read(self, line: str) -> bool:
        if not line:
            self._close()
            return True
        found = PROGRAM.fullmatch(line)
        if found is not None:
            self._close()
            self._programs.append(ProgramFields(int(found[1]), found[2]))
            return True
        if self._programs:
            return self._programs[-1].read(line)
        return self._read_head(line)

    def _read_head(self, line: str) -> bool:
        chip, count = CHIP.fullmatch(line), COUNT.fullmatch(line)
        if chip is not None and self.chip is None:
            self.chip = chip[1], float(chip[2]), whole(chip[3])
            return True
        if count is not None and self._announced is None:
            self._announced = whole(count[1])
            return True
        return False

    def _close(self) -> None:
        if self._programs:
            self._programs[-1].closed = True

    def finish(self, *, sure: bool) -> None:
        if sure:
            self._close()

    def finish_at_end(self) -> None:
        if self._programs and not self._programs[-1].closed:
            self._programs[-1].close_at_end()

    def record(self, *, needs_chip: bool) -> PerfSummary:
        found = [program.record() for program in self._programs]
        programs = tuple(program for program in found if program is not None)
        complete = bool(found) and len(programs) == len(found)
        if needs_chip:
            complete = complete and self.chip is not None and self._announced is not None
        if self._announced is not None:
            complete = complete and self._announced == len(found)
        chip = self.chip
        if chip is None or chip[0] == UNKNOWN_ARCH or not chip[1]:
            return PerfSummary(programs, complete=complete)
        return PerfSummary(programs, *chip, complete=complete)

    def missing(self) -> str:
        """Say how much of the section is there."""
        whole_ones = sum(program.record() is not None for program in self._programs)
        announced = max(self._announced or 0, len(self._programs))
        return f"ends early or lacks lines: {whole_ones} of {announced} programs are whole"


def is_perf_summary_json(head: str) -> bool:
    """Return whether a text begins as the JSON form does."""
    start = head.lstrip("\ufeff \t\r\n")
    return start.startswith("{") and '"freq_mhz"' in head and '"max_compute_cores"' in head


def read_perf_summary_json(file: Path) -> PerfSummary:
    """Read the exact form. It has no kernel times, semaphores or bandwidth.

    Raises:
        InputError: with file, line and what was expected.
    """
    return parse_json(bounded_text(file), _summary, file=file)


def _summary(document: object) -> PerfSummary:
    root = Value(document)
    programs = tuple(_program(program) for program in root.field("programs").array())
    arch = root.field("arch").string()
    clock_mhz = root.field("freq_mhz").number()
    cores = root.field("max_compute_cores").integer()
    if arch == UNKNOWN_ARCH or clock_mhz <= 0:
        return PerfSummary(programs, exact=True)
    return PerfSummary(programs, arch, clock_mhz, cores, exact=True)


def _program(program: Value) -> ProgramPerf:
    def count(name: str) -> int:
        return program.field(name).integer()

    def moved(bytes_: str, transfers: str) -> Transfers:
        return Transfers(Bytes(count(bytes_)), count(transfers))

    name = program.optional("name")
    return ProgramPerf(
        program_id=program.field("program_id").integer(at_least=-LARGEST_COUNT),
        name=None if name is None else name.string(),
        grid=_grid_of_json(program.field("grid")),
        cores=count("num_cores"),
        duration=Span(count("duration_cycles"), program.field("duration_us").number()),
        dram_read=moved("dram_bytes_read", "dram_read_count"),
        dram_write=moved("dram_bytes_written", "dram_write_count"),
        l1_read=moved("l1_bytes_read", "l1_read_count"),
        l1_write=moved("l1_bytes_written", "l1_write_count"),
        multicast=Transfers(Bytes(count("multicast_bytes")), None),
        transfer_sizes=_sizes_of_json(program.field("transfer_sizes")),
        read_barriers=Barriers(count("read_barriers")),
        write_barriers=Barriers(count("write_barriers")),
        dram_channels=count("dram_channels"),
    )


def _grid_of_json(value: Value) -> tuple[int, int]:
    extents = [extent.integer() for extent in value.array()]
    if len(extents) != 2:
        raise value.refusal("two extents of the grid")
    return extents[0], extents[1]


def _sizes_of_json(value: Value) -> tuple[TransferSize, ...]:
    sizes = []
    for size, transfers in value.items():
        if not (size.isascii() and size.isdigit() and len(size) <= 15):
            raise transfers.refusal("a size in bytes as the name of this count")
        sizes.append(TransferSize(Bytes(int(size)), transfers.integer()))
    return tuple(sorted(sizes))

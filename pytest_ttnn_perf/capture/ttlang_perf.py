"""The section PERF SUMMARY of a tt-lang log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.capture.ttlang_lines import PERF_SUMMARY, is_rule, whole
from pytest_ttnn_perf.capture.ttlang_perf_fields import CHIP, COUNT, PROGRAM, ProgramFields
from pytest_ttnn_perf.model.ttlang import PerfSummary, ProblemKind

if TYPE_CHECKING:
    from pytest_ttnn_perf.capture.ttlang_lines import Lines

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
    """What the lines of a summary said so far."""

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

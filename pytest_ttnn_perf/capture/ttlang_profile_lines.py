"""The listing of a thread in an auto-profile report: source lines, and the rows below them."""

from __future__ import annotations

import re
from typing import Final

from pytest_ttnn_perf.capture.ttlang_lines import DECIMAL, WHOLE, whole
from pytest_ttnn_perf.model.ttlang import LineOp, LineProfile, ThreadProfile, ThreadTotal, Wait

THREAD: Final = re.compile(
    r"THREAD: (\S{1,100}) +(?:\[([^\]]*)\] )?"
    rf"\(({WHOLE}) ops, ({WHOLE}) cycles, ({DECIMAL})% of total\)"
)
_COLUMN_TITLES: Final = ("LINE", "%TIME", "CYCLES", "SOURCE")
_NO_SOURCE: Final = re.compile(r" *\(no source available for kernel '.*'\)")

_HIT: Final = re.compile(rf"([0-9]{{1,9}}) +({DECIMAL})%  (({WHOLE})(?:-({WHOLE}))?)( .*)?")
_NOT_HIT: Final = re.compile(r"([0-9]{1,9})(?: (.*))?")
#: How wide tt-lang makes the columns before the source, where their text is not longer.
_CYCLES_WIDTH: Final = 10
_SOURCE_AT: Final = 26
_SUM: Final = re.compile(
    rf"  \(x({WHOLE})(?: = ({WHOLE}) cycles|, avg=({DECIMAL}), total=({WHOLE}))\)"
)

_BRANCHES: Final = ("├─ ", "╰─ ")
_OP: Final = re.compile(rf"({WHOLE}) (\S+)( \(implicit\))?(?: \(x({WHOLE})\))?")
_WAIT: Final = re.compile(
    rf"(?:({WHOLE}) cycles )?waiting for (\S+) @ line (-?[0-9]{{1,9}}) \((.*)\)"
)
_BARRIER: Final = re.compile(r"DMA barrier for CB\[([0-9]{1,9})\]")


class Listing:
    """What was read of one thread."""

    def __init__(self, found: re.Match[str]) -> None:
        thread, kernel, ops, cycles, percent = found.groups()
        self.total = ThreadTotal(thread, kernel, whole(ops), whole(cycles), float(percent))
        self._lines: list[_Line] = []
        self._has_source = True

    def read(self, line: str) -> bool:
        """Take in a line; False for one that is not understood."""
        if not line.strip("- ") or tuple(line.split()) == _COLUMN_TITLES:
            return True
        row = line.lstrip()
        if row.startswith(_BRANCHES):
            return bool(self._lines) and self._lines[-1].add(row[len(_BRANCHES[0]) :])
        if _NO_SOURCE.fullmatch(line):
            self._has_source = False
            return True
        profile = _hit(line) or _not_hit(line)
        if profile is None:
            return False
        self._lines.append(_Line(profile))
        return True

    def record(self) -> ThreadProfile:
        """Return the thread."""
        lines = tuple(line.record() for line in self._lines)
        return ThreadProfile(self.total, lines if self._has_source else None)


class _Line:
    """A source line with the rows below it."""

    def __init__(self, profile: LineProfile) -> None:
        self._profile = profile
        self._ops: list[LineOp] = []
        self._waits: list[Wait] = []
        self._barriers: list[int] = []

    def add(self, row: str) -> bool:
        wait, barrier, op = _WAIT.fullmatch(row), _BARRIER.fullmatch(row), _OP.fullmatch(row)
        if wait is not None:
            cycles = None if wait[1] is None else whole(wait[1])
            self._waits.append(Wait(wait[2], int(wait[3]), wait[4], cycles))
        elif barrier is not None:
            self._barriers.append(int(barrier[1]))
        elif op is not None:
            hits = 1 if op[4] is None else whole(op[4])
            self._ops.append(LineOp(op[2], whole(op[1]), hits, implicit=op[3] is not None))
        else:
            return False
        return True

    def record(self) -> LineProfile:
        known = self._profile
        # What ops tell, the line itself does not: its one number is their sum.
        told_by_ops = bool(self._ops)
        return LineProfile(
            known.line,
            known.source,
            known.percent,
            None if told_by_ops else known.shortest_cycles,
            None if told_by_ops else known.longest_cycles,
            known.average_cycles,
            known.total_cycles,
            None if told_by_ops else known.hits,
            tuple(self._ops),
            tuple(self._waits),
            tuple(self._barriers),
        )


def _hit(line: str) -> LineProfile | None:
    found = _HIT.fullmatch(line)
    if found is None:
        return None
    number, percent, cycles, shortest, longest, rest = found.groups()
    # The source keeps its own indentation: only the padding of the column goes.
    source = (rest or "")[max(_CYCLES_WIDTH - len(cycles), 0) + 1 :]
    least, most = whole(shortest), whole(longest or shortest)
    average: float | None = None
    hits, total = 1, least
    at = source.rfind("  (x")
    sums = _SUM.fullmatch(source, at) if at >= 0 else None
    if sums is not None:
        source, hits = source[:at], whole(sums[1])
        total = whole(sums[2] or sums[4])
        average = None if sums[3] is None else float(sums[3])
    return LineProfile(int(number), source, float(percent), least, most, average, total, hits)


def _not_hit(line: str) -> LineProfile | None:
    found = _NOT_HIT.fullmatch(line)
    if found is None or line[len(found[1]) : _SOURCE_AT].strip():
        return None
    return LineProfile(int(found[1]), line[_SOURCE_AT:])

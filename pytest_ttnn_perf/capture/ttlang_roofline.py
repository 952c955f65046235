"""The end of an auto-profile report: THREAD SUMMARY and ROOFLINE ANALYSIS."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from pytest_ttnn_perf.capture.ttlang_lines import DECIMAL, WHOLE, whole
from pytest_ttnn_perf.model.ttlang import Roofline, ThreadTotal, ThreadWork

_TOTAL: Final = re.compile(
    rf"  (\S{{1,100}}) +(?:\[([^\]]*)\] +)?({WHOLE}) cycles \( *({WHOLE}) ops\) \[ *({DECIMAL})%\]"
)
_WORK: Final = re.compile(rf"  (\S{{1,100}}) +({WHOLE}) +- +({WHOLE}) +=  *(-?{WHOLE})")
_WORK_TITLES: Final = ("Thread", "Total", "-", "Sync", "Waits", "=", "Work")
_SIDE: Final = re.compile(rf"  (Memory|Compute): +(-?{WHOLE}) cycles +\((\S+)\)")
_BOUND: Final = re.compile(r"  ([0-9]{1,3})% (memory|compute) bound")
_BALANCED: Final = "  Perfectly balanced!"
_BAR: Final = re.compile(r"  Compute ├[─●]{1,200}┤ Memory")
_BAR_CYCLES: Final = re.compile(rf" +(-?{WHOLE}) cycles +(-?{WHOLE}) cycles")


def thread_total(line: str) -> ThreadTotal | None:
    """Read a row of THREAD SUMMARY."""
    found = _TOTAL.fullmatch(line)
    if found is None:
        return None
    thread, kernel, cycles, ops, percent = found.groups()
    return ThreadTotal(thread, kernel, whole(ops), whole(cycles), float(percent))


class RooflineLines:
    """What was read of the roofline; ``record`` is None where there is none."""

    def __init__(self) -> None:
        self._threads: list[ThreadWork] = []
        self._said = Roofline()
        self._bar_begun = False

    def read(self, line: str) -> bool:
        """Take in a line; False for one that is not understood."""
        if tuple(line.split()) == _WORK_TITLES or not line.strip("-= "):
            return True
        return self._read_work(line) or self._read_side(line) or self._read_bound(line)

    def _read_work(self, line: str) -> bool:
        found = _WORK.fullmatch(line)
        if found is not None:
            numbers = [whole(number) for number in found.group(2, 3, 4)]
            self._threads.append(ThreadWork(found[1], *numbers))
        return found is not None

    def _read_side(self, line: str) -> bool:
        found = _SIDE.fullmatch(line)
        if found is None:
            return False
        cycles, thread = whole(found[2]), found[3]
        if found[1] == "Memory":
            self._said = replace(self._said, memory_cycles=cycles, memory_thread=thread)
        else:
            self._said = replace(self._said, compute_cycles=cycles, compute_thread=thread)
        return True

    def _read_bound(self, line: str) -> bool:
        bound, cycles = _BOUND.fullmatch(line), _BAR_CYCLES.fullmatch(line)
        if bound is not None:
            self._said = replace(self._said, bound=bound[2], bound_percent=int(bound[1]))
        elif line == _BALANCED:
            self._said = replace(self._said, bound="balanced", bound_percent=0)
        elif _BAR.fullmatch(line):
            self._bar_begun = True
        elif cycles is not None and self._bar_begun:
            return self._read_bar_cycles(whole(cycles[1]), whole(cycles[2]))
        else:
            return False
        return True

    def _read_bar_cycles(self, compute: int, memory: int) -> bool:
        """Take in what stands below the bar; it repeats what stood above, where anything did."""
        self._bar_begun = False
        known = self._said
        self._said = replace(known, compute_cycles=compute, memory_cycles=memory)
        return known.compute_cycles in {None, compute} and known.memory_cycles in {None, memory}

    @property
    def complete(self) -> bool:
        """Whether nothing that was begun lacks its end."""
        return not self._bar_begun and (self._said.bound is None) == (
            self._said.memory_cycles is None and self._said.compute_cycles is None
        )

    def record(self) -> Roofline | None:
        """Return the roofline."""
        said = replace(self._said, threads=tuple(self._threads))
        return None if said == Roofline() else said

"""The kernels of each program in a device log, gathered marker by marker."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.model.device_log import ProgramTime, RiscTime

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    """The programs so far.

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
        programs = [
            self._program(key, execution, cores.values())
            for (key, execution), cores in self._cycles.items()
        ]
        # One whose start is not known comes last.
        order = [
            (program.device, program.start_cycle is None, program.start_cycle or 0, at)
            for at, program in enumerate(programs)
        ]
        return tuple(programs[at] for *_, at in sorted(order))

    def _program(self, key: Key, execution: int, cores: Iterable[array[int]]) -> ProgramTime:
        starts: list[int] = []
        spans: list[tuple[int, int]] = []
        longest: dict[int, int] = {}
        complete, count = True, 0
        for cycles in cores:
            count += 1
            pairs = [
                (risc, begin, end)
                for risc, (begin, end) in enumerate(zip(cycles[::2], cycles[1::2], strict=True))
                if (begin, end) != (_UNKNOWN, _UNKNOWN)
            ]
            starts += [begin for _, begin, _ in pairs if begin != _UNKNOWN]
            if any(begin == _UNKNOWN or end < begin for _, begin, end in pairs):
                complete = False
                continue
            spans.append((min(begin for _, begin, _ in pairs), max(end for *_, end in pairs)))
            for risc, begin, end in pairs:
                longest[risc] = max(longest.get(risc, 0), end - begin)
        start = min(starts, default=None)
        if not complete:
            return ProgramTime(*key, execution, start, None, count, None, None, ())
        return self._timed(key, execution, spans, longest)

    def _timed(
        self, key: Key, execution: int, spans: list[tuple[int, int]], longest: dict[int, int]
    ) -> ProgramTime:
        ns = self._ns_per_cycle
        start = min(begin for begin, _ in spans)
        lengths = [end - begin for begin, end in spans]
        names = list(self._riscs)
        return ProgramTime(
            *key,
            execution,
            start,
            kernel_ns=(max(end for _, end in spans) - start) * ns,
            cores=len(spans),
            longest_core_ns=max(lengths) * ns,
            shortest_core_ns=min(lengths) * ns,
            riscs=tuple(RiscTime(names[risc], longest[risc] * ns) for risc in sorted(longest)),
        )

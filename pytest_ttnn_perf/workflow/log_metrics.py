"""The times in a raw device log, as metrics that are gated like any other."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.model.metric import KERNEL_TIME, Kind
from pytest_ttnn_perf.model.observation import MetricObservation
from pytest_ttnn_perf.workflow.recorded import recorded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_ttnn_perf.model.device_log import DeviceLog

PROGRAM_COUNT: Final = "program_count"


def log_metrics(log: DeviceLog, *, file: str) -> Iterator[MetricObservation]:
    """Yield the kernel time and the number of programs, of the device that has most of each.

    The time of a program is from its first kernel's start to the last one's end, which is what an
    op table calls its kernel duration: both are the same metric. Replays of traces are its samples,
    and what ran outside of them is none; without traces the whole log is one sample. A log that
    lacks a marker gives no samples, and says why.
    """
    time = recorded(KERNEL_TIME, Kind.TIME)
    lost = _lost(log)
    if lost is not None:
        yield MetricObservation(time, (), note=f"{file}: {lost}")
        return
    runs = _runs(log).values()
    yield MetricObservation(time, tuple(max(map(sum, times.values())) for times in runs))
    most = max(len(own) for times in runs for own in times.values())
    yield MetricObservation(recorded(PROGRAM_COUNT, Kind.COUNT), (most,))


def _lost(log: DeviceLog) -> str | None:
    if not log.programs:
        return "no kernel ran"
    for program in log.programs:
        if not program.complete:
            place = f"program {program.run_host_id} on device {program.device}"
            return f"{place} lacks a marker: the profiler dropped it, or the log is cut"
    ran: dict[tuple[int, int | None], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for program in log.programs:
        if program.replay is not None:
            ran[program.device, program.trace][program.replay].append(program.run_host_id)
    for (device, trace), replays in ran.items():
        first, *others = map(sorted, replays.values())
        if any(other != first for other in others):
            return f"the replays of trace {trace} on device {device} ran different programs"
    return None


def _runs(log: DeviceLog) -> Mapping[int | None, Mapping[int, list[float]]]:
    """Return the times of the programs by replay and device; None is the replay of a whole log."""
    replayed = any(program.replay is not None for program in log.programs)
    runs: dict[int | None, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for program in log.programs:
        if program.kernel_ns is not None and (program.replay is not None or not replayed):
            runs[program.replay][program.device].append(program.kernel_ns)
    return runs

"""The times of a device, from a capture, as metrics that are gated like any other."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.attribution.grouping import grouped
from pytest_ttnn_perf.attribution.lanes import Lane
from pytest_ttnn_perf.model.category import Category, category_of
from pytest_ttnn_perf.model.metric import KERNEL_TIME, Kind
from pytest_ttnn_perf.model.observation import MetricObservation
from pytest_ttnn_perf.workflow.recorded import recorded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_ttnn_perf.model.op_groups import OpGroups
    from pytest_ttnn_perf.model.ops import OpTable

OP_COUNT: Final = "op_count"

#: Why ops have no time, with the article that a sentence wants.
_FLAWS: Final = {
    "negative kernel duration": "a negative kernel duration",
    "kernel duration of 0": "a kernel duration of 0",
    "impossible gap": "an impossible gap",
}

#: An execution of the program: a replay of its traces, or, without any, all there is.
Replay = int | None


def device_metrics(table: OpTable, *, file: str) -> Iterator[MetricObservation]:
    """Yield the metrics of an op table: kernel time, op count, and the time of every category.

    One sample per replay of the traces, of the slowest device: the devices of a mesh run side by
    side. Without traces there is one sample. A capture in which ops lack a time, or whose replays
    ran different ops, has lost data: its metrics have no samples, and say why. ``file`` is the name
    of the capture.
    """
    time = recorded(KERNEL_TIME, Kind.TIME)
    if table.unread:
        yield MetricObservation(time, (), note=_unread(table, file))
        return
    incomplete = [trace for trace in table.traces if not trace.complete]
    if incomplete:
        first = incomplete[0]
        why = f"the replays of trace {first.trace} on device {first.device} ran different ops"
        yield MetricObservation(time, (), note=f"{file}: {why}")
        return
    runs = _runs(table)
    if not runs:
        yield MetricObservation(time, (), note=f"{file}: no op has a time")
        return
    yield MetricObservation(time, tuple(run.kernel_ns() for run in runs))
    most = float(max(run.count() for run in runs))
    yield MetricObservation(recorded(OP_COUNT, Kind.COUNT), (most,))
    for category in Category:
        samples = tuple(run.kernel_ns(category) for run in runs)
        if any(samples):
            name = f"{KERNEL_TIME}_{category.name.lower()}"
            yield MetricObservation(recorded(name, Kind.TIME), samples)


def _unread(table: OpTable, file: str) -> str:
    """Say how many ops have no time that could be summed, and where the first of them is."""
    reasons = Counter(each.reason for each in table.unread)
    flaws = [
        f"{_FLAWS.get(why, why)} ({n})" if len(reasons) > 1 else _FLAWS.get(why, why)
        for why, n in reasons.items()
    ]
    several, ops = len(table.unread), len(table.unread) + table.columns.host.count(False)
    told = f"{several} of {counted(ops, 'device op')} {'has' if several == 1 else 'have'}"
    first = min(each.line for each in table.unread)
    return f"{told} {' or '.join(flaws)}, first in line {first} of {file}"


def gated_ops(table: OpTable) -> OpGroups | None:
    """Return the ops that make up the kernel time of a table; None where it has none.

    That time is the middle one of all executions, each of its slowest device: so are these, or the
    mean of the two in the middle. Their times add up to the metric. ``kernel_time`` says what they
    are of, as the ops of a whole capture are another quantity.
    """
    runs = sorted((run.slowest() for run in _runs(table)), key=lambda lane: sum(lane.kernel_ns))
    if not runs:
        return None
    middle = runs[(len(runs) - 1) // 2 : len(runs) // 2 + 1]
    what = table.kernel_time
    what += " of one replay" if table.traces else ""
    what += " on the slowest device" if len(table.devices) > 1 else ""
    return replace(grouped(table, middle), kernel_time=what)


class _Run:
    """One execution: times and ops per device."""

    def __init__(self) -> None:
        self._ns: dict[int, dict[Category, float]] = defaultdict(lambda: defaultdict(float))
        self._ops: dict[int, list[tuple[int, float]]] = defaultdict(list)

    def add(self, row: int, device: int, category: Category, kernel_ns: float) -> None:
        """Take in one op."""
        self._ns[device][category] += kernel_ns
        self._ops[device].append((row, kernel_ns))

    def slowest(self) -> Lane:
        """Return the ops of the slowest device."""
        slowest = max(self._ns, key=lambda device: sum(self._ns[device].values()))
        rows, times_ns = zip(*self._ops[slowest], strict=True)
        return Lane(rows, times_ns)

    def kernel_ns(self, category: Category | None = None) -> float:
        """Return the time of the slowest device, in all or in one category of ops."""
        return max(
            sum(times.values()) if category is None else times.get(category, 0.0)
            for times in self._ns.values()
        )

    def count(self) -> int:
        """Return the number of ops of the device that ran most."""
        return max(map(len, self._ops.values()))


def _runs(table: OpTable) -> list[_Run]:
    """Return the executions in a capture: its replays if it has traces, else the whole."""
    columns = table.columns
    categories = [category_of(signature.op) for signature in table.signatures]
    replayed = bool(table.traces)
    runs: Mapping[Replay, _Run] = defaultdict(_Run)
    ops = zip(
        columns.signature, columns.device, columns.kernel_ns, columns.replay, columns.host,
        strict=True,
    )  # fmt: skip
    for row, (signature, device, kernel_ns, replay, host) in enumerate(ops):
        if not host and (replay is not None or not replayed):
            run = runs[replay if replayed else None]
            run.add(row, device, categories[signature], kernel_ns)
    return list(runs.values())

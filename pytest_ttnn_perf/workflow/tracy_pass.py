"""The device pass of ``tracy``: tests under Tracy's own launcher, which writes one CSV of all ops.

The launcher starts pytest itself, so no worker of ours talks to us: each measured call stands
between two signposts that name its test, and is found by them in the CSV.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import TtnnPerfError
from pytest_ttnn_perf.attribution.grouping import grouped
from pytest_ttnn_perf.capture.ops_window import window
from pytest_ttnn_perf.model.assignment import PassKind
from pytest_ttnn_perf.model.metric import KERNEL_TIME, Kind, Source
from pytest_ttnn_perf.model.observation import MetricObservation, Observation
from pytest_ttnn_perf.processes.batch import free_port
from pytest_ttnn_perf.workflow.device_metrics import device_metrics
from pytest_ttnn_perf.workflow.op_tables import op_table_of
from pytest_ttnn_perf.workflow.recorded import recorded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pytest_ttnn_perf.model.ops import OpTable
    from pytest_ttnn_perf.model.settings import Settings
    from pytest_ttnn_perf.workflow.passes import Workers

_MARK: Final = "ttnn-perf"
_END: Final = "_END"


def signpost_of(test: str, iteration: int) -> str:
    """Return the name of the signpost before a measured call; the one after it ends in ``_END``."""
    return f"{_MARK} {iteration} {test}"


@dataclass(slots=True)
class TracyPass:
    """Runs the measured tests once under Tracy."""

    settings: Settings
    workers: Workers
    say: Callable[[str], None]

    def run(self) -> Mapping[str, Observation]:
        """Return what the devices told of each test that was measured under Tracy."""
        self.say("ttnn-perf: device pass: profiling with Tracy; its report comes at the end")
        folder = self.workers.next_folder(PassKind.DEVICE)
        output = folder / "tracy"
        launcher = ["-m", "tracy", "-r", "-p", "-o", str(output), "-t", str(free_port())]
        ending = self.workers.run_batch(
            folder, PassKind.DEVICE, launcher, timeout_s=self.settings.timeout
        )
        files = sorted(output.glob("reports/*/ops_perf_results*.csv"))
        if not files:
            self.say(f"ttnn-perf: device pass: Tracy {ending} without a report; see {folder}")
            self.workers.keep()
            return {}
        try:
            told = dict(_told(op_table_of(files[-1])))
        except TtnnPerfError as error:
            self.say(f"ttnn-perf: device pass: {error}")
            return {}
        self.workers.discard(folder)
        return told


def _told(table: OpTable) -> Iterator[tuple[str, Observation]]:
    tests: dict[str, list[str]] = {}
    for signpost in table.signposts:
        mark, _, rest = signpost.name.partition(" ")
        iteration, _, test = rest.partition(" ")
        if mark == _MARK and iteration.isdecimal() and not test.endswith(_END):
            tests.setdefault(test, []).append(signpost.name)
    for test, names in tests.items():
        windows = [window(table, name, name + _END) for name in names]
        yield test, _observation(test, windows)


def _observation(test: str, windows: list[OpTable]) -> Observation:
    """Return the metrics of a test: a sample for each of its windows."""
    samples = [
        {observed.metric.name: observed for observed in device_metrics(each, file="Tracy's report")}
        for each in windows
    ]
    counts = [len(each) for each in windows]
    if len(set(counts)) > 1:
        why = f"the iterations ran different numbers of ops: {', '.join(map(str, counts))}"
        time = recorded(KERNEL_TIME, Kind.TIME, source=Source.TRACY)
        return Observation(test, {KERNEL_TIME: MetricObservation(time, (), note=why)})
    names = reduce(lambda kept, more: [n for n in kept if n in more], samples[1:], [*samples[0]])
    metrics = {
        name: MetricObservation(
            replace(samples[0][name].metric, source=Source.TRACY),
            tuple(value for each in samples for value in each[name].samples),
            note=samples[0][name].note,
        )
        for name in names
    }
    return Observation(test, metrics, ops=grouped(windows[-1]) if len(windows[-1]) else None)

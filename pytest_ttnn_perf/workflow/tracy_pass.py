"""The device pass of ``tracy``: tests under Tracy's own launcher, which writes one CSV of all ops.

The launcher starts pytest itself, so no worker of ours talks to us: each measured call stands
between two signposts that name its test, and is found by them in the CSV.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import reduce
from statistics import median_low
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import TtnnPerfError
from pytest_ttnn_perf.capture.ops_window import window
from pytest_ttnn_perf.model.artifact import Artifact
from pytest_ttnn_perf.model.assignment import PassKind
from pytest_ttnn_perf.model.metric import KERNEL_TIME, Source
from pytest_ttnn_perf.model.observation import MetricObservation, Observation
from pytest_ttnn_perf.processes.batch import free_port
from pytest_ttnn_perf.workflow.device_metrics import device_metrics, gated_ops
from pytest_ttnn_perf.workflow.device_pass import untold
from pytest_ttnn_perf.workflow.op_tables import op_table_of
from pytest_ttnn_perf.workflow.passes import Loss
from pytest_ttnn_perf.workflow.profiling_instruments import SIGNPOST_BEGIN, SIGNPOST_END

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pytest_ttnn_perf.model.ops import OpTable
    from pytest_ttnn_perf.model.settings import Settings
    from pytest_ttnn_perf.workflow.passes import Workers

_MARK: Final = re.compile(r"ttnn-perf begin (\d+)\.(\d+) (.*)", re.DOTALL)


@dataclass(slots=True)
class TracyPass:
    """Runs the measured tests once under Tracy."""

    settings: Settings
    workers: Workers
    say: Callable[[str], None]
    #: Why no other worker may follow, and why nothing is known of any test.
    stopped: str | None = None
    untold: str | None = None

    def run(self) -> Mapping[str, Observation]:
        """Return what the devices told of each test that was measured under Tracy."""
        self.say("ttnn-perf: device pass: profiling with Tracy; its report comes at the end")
        folder = self.workers.next_folder(PassKind.DEVICE)
        output = folder / "tracy"
        launcher = ["-m", "tracy", "-r", "-p", "-o", str(output), "-t", str(free_port())]
        ending = self.workers.run_batch(
            folder, PassKind.DEVICE, launcher, timeout_s=self.settings.timeout
        )
        if ending.hung:
            loss = Loss((), str(ending), folder / "worker.log", "", dirty=True, hung=True)
            left = self.workers.reset(loss)
            self.stopped = left and f"Tracy {ending}; it {left}"
        files = sorted(output.glob("reports/*/ops_perf_results*.csv"))
        try:
            if not files:
                self.untold = f"Tracy {ending} without a report; see {folder}"
                self.workers.keep()
                return {}
            told = dict(_told(op_table_of(files[-1]), self.settings))
        except TtnnPerfError as error:
            self.untold = str(error)
            return {}
        finally:
            if self.untold is not None:
                self.say(f"ttnn-perf: device pass: {self.untold}")
        self.workers.discard(folder)
        return told


def _told(table: OpTable, settings: Settings) -> Iterator[tuple[str, Observation]]:
    from pytest_ttnn_perf.workflow.checked_test import checked_test  # all rules: only when used

    tests: dict[str, dict[int, list[str]]] = {}
    for signpost in table.signposts:
        mark = _MARK.fullmatch(signpost.name)
        if mark is not None:
            tests.setdefault(mark[3], {}).setdefault(int(mark[1]), []).append(signpost.name)
    for test, runs in tests.items():
        names = runs[max(runs)]  # a test that ran again counts as it ended
        try:
            windows = [
                window(table, name, SIGNPOST_END + name.removeprefix(SIGNPOST_BEGIN))
                for name in names
            ]
        except TtnnPerfError as error:  # a call that raised has no end
            yield test, untold(test, str(error), Source.TRACY)
        else:
            asked = Artifact(table=windows[-1])
            observation = _observation(test, windows)
            yield test, checked_test(observation, asked, settings, by_the_clock=False)


def _observation(test: str, windows: list[OpTable]) -> Observation:
    """Return the metrics of a test: a sample for each of its windows."""
    samples = [
        {observed.metric.name: observed for observed in device_metrics(each, file="Tracy's report")}
        for each in windows
    ]
    counts = [len(each) for each in windows]
    lost = [each[KERNEL_TIME].note for each in samples if not each[KERNEL_TIME].samples]
    if lost:
        return untold(test, lost[0] or "no op has a time", Source.TRACY)
    if len(set(counts)) > 1:
        told = ", ".join(map(str, counts))
        return untold(test, f"the iterations ran different numbers of ops: {told}", Source.TRACY)
    names = reduce(lambda kept, more: [n for n in kept if n in more], samples[1:], [*samples[0]])
    metrics = {
        name: MetricObservation(
            replace(samples[0][name].metric, source=Source.TRACY),
            tuple(value for each in samples for value in each[name].samples),
        )
        for name in names
    }
    # The ops of a call that took the median time, the last of them if several did.
    times_ns = [(ns, at) for at, each in enumerate(samples) for ns in each[KERNEL_TIME].samples]
    middle = median_low(ns for ns, _ in times_ns)
    chosen = max(at for ns, at in times_ns if ns == middle)
    return Observation(test, metrics, ops=gated_ops(windows[chosen]))

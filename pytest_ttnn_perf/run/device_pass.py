"""The device pass: the measured tests once in a worker that is profiled, before all others."""

from __future__ import annotations

import re
import time
from dataclasses import field, replace
from functools import reduce
from statistics import median_low
from typing import TYPE_CHECKING, Final, Protocol

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import DecodeError, TtnnPerfError
from pytest_ttnn_perf.analysis.captures.detect import op_table_of
from pytest_ttnn_perf.analysis.captures.device_metrics import device_metrics, gated_ops, recorded
from pytest_ttnn_perf.analysis.captures.ops_csv import window
from pytest_ttnn_perf.observe.checklist import joined
from pytest_ttnn_perf.observe.profiling import SIGNPOST_BEGIN, SIGNPOST_END
from pytest_ttnn_perf.observe.series import told_twice
from pytest_ttnn_perf.processes.commands import free_port
from pytest_ttnn_perf.records.json import decode
from pytest_ttnn_perf.records.messages import (
    Broke,
    Collected,
    Finished,
    PassKind,
    Refused,
    Reported,
    Stopped,
)
from pytest_ttnn_perf.records.metric import KERNEL_TIME, Kind, Source
from pytest_ttnn_perf.records.observation import Artifact, MetricObservation, Observation
from pytest_ttnn_perf.report.checklist import device_pass_heading, device_pass_line
from pytest_ttnn_perf.run.workers import Loss, Pass, WorkerLauncher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.records.messages import Message
    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.settings import Settings


#: How often the progress is told.
_EVERY_S: Final = 5.0


class Starter(Protocol):
    """Tells how the workers of a device pass are started."""

    def __call__(self, *, more_room: bool) -> WorkerLauncher:
        """Return workers whose profiler has the usual room, or more."""


@dataclass(slots=True)
class DevicePass:
    """Profiles the tests of a run, and once more with more room those of which data was dropped."""

    settings: Settings
    workers: Starter
    print_line: Callable[[str], None]
    #: Why no other worker may follow: a device was left that none can use.
    stopped: str | None = None
    #: Why nothing is known of any test, not even which there are.
    unavailable: str | None = None

    def run(self) -> Mapping[str, Observation]:
        """Return what the devices told of each measured test; what they did not, says why."""
        first = self._heard(None, more_room=False)
        dropped = [test for test, told in first.items() if told.dropped]
        if not dropped or self.stopped:
            return first
        self.print_line(device_pass_heading(len(dropped), more_room=True))
        return {**first, **self._heard(dropped, more_room=True)}

    def _heard(self, tests: Sequence[str] | None, *, more_room: bool) -> dict[str, Observation]:
        listener = _DeviceListener(
            self.print_line, dict.fromkeys(tests or ()), said=tests is not None
        )
        profiled = Pass(
            PassKind.DEVICE, self.workers(more_room=more_room), listener, self.settings.timeout
        )
        profiled.run(tests)
        if profiled.stopped is not None:
            lost = f"{listener.lost}; it" if listener.lost else "a worker"
            self.stopped = f"{lost} {profiled.stopped}"
        listener.close(profiled.stopped)
        self.unavailable = listener.trouble if not listener.collected else None
        return listener.told


@dataclass(slots=True)
class _DeviceListener:
    """Takes in what a worker profiles. What its tests do otherwise, the wall pass will tell."""

    print_line: Callable[[str], None]
    waiting: dict[str, None]
    told: dict[str, Observation] = field(default_factory=dict)
    stop: str | None = None
    said: bool = False
    _count: int = 0
    _began_s: float = field(default_factory=time.monotonic)
    _said_s: float = field(default_factory=time.monotonic)
    trouble: str | None = None
    #: The last test that was lost, and how.
    lost: str = ""

    def receive(self, message: Message) -> None:
        """Take in one message."""
        match message:
            case Collected(tests=tests) if not self._count:  # later workers have what is left
                self.waiting = dict.fromkeys(tests)
                self._count = len(tests)
                if tests and not self.said:
                    self.said = True
                    self.print_line(device_pass_heading(len(tests), more_room=False))
            case Reported(report={"outcome": "rerun"}):
                pass  # of pytest-rerunfailures: a test counts as it ends
            case Reported(test=test) if message.observed is not None:
                self._take(test, message.observed)
            case Reported(test=test, report={"outcome": "skipped"}):
                self.waiting.pop(test, None)  # it is skipped in the wall pass, too
            case Finished():
                self._tell_progress()
            case Refused(text=text) | Broke(text=text) | Stopped(text=text):
                self.trouble = text

    def _tell_progress(self) -> None:
        now_s = time.monotonic()
        done, left = self._count - len(self.waiting), len(self.waiting)
        if done > 0 and left and now_s - self._said_s >= _EVERY_S:
            self._said_s = now_s
            left_s = left * (now_s - self._began_s) / done
            self.print_line(device_pass_line(done=done, of=self._count, left_s=left_s))

    def worker_lost(self, loss: Loss) -> None:
        """Give up the tests that a worker was running when it died or hung."""
        why = f"its worker {loss.text}; log: {loss.log}"
        if not loss.tests:
            self.trouble = why
        for started in loss.tests:
            self.lost = f"{started.test}: {why}"
            self._give_up(started.test, why)

    @property
    def collected(self) -> bool:
        """Whether a worker came so far as to tell its tests."""
        return self._count > 0 or bool(self.told)

    def close(self, stopped: str | None) -> None:
        """Give up the tests that no worker told anything about."""
        why = f"an earlier worker {stopped}" if stopped else self.trouble
        for test in tuple(self.waiting):
            self._give_up(test, why or "the test did not run")

    def _take(self, test: str, observed: object) -> None:
        self.waiting.pop(test, None)
        try:
            observation = decode(Observation, observed, key=test)
        except DecodeError as error:
            self._give_up(test, str(error))
            return
        if observation.raised is not None:
            self._give_up(test, f"the test raised {observation.raised}")
        else:
            self.told[test] = observation

    def _give_up(self, test: str, why: str) -> None:
        self.waiting.pop(test, None)
        self.told[test] = unavailable(test, f"device pass: {why}")


def unavailable(test: str, why: str, source: Source = Source.DEVICE) -> Observation:
    """Return what is known of a test whose device told nothing: why."""
    time = recorded(KERNEL_TIME, Kind.TIME, source=source)
    return Observation(test, {KERNEL_TIME: MetricObservation(time, (), note=why)})


def _doubled(observation: Observation, told: Observation) -> Iterator[str]:
    """Yield what is told by a capture that the test attached and by another pass' profiler."""
    both = [
        name
        for name, ours in observation.metrics.items()
        if name in told.metrics and ours.samples and told.metrics[name].samples
        # What the test attaches in both passes is one capture.
        if ours.metric.source is not told.metrics[name].metric.source
    ]
    if both:
        source = told.metrics[both[0]].metric.source.value
        yield told_twice(both, "attach", f"the profiler {source}")


def with_device(observation: Observation, told: Observation | None) -> Observation:
    """Return what the wall pass observed of a test with what its device told in another pass."""
    if told is None:
        return observation
    observation = replace(
        observation, problems=(*observation.problems, *_doubled(observation, told))
    )
    return replace(
        joined(observation, told),
        metrics={**observation.metrics, **told.metrics},
        ops=told.ops or observation.ops,
        environment={**told.environment, **observation.environment},
        problems=tuple(dict.fromkeys((*observation.problems, *told.problems))),
        dropped=told.dropped,
        bottleneck=told.bottleneck or observation.bottleneck,
        model_kind=told.model_kind or observation.model_kind,
        has_kernels=told.has_kernels or observation.has_kernels,
    )


_MARK: Final = re.compile(r"ttnn-perf begin (\d+)\.(\d+) (.*)", re.DOTALL)


@dataclass(slots=True)
class TracyPass:
    """Runs the measured tests once under Tracy."""

    settings: Settings
    workers: WorkerLauncher
    print_line: Callable[[str], None]
    #: Why no other worker may follow, and why nothing is known of any test.
    stopped: str | None = None
    unavailable: str | None = None

    def run(self) -> Mapping[str, Observation]:
        """Return what the devices told of each test that was measured under Tracy."""
        self.print_line("ttnn-perf: device pass: profiling with Tracy; its report comes at the end")
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
                self.unavailable = f"Tracy {ending} without a report; see {folder}"
                self.workers.keep()
                return {}
            told = dict(_told(op_table_of(files[-1]), self.settings))
        except TtnnPerfError as error:
            self.unavailable = str(error)
            return {}
        finally:
            if self.unavailable is not None:
                self.print_line(f"ttnn-perf: device pass: {self.unavailable}")
        self.workers.discard(folder)
        return told


def _told(table: OpTable, settings: Settings) -> Iterator[tuple[str, Observation]]:
    from pytest_ttnn_perf.observe.checklist import checked_test

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
            yield test, unavailable(test, str(error), Source.TRACY)
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
        return unavailable(test, lost[0] or "no op has a time", Source.TRACY)
    if len(set(counts)) > 1:
        told = ", ".join(map(str, counts))
        return unavailable(
            test, f"the iterations ran different numbers of ops: {told}", Source.TRACY
        )
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

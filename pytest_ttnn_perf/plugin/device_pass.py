"""The device pass: the measured tests once in a worker that is profiled, before all others."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.codec import decode
from pytest_ttnn_perf.core.errors import DecodeError, TtnnPerfError
from pytest_ttnn_perf.core.messages import Collected, Finished, PassKind, ProfilesItself, Reported
from pytest_ttnn_perf.core.metric import KERNEL_TIME, THROUGHPUT_TIME, Kind, Source, recorded_metric
from pytest_ttnn_perf.core.observation import Artifact, MetricObservation, Observation
from pytest_ttnn_perf.gate.checklist import join_answers
from pytest_ttnn_perf.gate.gated_run import DeviceResults
from pytest_ttnn_perf.machine.processes import LostWorker, free_port
from pytest_ttnn_perf.measure.instruments import SIGNPOST_BEGIN, SIGNPOST_END
from pytest_ttnn_perf.measure.recorder import COMPILE, FIRST_CALL, told_twice, unrecorded
from pytest_ttnn_perf.plugin.workers import Pass, ResultListener
from pytest_ttnn_perf.report.terminal import device_pass_heading, device_pass_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pytest_ttnn_perf.core.messages import Message
    from pytest_ttnn_perf.core.ops import OpTable
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.plugin.workers import WorkerLauncher


#: How often the progress is printed.
_EVERY_S: Final = 5.0


def profile_tests(
    settings: Settings,
    workers: Callable[..., WorkerLauncher],
    print_line: Callable[[str], None],
) -> DeviceResults:
    """Profile the tests of a run, and once more with more room those of which data was dropped.

    ``workers`` returns the workers of a pass, whose profiler has ``more_room`` or the usual.
    """
    first = _profile(settings, workers(more_room=False), print_line, None)
    dropped = [test for test, observed in first.observations.items() if observed.dropped]
    if not dropped or first.stopped:
        return first
    print_line(device_pass_heading(len(dropped), more_room=True))
    again = _profile(settings, workers(more_room=True), print_line, dropped)
    return replace(again, observations={**first.observations, **again.observations})


def _profile(
    settings: Settings,
    workers: WorkerLauncher,
    print_line: Callable[[str], None],
    tests: Sequence[str] | None,
) -> DeviceResults:
    listener = _DeviceListener(print_line, dict.fromkeys(tests or ()), announced=tests is not None)
    one = Pass(PassKind.DEVICE, workers, listener, settings.timeout, runs_apart=False)
    one.run(tests)
    unavailable, stopped = listener.trouble, None
    if one.stopped is not None:
        listener.trouble = f"an earlier worker {one.stopped}"
        stopped = f"{f'{listener.lost}; it' if listener.lost else 'a worker'} {one.stopped}"
    listener.close("the test did not run")
    if listener.collected:
        unavailable = None
    return DeviceResults(listener.observations, unavailable, stopped, made=listener.collected)


@dataclass(slots=True)
class _DeviceListener(ResultListener):
    """Takes in what workers profile; the wall pass tells whether their tests pass."""

    observations: dict[str, Observation] = field(default_factory=dict)
    #: Whether the user was told that tests are profiled.
    announced: bool = False
    _count: int = 0
    _began_s: float = field(default_factory=time.monotonic)
    _printed_s: float = field(default_factory=time.monotonic)
    #: The last test that was lost, and how.
    lost: str = ""

    def receive(self, message: Message) -> None:
        """Take in one message."""
        match message:
            case Collected(tests=tests) if not self._count:  # later workers have what is left
                self.waiting = dict.fromkeys(tests)
                self._count = len(tests)
                if tests and not self.announced:
                    self.announced = True
                    self.print_line(device_pass_heading(len(tests), more_room=False))
            case Reported(test=test, report={"outcome": "skipped"}) if message.observed is None:
                self.waiting.pop(test, None)  # it is skipped in the wall pass, too
            case ProfilesItself(test=test):
                self.waiting.pop(test, None)  # its own profile is told in the wall pass
            case Finished():
                self._print_progress()
            case _:
                ResultListener.receive(self, message)

    def _print_progress(self) -> None:
        now_s = time.monotonic()
        done, left = self._count - len(self.waiting), len(self.waiting)
        if done > 0 and left and now_s - self._printed_s >= _EVERY_S:
            self._printed_s = now_s
            left_s = left * (now_s - self._began_s) / done
            self.print_line(device_pass_line(done=done, of=self._count, left_s=left_s))

    def worker_lost(self, loss: LostWorker) -> None:
        """Give up the tests that a worker was running when it died or hung."""
        ResultListener.worker_lost(self, loss)
        for started in loss.tests:
            self.lost = f"{started.test}: its worker {loss.text}; log: {loss.log}"

    @property
    def collected(self) -> bool:
        """Whether a worker came so far as to send its tests."""
        return self._count > 0 or bool(self.observations)

    def take(self, test: str, observed: dict[str, object]) -> None:
        """Keep what was profiled of a test."""
        try:
            observation = decode(Observation, observed, key=test)
        except DecodeError as error:
            self.give_up(test, str(error))
            return
        if observation.raised is not None:
            self.give_up(test, f"the test raised {observation.error}")
            return
        if observation.out_of_memory is not None:
            self.give_up(test, f"out of memory: {observation.out_of_memory}")
            return
        self.waiting.pop(test, None)
        self.observations[test] = observation

    def give_up(self, test: str, why: str) -> None:
        """Keep why nothing was profiled of a test."""
        self.waiting.pop(test, None)
        self.observations[test] = unavailable(test, f"device pass: {why}")


def unavailable(test: str, why: str, source: Source = Source.DEVICE) -> Observation:
    """Return what is known of a test whose device told nothing: why."""
    time = recorded_metric(KERNEL_TIME, Kind.TIME, source=source)
    return Observation(test, {KERNEL_TIME: MetricObservation(time, (), note=why)})


def ran_a_model(observation: Observation) -> bool:
    """Return whether a test measured calls on a device: then a profiler has something to tell."""
    ended = (observation.lost, observation.raised, observation.out_of_memory)
    came_through = all(why is None for why in ended)
    called = not observation.metrics.keys().isdisjoint({FIRST_CALL, THROUGHPUT_TIME, COMPILE})
    return came_through and observation.hardware is not None and called


def _measured_twice(observation: Observation, of_device: Observation) -> Iterator[str]:
    """Yield what is told by a capture that the test attached and by another pass' profiler."""
    both = [
        name
        for name, ours in observation.metrics.items()
        if name in of_device.metrics and ours.samples and of_device.metrics[name].samples
        # What the test attaches in both passes is one capture.
        if ours.metric.source is not of_device.metrics[name].metric.source
    ]
    if both:
        source = of_device.metrics[both[0]].metric.source.value
        yield told_twice(both, "attach", f"the profiler {source}")


def _answered(of_device: Observation) -> Iterator[str]:
    """Yield what the wall pass says of limits for metrics that it lacks, and this one has."""
    for name, observed in of_device.metrics.items():
        limits = observed.limits
        # A limit that the device pass does not know, as under Tracy, must not be lost in silence.
        applied = {
            "tolerance": limits.tolerance is not None,
            "max_regression": limits.max_regression is not None,
            "target": limits.target is not None,
            "gate": observed.gated,
        }
        yield from (unrecorded(option, name) for option, holds in applied.items() if holds)


def with_device(observation: Observation, of_device: Observation) -> Observation:
    """Return what the wall pass observed of a test with what its device told in another pass."""
    answered = tuple(_answered(of_device))
    problems = [each for each in observation.problems if not each.startswith(answered)]
    observation = replace(
        observation, problems=(*problems, *_measured_twice(observation, of_device))
    )
    return replace(
        join_answers(observation, of_device),
        metrics={**observation.metrics, **of_device.metrics},
        ops=of_device.ops or observation.ops,
        environment={**of_device.environment, **observation.environment},
        problems=tuple(dict.fromkeys((*observation.problems, *of_device.problems))),
        dropped=of_device.dropped,
        bottleneck=of_device.bottleneck or observation.bottleneck,
        model_kind=of_device.model_kind or observation.model_kind,
        has_kernels=of_device.has_kernels or observation.has_kernels,
    )


_MARK: Final = re.compile(r"ttnn-perf begin (\d+)\.(\d+) (.*)", re.DOTALL)


def profile_with_tracy(
    settings: Settings, workers: WorkerLauncher, print_line: Callable[[str], None]
) -> DeviceResults:
    """Run the measured tests once under Tracy, and read its report."""
    print_line("ttnn-perf: device pass: profiling with Tracy; its report comes at the end")
    folder = workers.next_folder(PassKind.DEVICE)
    output = folder / "tracy"
    launcher = ["-m", "tracy", "-r", "-p", "-o", str(output), "-t", str(free_port())]
    ending = workers.run_batch(folder, PassKind.DEVICE, launcher, timeout_s=settings.timeout)
    stopped = None
    if ending.hung:
        loss = LostWorker((), str(ending), folder / "worker.log", "", dirty=True, hung=True)
        left = workers.reset(loss)
        stopped = left and f"Tracy {ending}; it {left}"
    files = sorted(output.glob("reports/*/ops_perf_results*.csv"))
    try:
        if files:
            found = dict(_read_report(wings.call("read_ops", files[-1]), settings))
            workers.discard(folder)
            return DeviceResults(found, stopped=stopped, made=True)
        why = f"Tracy {ending} without a report; see {folder}"
        workers.keep()
    except TtnnPerfError as error:
        why = str(error)
    print_line(f"ttnn-perf: device pass: {why}")
    return DeviceResults(unavailable=why, stopped=stopped)


def _read_report(table: OpTable, settings: Settings) -> Iterator[tuple[str, Observation]]:
    """Yield each test of a report with what it says of the test."""
    from pytest_ttnn_perf.gate.checklist import check_test

    tests: dict[str, dict[int, list[str]]] = {}
    for signpost in table.signposts:
        mark = _MARK.fullmatch(signpost.name)
        if mark is not None:
            tests.setdefault(mark[3], {}).setdefault(int(mark[1]), []).append(signpost.name)
    for test, runs in tests.items():
        names = runs[max(runs)]  # a test that ran again counts as it ended
        try:
            marks = [(n, SIGNPOST_END + n.removeprefix(SIGNPOST_BEGIN)) for n in names]
            calls: OpTable = wings.call("calls_between", table, marks)
        except TtnnPerfError as error:  # a call that raised has no end
            yield test, unavailable(test, str(error), Source.TRACY)
        else:
            observation = _observation(test, calls)
            asked = Artifact(table=calls)
            yield test, check_test(observation, asked, settings, by_the_clock=False)


def _observation(test: str, calls: OpTable) -> Observation:
    """Return the metrics of a test: a sample for each call, or for each replay in them."""
    bounds = (*(calls.calls or (0,)), len(calls))
    counts = [stop - start for start, stop in pairwise(bounds)]
    if len(set(counts)) > 1 and not calls.unread:
        listed = ", ".join(map(str, counts))
        return unavailable(
            test, f"the iterations ran different numbers of ops: {listed}", Source.TRACY
        )
    measured: Artifact = wings.call("measure_ops", calls, "Tracy's report")
    metrics = {
        observed.metric.name: replace(
            observed, metric=replace(observed.metric, source=Source.TRACY)
        )
        for observed in measured.metrics
    }
    return Observation(test, metrics, ops=measured.ops)

"""The passes without reports of their own: device pass and confirm passes."""

from __future__ import annotations

import re
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.assignment import SIGNPOST_BEGIN, SIGNPOST_END, PassKind
from pytest_ttnn_perf.core.codec import decode
from pytest_ttnn_perf.core.errors import DecodeError, TtnnPerfError
from pytest_ttnn_perf.core.metric import Source
from pytest_ttnn_perf.core.observation import Artifact, Observation
from pytest_ttnn_perf.core.settings import ProfilerKind
from pytest_ttnn_perf.gate.confirm import suspects
from pytest_ttnn_perf.gate.device import DeviceResults, unavailable
from pytest_ttnn_perf.machine.processes import free_port
from pytest_ttnn_perf.plugin.wire import Collected, Finished, Reported, Stopped
from pytest_ttnn_perf.plugin.workers import LostWorker, Pass
from pytest_ttnn_perf.report.terminal import (
    confirm_heading,
    confirm_line,
    controls_line,
    device_pass_heading,
    device_pass_line,
    shift_refuted_line,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.ops import OpTable
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.gate.gated_run import GateRun
    from pytest_ttnn_perf.plugin.workers import Event, Workers


def results_in(event: Event) -> Iterator[tuple[str, Observation | str]]:
    """Yield tests with their observation, or why they lack one."""
    match event:
        case Reported(report={"outcome": "rerun"}):
            pass  # of pytest-rerunfailures: a test counts as it ends
        case Reported(test=test) if event.observed is not None:
            try:
                yield test, decode(Observation, event.observed, key=test)
            except DecodeError as error:
                yield test, str(error)
        case LostWorker():
            for started in event.tests:
                yield started.test, f"its {event}"


def trouble_in(event: Event) -> str | None:
    """Return why no worker could go on, if an event says."""
    match event:
        case Stopped(text=text):
            return text
        case LostWorker(tests=()):  # those that are left would have had another worker
            return f"its {event}"
    return None


# The device pass: the measured tests once in a worker that is profiled, before all others.

#: How often the progress is printed.
_EVERY_S: Final = 5.0


def run_device_pass(workers: Workers) -> DeviceResults:
    """Profile the measured tests; those with dropped data again with more room."""
    if workers.profiler is ProfilerKind.TRACY:
        return profile_with_tracy(workers)
    first = profile_tests(workers, None)
    dropped = [test for test, observed in first.observations.items() if observed.dropped]
    if not dropped or first.stopped:
        return first
    workers.print_line(device_pass_heading(len(dropped), more_room=True))
    again = profile_tests(workers, dropped)
    return replace(again, observations={**first.observations, **again.observations})


def profile_tests(workers: Workers, tests: Sequence[str] | None) -> DeviceResults:
    """Profile tests, None for all measured; whether they pass shows later."""
    again = tests is not None
    found: dict[str, Observation] = {}
    waiting, count = dict.fromkeys(tests or ()), 0
    trouble, lost = None, "a worker"
    began_s = printed_s = time.monotonic()
    one = Pass(workers, PassKind.DEVICE, tests, profiled=True, more_room=again, runs_apart=False)
    with one:
        for event in one:
            trouble = trouble_in(event) or trouble
            for test, result in results_in(event):
                waiting.pop(test, None)
                found[test] = _profiled(test, result)
            match event:
                case Collected(tests=collected) if not count:  # later workers have what is left
                    waiting, count = dict.fromkeys(collected), len(collected)
                    if collected and not again:
                        workers.print_line(device_pass_heading(count, more_room=False))
                case Reported(test=test) | Finished(test=test, apart=True) if _is_for_wall(event):
                    waiting.pop(test, None)
                case Finished():
                    now_s, done = time.monotonic(), count - len(waiting)
                    if done > 0 and waiting and now_s - printed_s >= _EVERY_S:
                        printed_s = now_s
                        left_s = len(waiting) * (now_s - began_s) / done
                        workers.print_line(device_pass_line(done=done, of=count, left_s=left_s))
                case LostWorker(tests=(*_, last)):
                    lost = f"{last.test}: its {event}; it"
    stopped = None if one.stopped is None else f"{lost} {one.stopped}"
    why = trouble if stopped is None else f"an earlier worker {one.stopped}"
    for test in waiting:
        found[test] = _profiled(test, why or "the test did not run")
    made = count > 0 or bool(found)
    return DeviceResults(found, None if made else trouble, stopped, made=made)


def _is_for_wall(event: Reported | Finished) -> bool:
    if isinstance(event, Finished):
        return event.apart
    return event.observed is None and event.report.get("outcome") == "skipped"


def _profiled(test: str, result: Observation | str) -> Observation:
    if isinstance(result, Observation) and not result.ended:
        return result
    why = result if isinstance(result, str) else result.ended
    return unavailable(test, f"device pass: {why}")


_MARK: Final = re.compile(r"ttnn-perf begin (\d+)\.(\d+) (.*)", re.DOTALL)


def profile_with_tracy(workers: Workers) -> DeviceResults:
    """Run the measured tests once under Tracy, and read its report."""
    print_line = workers.print_line
    print_line("ttnn-perf: device pass: profiling with Tracy; its report comes at the end")
    folder = workers.next_folder(PassKind.DEVICE)
    output = folder / "tracy"
    launcher = ["-m", "tracy", "-r", "-p", "-o", str(output), "-t", str(free_port())]
    ending = workers.run_batch(folder, launcher)
    stopped = None
    if ending.hung:
        left = workers.reset(hung=True)
        stopped = left and f"Tracy {ending}; it {left}"
    files = sorted(output.glob("reports/*/ops_perf_results*.csv"))
    try:
        if files:
            found = dict(_read_report(wings.call("read_ops", files[-1]), workers.settings))
            workers.discard(folder)
            return DeviceResults(found, stopped=stopped, made=True)
        why = f"Tracy {ending} without a report; see {folder}"
        workers.keep()
    except TtnnPerfError as error:
        why = str(error)
    print_line(f"ttnn-perf: device pass: {why}")
    return DeviceResults(unavailable=why, stopped=stopped)


def _read_report(table: OpTable, settings: Settings) -> Iterator[tuple[str, Observation]]:
    from pytest_ttnn_perf.measure.checklist import check_test

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
    """Return a test's metrics: a sample for each call or replay."""
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


# Confirm passes: what looks slower, or would become a baseline, is measured again.

#: A confirm pass may take this many times as long as the first, which ran all tests.
_PATIENCE: Final = 10.0
_LEAST_PATIENCE_S: Final = 60.0


def run_confirm_passes(
    gate: GateRun,
    tests: Sequence[str],
    workers: Workers,
    *,
    progress: Callable[[str, bool], None],
    first_pass_s: float,
) -> None:
    """Measure tests again until they are cleared, or as often as set.

    Beside them, controls that were not suspect show what the machine does meanwhile. A shift of
    the environment is believed only if they bear it out; if not, the tests that it had explained
    are measured again as well. What the gate knows of each test is complete afterwards.
    ``progress`` is called with a line, and whether it is a milestone.
    """
    passes, timeout_s = gate.settings.confirm, gate.settings.timeout
    patience_s = max(_PATIENCE * first_pass_s, _LEAST_PATIENCE_S)
    silence_s = min(timeout_s or patience_s, patience_s)
    number = 0
    while number < passes and ([t for t in tests if gate.in_question(t)] or gate.doubts_shift):
        number += 1
        doubted = gate.doubts_shift
        # Each metric as it was measured at first.
        for profiled in (False, True) if gate.device.observations else (False,):
            again = [test for test in tests if gate.in_question(test, profiled=profiled)]
            alone = doubted and not profiled
            controls = gate.controls(again, profiled=profiled) if again or alone else ()
            if not (again or controls):
                continue
            heading = confirm_heading(len(again), len(controls), number=number, passes=passes)
            asked = list(dict.fromkeys((*again, *controls)))
            one = Pass(workers, PassKind.CONFIRM, asked, silence_s=silence_s, profiled=profiled)
            results = _measure_again(one, asked, heading, progress)
            measured: dict[str, Observation] = {}
            for test, result in results.items():
                if isinstance(result, Observation):
                    measured[test] = result
                elif test not in controls:
                    gate.cannot_confirm(test, f"confirm pass {number}: {result}")
            for line in _decide(gate, measured, controls, number, profiled=profiled):
                progress(line, True)  # noqa: FBT003 (a milestone)
            if one.stopped:
                progress(f"ttnn-perf: a worker {one.stopped}", True)  # noqa: FBT003
                return
        if doubted and gate.run.shift is None:
            passes = max(passes, 1 + gate.settings.confirm)


def _measure_again(
    one: Pass, asked: Sequence[str], heading: str, progress: Callable[[str, bool], None]
) -> dict[str, Observation | str]:
    """Return each test's observation, or why it lacks one."""
    results: dict[str, Observation | str] = {}
    trouble = None
    progress(heading, True)  # noqa: FBT003 (a milestone)
    with one:
        for event in one:
            trouble = trouble_in(event) or trouble
            for test, result in results_in(event):
                if test in asked and test not in results:
                    results[test] = result
                    progress(f"{heading} ({len(results)} of {len(asked)} done)", False)  # noqa: FBT003
    if one.stopped:
        trouble = f"a worker before it {one.stopped}"
    why = trouble or "the test did not run again"
    return {test: results.get(test, why) for test in asked}


def _decide(
    gate: GateRun,
    measured: Mapping[str, Observation],
    controls: Collection[str],
    number: int,
    *,
    profiled: bool,
) -> Iterator[str]:
    """Judge the suspects by the controls; yield lines about both.

    Nothing is decided before all was measured: what a suspect shows depends on the controls.
    """
    of_controls = {test: again for test, again in measured.items() if test in controls}
    moves = gate.moves_of(of_controls)
    if moves.controls and moves.overall is not None:
        yield controls_line(moves.controls, moves.overall)
    if gate.doubts_shift and not profiled:
        refuted = gate.check_shift(moves.overall)
        if refuted is not None:
            yield shift_refuted_line(refuted)
            moves = gate.moves_of(of_controls)  # a refuted shift excuses nothing
    both = (gate.first_moves(), moves)
    for test, again in measured.items():
        if test in controls:
            continue
        before = gate.judged(test)
        suspected = {verdict.metric.name for verdict in suspects(before)} if before else set()
        asked = gate.in_question(test, profiled=profiled)
        judged = gate.confirm(test, again, number=number, profiled=profiled, moves=both)
        for verdict in judged.verdicts:
            if verdict.metric.name in asked & suspected:
                yield confirm_line(test, verdict)

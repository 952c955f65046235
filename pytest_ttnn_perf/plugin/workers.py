"""Workers: fresh processes that run tests, and passes over tests in them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from msgspec import Struct, field
from msgspec.structs import replace

from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.assignment import SIGNPOST_BEGIN, SIGNPOST_END, Assignment, PassKind
from pytest_ttnn_perf.core.codec import decode, encode
from pytest_ttnn_perf.core.errors import DecodeError, TtnnPerfError, UsageError
from pytest_ttnn_perf.core.files import new_folder
from pytest_ttnn_perf.core.metric import Source
from pytest_ttnn_perf.core.observation import Artifact, Observation
from pytest_ttnn_perf.core.settings import PassChoice, ProfilerKind
from pytest_ttnn_perf.gate.confirm import suspects
from pytest_ttnn_perf.gate.judging import DeviceResults, unavailable
from pytest_ttnn_perf.gate.record import ignore_folder
from pytest_ttnn_perf.machine.processes import (
    WorkerProcess,
    finds_modules_in,
    free_port,
    interpreter,
    last_words,
    run_bounded,
    run_command,
)
from pytest_ttnn_perf.machine.ttnn import ttnn_folder
from pytest_ttnn_perf.plugin.preflight import OWN_PASS
from pytest_ttnn_perf.plugin.wire import ASSIGNMENT, ROLE, WORKER, Message, message_of
from pytest_ttnn_perf.report.tables import format_change
from pytest_ttnn_perf.report.terminal import (
    confirm_heading,
    confirm_line,
    controls_line,
    device_pass_heading,
    shift_refuted_line,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.core.assignment import ComparedVersions
    from pytest_ttnn_perf.core.observation import JudgedTest, Verdict
    from pytest_ttnn_perf.core.ops import OpTable
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.gate.gated_run import GateRun
    from pytest_ttnn_perf.machine.processes import Ending


_ASSIGNMENT_FILE: Final = "assignment.json"
#: The passes whose by-products are not the user's.
_WITHOUT_BY_PRODUCTS: Final = frozenset({PassKind.DEVICE, PassKind.AB, PassKind.HOST})
_RESET_TIMEOUT_S: Final = 600.0
_UNUSABLE: Final = "left a device in an unusable state"
_REMEDY: Final = "reset it, and let --ttnn-perf-reset 'tt-smi -r' do so next time"


class Workers(Struct):
    """The workers of a run, and how they are started.

    ``arguments`` returns what follows the interpreter, given a worker's own folder. ``folder``
    keeps these while they run, and for good where a worker did not come to its end. ``shown``: what
    they print is shown here, too. ``versions`` is set where versions are compared. ``cwd_on_path``:
    modules are found in the current folder; None for as in this process. ``apart`` are the tests
    that are known to start a profiled process of their own.
    """

    settings: Settings
    arguments: Callable[[Path], Sequence[str]]
    cwd: Path
    folder: Path
    print_line: Callable[[str], None]
    profiler: ProfilerKind = ProfilerKind.OFF
    shown: bool = False
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))
    versions: ComparedVersions | None = None
    cwd_on_path: bool | None = None
    apart: dict[str, None] = field(default_factory=dict)
    #: The passes of the workers so far, by which they are numbered.
    started: list[PassKind] = field(default_factory=list)

    @property
    def has_device_pass(self) -> bool:
        return self.profiler in OWN_PASS and self.settings.passes is PassChoice.BOTH

    @property
    def first_kind(self) -> PassKind:
        """The pass whose reports the user sees."""
        only_device = self.settings.passes is PassChoice.DEVICE
        return PassKind.DEVICE if only_device else PassKind.WALL

    def start(
        self,
        kind: PassKind,
        tests: Sequence[str] | None,
        *,
        profiled: bool = False,
        more_room: bool = False,
        alone: bool = False,
    ) -> WorkerProcess:
        """Start a worker on ``tests``; None for all that it collects.

        ``profiled``: its profiler is on, with ``more_room`` for its data or the usual. ``alone``:
        its test is a single one, which may start a profiled process.
        """
        folder = self.next_folder(kind)
        shown = self.shown and not profiled  # what a profiled one prints is in its log
        self._assign(folder, kind, tests, profiled=profiled, alone=alone, shown=shown)
        try:
            return WorkerProcess(
                [*interpreter(), *self.arguments(folder)],
                cwd=self.cwd,
                environment=self._environment(folder, profiled=profiled, more_room=more_room),
                log=folder / "worker.log",
                shown=shown,
            )
        except OSError as cause:
            self.discard(folder)
            message = f"a worker cannot be started: {cause}"
            raise UsageError(message) from cause

    def run_batch(self, folder: Path, launcher: Sequence[str]) -> Ending:
        self._assign(folder, PassKind.DEVICE, None, profiled=True, batch=True)
        # Launchers join the words of what they launch for a shell.
        words = map(shlex.quote, self.arguments(folder))
        with (folder / "worker.log").open("ab") as log:
            return run_bounded(
                [*interpreter(), *launcher, *words],
                timeout_s=self.settings.timeout,
                stdout=log,
                stderr=log,
                cwd=self.cwd,
                environment=self._environment(folder, profiled=True),
                leave_nothing=True,
            )

    def next_folder(self, kind: PassKind) -> Path:
        self.started.append(kind)
        return new_folder(self.folder / f"{len(self.started)}-{kind.value}")

    def _assign(
        self,
        folder: Path,
        kind: PassKind,
        tests: Sequence[str] | None,
        *,
        profiled: bool,
        **how: bool,
    ) -> None:
        given = self.cwd_on_path
        off = self.profiler in OWN_PASS and not profiled
        assignment = Assignment(
            kind,
            folder,
            None if tests is None else tuple(tests),
            # The by-products of the first worker are the user's; not those of a profiled one.
            first=kind not in _WITHOUT_BY_PRODUCTS and set(self.started[:-1]) <= {PassKind.DEVICE},
            cwd_on_path=finds_modules_in(self.cwd) if given is None else given,
            profiler=ProfilerKind.OFF if off else self.profiler,
            versions=self.versions,
            apart=tuple(self.apart),
            **how,
        )
        file = folder / _ASSIGNMENT_FILE
        file.write_text(json.dumps(encode(assignment)), encoding="utf-8")

    def _environment(
        self, folder: Path, *, profiled: bool, more_room: bool = False
    ) -> dict[str, str]:
        from pytest_ttnn_perf.machine import environment as machine

        environment = dict(self.environment)
        if ttnn_folder() is not None:
            environment |= machine.worker_variables(self.environment, folder)
        if profiled:
            more_room = more_room and machine.PROGRAM_ROOM not in environment  # the user's stays
            environment |= machine.profiler_variables(self.profiler, folder, more_room=more_room)
        environment |= {ASSIGNMENT: str(folder / _ASSIGNMENT_FILE), ROLE: WORKER}
        environment.pop("TTNN_PERF_HISTORY", None)  # may hold a password that no test needs
        return environment

    def reset(self, *, hung: bool) -> str | None:
        """Reset a device whose worker was killed; return why it is unusable."""
        from pytest_ttnn_perf.machine.inspection import BROKER, BROKER_RESET, find_broker

        command, remedy = self.settings.reset, _REMEDY
        broker = find_broker(self.environment)
        if broker is not None:  # which resets its devices itself: by hand, it would end other jobs
            command = None
            remedy = f"the device broker {BROKER} resets it after this job, or {BROKER_RESET} does"
        if command is None:  # after a crash the next one mostly can
            return f"{_UNUSABLE}: {remedy}" if hung else None
        self.print_line(f"ttnn-perf: resetting the device: {command}")
        problem = run_command(command, timeout_s=_RESET_TIMEOUT_S)
        return None if problem is None else f"left a device that is not usable: {command} {problem}"

    def keep(self) -> None:
        with contextlib.suppress(TtnnPerfError):  # what is wrong with it was wrong before
            ignore_folder(self.folder.parent.parent)

    def discard(self, folder: Path) -> None:
        """Remove the folder of a worker, and those above once empty."""
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # not empty, or gone: other workers, other runs
            self.folder.rmdir()
            self.folder.parent.rmdir()


class Pass:
    """One pass over tests, in as many workers as it takes.

    As a context it yields their messages, and one of its own: ``lost`` (a worker died or hung: it
    costs the tests it was running, and the rest go on). Tests that start a profiled process come
    last, each in a worker of its own, unless they are left to another pass (``runs_apart``). Set
    ``stop``, and no more tests are started; ``damaged``, and the worker is killed. ``stopped`` is
    why no other worker was started; None if nothing was against it.
    """

    def __init__(  # noqa: PLR0913 (four keywords)
        self,
        workers: Workers,
        kind: PassKind,
        tests: Sequence[str] | None,
        *,
        silence_s: float | None = None,
        profiled: bool = False,
        more_room: bool = False,
        runs_apart: bool = True,
    ) -> None:
        self.stop: str | None = None
        self.damaged = False
        self.stopped: str | None = None
        self._workers, self._kind, self._runs_apart = workers, kind, runs_apart
        # What no other pass would give more room has it at once.
        only_device = workers.settings.passes is PassChoice.DEVICE and workers.profiler in OWN_PASS
        self._profiled, self._more_room = profiled or only_device, more_room or only_device
        self._silence_s = workers.settings.timeout if silence_s is None else silence_s
        self._left: dict[str, None] | None = None
        self._apart: dict[str, None] = {}
        if tests is not None:
            self._left = {test: None for test in tests if test not in workers.apart}
            self._apart = {test: None for test in tests if test in workers.apart}
        self._running: dict[str, None] = {}
        self._done = 0
        self._opened = False
        self._messages = self._run()

    def __enter__(self) -> Pass:
        return self

    def __exit__(self, *_: object) -> None:
        self._messages.close()  # a worker that runs is ended

    def __iter__(self) -> Iterator[Message]:
        return self._messages

    @property
    def left(self) -> tuple[str, ...]:
        return (*(self._left or ()), *(self._apart if self._runs_apart else ()))

    def _run(self) -> Generator[Message]:
        if self._left is None or self._left:
            yield from self._run_workers(alone=False)
        while self._runs_apart and self._apart and not (self.stop or self.stopped or self._left):
            test = next(iter(self._apart))
            del self._apart[test]
            self._left = {test: None}
            yield from self._run_workers(alone=True)

    def _run_workers(self, *, alone: bool) -> Generator[Message]:
        workers = self._workers
        # What profiles itself is not profiled, whatever pass it is of.
        kind = PassKind.WALL if alone and self._kind is PassKind.DEVICE else self._kind
        how = {"profiled": self._profiled and not alone, "more_room": self._more_room}
        while True:
            self._running.clear()
            self._opened, done = False, self._done
            left = None if self._left is None else tuple(self._left)
            try:
                child = workers.start(kind, left, **how, alone=alone)
            except TtnnPerfError as error:
                if left is None:  # nothing is known of any test yet
                    raise
                why = f"could not be started: {error.__cause__}; log: {workers.folder}"
                yield Message("lost", {"tests": [], "text": why, "tail": ""})
                return
            ending = None
            try:
                ending = yield from self._listen(child)
            finally:
                if ending is None:  # nothing is wrong with this worker
                    workers.discard(child.log.parent)
            if ending is None:
                return
            workers.keep()
            running = list(self._running)
            for test in running:
                self._finish(test)
            text = f"{ending}; log: {child.log}"
            yield Message("lost", {"tests": running, "text": text, "tail": last_words(child.log)})
            if self._opened and (ending.hung or ending.code < 0):  # as it was killed
                self.stopped = workers.reset(hung=ending.hung)
            # Another worker only if this one got anywhere: no test is tried for ever.
            got_on = running or self._done > done
            if not self._left or not got_on or self.stop or self.stopped:
                return

    def _listen(self, child: WorkerProcess) -> Generator[Message, None, Ending | None]:
        """Yield all messages of a worker; return how it ended if badly.

        Ctrl-C does not cut short what is made of a message, and loses none that was sent.
        """
        ended = False
        child.interrupts.hold()
        try:
            with child:
                for document in child.documents(silence_s=self._silence_s):
                    try:
                        message = self._track(message_of(document))
                        ended = ended or message.kind == "ended"
                        yield message
                    except DecodeError:
                        self.damaged = True
                    child.stop, child.damaged = self.stop, child.damaged or self.damaged
                    self.damaged = False
                ending = child.ending(patience_s=self._silence_s)
        except KeyboardInterrupt:
            with contextlib.suppress(DecodeError):
                for document in child.unread:
                    message = message_of(document)
                    if message.kind in {"started", "reported", "finished"}:
                        yield self._track(message)
            raise
        finally:
            for process in child.survivors:
                self._workers.print_line(f"ttnn-perf: a test left a process running: {process}")
            child.interrupts.release()
        return None if ended and not ending.cut and not ending.damaged else ending

    def _track(self, message: Message) -> Message:
        match message.kind:
            case "collected" if self._left is not None:
                # What was asked for by identity is known by its node id from now on.
                known = {identity: test for test, identity in message["identities"].items()}
                self._left = {known.get(test, test): None for test in self._left}
            case "collected":
                self._left = dict.fromkeys(message["tests"])
            case "opened":
                self._opened = True
            case "started":
                self._running[message.test] = None
            case "finished":
                self._running.pop(message.test, None)
                self._finish(message.test)
                if message["apart"]:
                    self._apart[message.test] = self._workers.apart[message.test] = None
        return message

    def _finish(self, test: str) -> None:
        self._done += 1
        if self._left is not None:
            self._left.pop(test, None)


def results_in(message: Message) -> Iterator[tuple[str, Observation | str]]:
    """Yield tests with their observation, or why they lack one."""
    match message:
        case Message("reported", {"report": {"outcome": "rerun"}}):
            pass  # of pytest-rerunfailures: a test counts as it ends
        case Message("reported") if message.observed is not None:
            try:
                yield message.test, decode(Observation, message.observed, key=message.test)
            except DecodeError as error:
                yield message.test, str(error)
        case Message("lost", {"tests": tests, "text": text}):
            for test in tests:
                yield test, f"its worker {text}"


def trouble_in(message: Message) -> str | None:
    match message:
        case Message("stopped", {"text": text}):
            return str(text)
        case Message("lost", {"tests": [], "text": text}):  # others would have had another worker
            return f"its worker {text}"
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
    printed_s = time.monotonic()
    one = Pass(workers, PassKind.DEVICE, tests, profiled=True, more_room=again, runs_apart=False)
    with one:
        for message in one:
            trouble = trouble_in(message) or trouble
            for test, result in results_in(message):
                waiting.pop(test, None)
                found[test] = _profiled(test, result)
            match message:
                case Message("collected", {"tests": collected}) if not count:
                    waiting, count = dict.fromkeys(collected), len(collected)
                    if collected and not again:
                        workers.print_line(device_pass_heading(count, more_room=False))
                case Message("reported" | "finished") if _is_for_wall(message):
                    waiting.pop(message.test, None)
                case Message("finished"):
                    done = count - len(waiting)
                    if done > 0 and waiting and time.monotonic() - printed_s >= _EVERY_S:
                        printed_s = time.monotonic()
                        workers.print_line(f"ttnn-perf: device pass: {done} of {count} tests")
                case Message("lost", {"tests": [*_, last], "text": text}):
                    lost = f"{last}: its worker {text}; it"
    stopped = None if one.stopped is None else f"{lost} {one.stopped}"
    why = trouble if stopped is None else f"an earlier worker {one.stopped}"
    for test in waiting:
        found[test] = _profiled(test, why or "the test did not run")
    made = count > 0 or bool(found)
    return DeviceResults(found, None if made else trouble, stopped, made=made)


def _is_for_wall(message: Message) -> bool:
    if message.kind == "finished":
        return bool(message["apart"])
    return message.observed is None and message["report"].get("outcome") == "skipped"


def _profiled(test: str, result: Observation | str) -> Observation:
    if isinstance(result, Observation) and not result.ended:
        return result
    why = result if isinstance(result, str) else result.ended
    return unavailable(test, f"device pass: {why}")


_MARK: Final = re.compile(r"ttnn-perf begin (\d+)\.(\d+) (.*)", re.DOTALL)


def profile_with_tracy(workers: Workers) -> DeviceResults:
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
            found = dict(_read_report(wings.captures.op_table_of(files[-1]), workers.settings))
            workers.discard(folder)
            return DeviceResults(found, stopped=stopped, made=True)
        why = f"Tracy {ending} without a report; see {folder}"
        workers.keep()
    except TtnnPerfError as error:
        why = str(error)
    print_line(f"ttnn-perf: device pass: {why}")
    return DeviceResults(unavailable=why, stopped=stopped)


def _read_report(table: OpTable, settings: Settings) -> Iterator[tuple[str, Observation]]:
    from pytest_ttnn_perf.measure.recorder import check_test

    tests: dict[str, dict[int, list[str]]] = {}
    for signpost in table.signposts:
        mark = _MARK.fullmatch(signpost.name)
        if mark is not None:
            tests.setdefault(mark[3], {}).setdefault(int(mark[1]), []).append(signpost.name)
    for test, runs in tests.items():
        names = runs[max(runs)]  # a test that ran again counts as it ended
        try:
            marks = [(n, SIGNPOST_END + n.removeprefix(SIGNPOST_BEGIN)) for n in names]
            calls = wings.captures.calls_between(table, marks)
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
    measured = wings.captures.measured_ops(calls, "Tracy's report")
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
    first_pass_s: float,
) -> None:
    """Measure tests again until they are cleared, or as often as set.

    Beside them, controls that were not suspect show what the machine does meanwhile. A shift of
    the environment is believed only if they bear it out; if not, the tests that it had explained
    are measured again as well. What the gate knows of each test is complete afterwards.
    """
    passes, timeout_s = gate.settings.confirm_passes, gate.settings.timeout
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
            workers.print_line(
                confirm_heading(len(again), len(controls), number=number, passes=passes)
            )
            asked = list(dict.fromkeys((*again, *controls)))
            one = Pass(workers, PassKind.CONFIRM, asked, silence_s=silence_s, profiled=profiled)
            results = _measure_again(one, asked)
            measured: dict[str, Observation] = {}
            for test, result in results.items():
                if isinstance(result, Observation):
                    measured[test] = result
                elif test not in controls:
                    gate.cannot_confirm(test, f"confirm pass {number}: {result}")
            for line in _decide(gate, measured, controls, number, profiled=profiled):
                workers.print_line(f"confirm {number}/{passes}, {line}")
            if one.stopped:
                workers.print_line(f"ttnn-perf: a worker {one.stopped}")
                return
        if doubted and gate.run.shift is None:
            passes = max(passes, 1 + gate.settings.confirm_passes)


def measure_in_turns(
    gate: GateRun, tests: Sequence[str], workers: Workers, words: Sequence[str]
) -> frozenset[str]:
    """Measure tests in doubt in turns with the commits of their baselines.

    ``words`` are the arguments of pytest. Returns the tests that were tried.
    """
    commits: dict[str | None, list[str]] = {}
    asked = {test for test in tests if gate.in_doubt(test)}
    for test in sorted(asked):
        try:
            commits.setdefault(gate.accepted_commit(test), []).append(test)
        except UsageError as error:
            gate.add_rounds(test, {}, str(error))
    for commit, own in commits.items():
        found: Mapping[str, Mapping[str, Verdict]] = {}
        why = "not measured on both sides"
        try:
            found = wings.rounds.against(
                commit, own, words, workers.cwd, gate.settings, workers.print_line
            )
        except TtnnPerfError as error:
            why = str(error).partition("\n")[0]
            workers.print_line(f"ttnn-perf: no rounds: {error}")
        for test in own:
            judged = gate.add_rounds(test, found.get(gate.identity(test), {}), why)
            for name, observed in judged.observation.metrics.items():
                if observed.rounds is not None:
                    workers.print_line(f"{test}: {name} {observed.rounds.detail}")
    return frozenset(asked)


def explain_host(
    gate: GateRun, tests: Sequence[str], workers: Workers, words: Sequence[str]
) -> None:
    """Profile both sides of tests that only the host makes slower."""
    commits: dict[str, dict[str, float]] = {}
    for test in tests if gate.settings.confirm != 0 else ():
        found = gate.slower_on_host(test)
        if found is not None:
            commits.setdefault(found[0], {})[test] = found[1]
    for commit, slower_ns in commits.items():
        try:
            sentences = wings.host.explain(
                commit, slower_ns, words, workers.cwd, gate.settings, workers.print_line
            )
        except TtnnPerfError as error:
            workers.print_line(f"ttnn-perf: the host is not explained: {error}")
        else:
            for test, sentence in sentences.items():
                gate.explain_host(test, sentence)


def _measure_again(one: Pass, asked: Sequence[str]) -> dict[str, Observation | str]:
    results: dict[str, Observation | str] = {}
    trouble = None
    with one:
        for message in one:
            trouble = trouble_in(message) or trouble
            for test, result in results_in(message):
                if test in asked:
                    results.setdefault(test, result)
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
    for move in moves.by_source.values():
        if format_change(move) != format_change(0):
            yield controls_line(moves.controls, move)
    if gate.doubts_shift and not profiled:
        refuted = gate.check_shift(moves)
        if refuted is not None:
            yield shift_refuted_line(refuted)
            moves = gate.moves_of(of_controls)  # a refuted shift excuses nothing
    again_of = {test: again for test, again in measured.items() if test not in controls}
    for test, again in again_of.items():
        before = gate.judged(test)
        asked = gate.in_question(test, profiled=profiled)
        suspected = asked & (_suspected(before) if before else set())
        judged = gate.confirm(test, again, number=number, profiled=profiled, moves=moves)
        decided = suspected - (gate.in_question(test, profiled=profiled) & _suspected(judged))
        for verdict in judged.verdicts:
            if verdict.metric.name in decided:
                yield confirm_line(test, verdict)


def _suspected(judged: JudgedTest) -> set[str]:
    return {verdict.metric.name for verdict in suspects(judged)}

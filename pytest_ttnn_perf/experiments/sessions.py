"""Sessions: the same tests in one fresh process after another."""

from __future__ import annotations

import re
import secrets
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import Acceptance, MetricBaseline, TestBaseline
from pytest_ttnn_perf.core.codec import decode
from pytest_ttnn_perf.core.errors import DecodeError, UsageError
from pytest_ttnn_perf.core.observation import Observation
from pytest_ttnn_perf.core.verdict import Outcome
from pytest_ttnn_perf.gate.judge import judge_test, session_of
from pytest_ttnn_perf.measure.strays import Stray
from pytest_ttnn_perf.plugin.wire import Collected, Finished, Reported, StopCause, Stopped, Strayed
from pytest_ttnn_perf.plugin.workers import LostWorker, Pass, Workers
from pytest_ttnn_perf.report.sentences import sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.plugin.workers import Event


class Sessions(Struct):
    """Results of all sessions so far, by the identities of tests.

    ``troubles`` says why a test has no result, ``stopped`` why there are fewer sessions than
    ``wanted``. ``collected`` are the tests that the first worker has collected. ``no_room`` are
    points of sweeps that do not fit, and never did.
    """

    wanted: int
    completed: int = 0
    measured: dict[str, list[Observation]] = {}
    troubles: dict[str, str] = {}
    stopped: str | None = None
    collected: Collected | None = None
    no_room: dict[str, str] = {}

    def good(self) -> dict[str, list[Observation]]:
        """Return the tests that had no trouble in any session."""
        return {t: seen for t, seen in self.measured.items() if t not in self.troubles}


def experiment_workers(
    command: str,
    settings: Settings,
    cwd: Path,
    argv: Callable[[], Sequence[str]],
    *,
    label: str = "",
    print_line: Callable[[str], None],
) -> Workers:
    """Return workers that write into folders of their own."""
    run = f"{command}-{datetime.now(timezone.utc):%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}{label}"
    return Workers(
        settings,
        arguments=lambda folder: [
            "-m", "pytest", "--ttnn-perf", "-o", f"cache_dir={folder / 'cache'}", *argv(),
        ],
        cwd=cwd,
        folder=settings.artifacts.absolute() / "passes" / run,
        print_line=print_line,
    )  # fmt: skip


class Session:
    """One session, or one side of a round, and its workers' messages.

    ``progress`` is called with how many tests are over, and of how many. ``begin`` is called in the
    first session, before a test runs. ``complete`` adds to an observation what is known from
    elsewhere. What is compared exactly must be as in the first session, unless ``is_round``.
    """

    def __init__(
        self,
        found: Sessions,
        number: int,
        progress: Callable[[int, int | None], None],
        begin: Callable[[Collected], None] = lambda _: None,
        *,
        is_round: bool = False,
    ) -> None:
        self.found, self.number, self.is_round = found, number, is_round
        self.complete: Callable[[Observation], Observation] = lambda observation: observation
        self.stop: str | None = None
        self.strays: list[Stray] = []
        self._progress, self._begin = progress, begin
        self._word = "round" if is_round else "session"
        self._collected: Collected | None = None
        self._done = 0
        self._reported: set[str] = set()
        self._refused: str | None = None

    def run(self, one: Pass) -> None:
        """Take in all that the workers of a pass send."""
        with one:
            for event in one:
                self.receive(event)
                one.stop = self.stop
        if one.stopped:
            self.found.stopped = f"stopped in {self._word} {self.number} (a worker {one.stopped})"

    def receive(self, message: Event) -> None:
        """Keep observations and troubles; report the progress."""
        match message:
            case Collected():
                self._collect(message)
            case Reported():
                self._receive(message)
            case Finished(apart=False):
                self._done += 1
                self._report_progress()
            case Stopped():
                self._refused = self._refused or _reason(message)
            case Strayed(modules=modules):
                strays = [Stray(*stray) for stray in modules]
                self.strays += [stray for stray in strays if stray not in self.strays]
                self.stop = "code of another version was loaded"
            case LostWorker():
                for started in message.tests:
                    self._trouble(self._identity(started.test), f"its {message}")
                if not message.tests and not self._done:
                    self._refused = self._refused or f"the {message}\n{message.tail}"

    def close(self, left: Iterable[str], asked: Iterable[str] | None = None) -> None:
        """Note the tests that this session should have measured and did not.

        ``left`` are those that no worker came to run; ``asked`` those that were to be measured
        again, None for all that had no trouble.

        Raises:
            UsageError: it is the first session, and it could not be run.
        """
        if self._refused is not None:
            if self.number == 1:
                raise UsageError(self._refused)
            self.found.stopped = f"stopped in {self._word} {self.number} ({self._refused})"
            return
        good = self.found.good()
        for test in good if asked is None else asked:
            if test in good and test not in self._reported:
                self._trouble(test, "the test did not run again")
        measured = self._collected.measured if self._collected else None
        for test in left:
            if measured is None or test in measured:
                self._trouble(self._identity(test), "the test did not run")
        if self._collected and self._done < len(self._collected.tests):
            self._done = len(self._collected.tests)
            self._report_progress()

    def _collect(self, message: Collected) -> None:
        if self.is_round and message.measured is None:
            wrong = "versions are compared one test at a time: leave out -n and --tx"
            raise UsageError(wrong)
        if message.tests and self._collected is None:
            if self.number == 1:
                self._begin(message)
                self.found.collected = message
            self._collected = message
            self._report_progress()

    def _receive(self, message: Reported) -> None:
        report, failed = message.report, message.report.get("outcome") == "failed"
        if message.of_collection:
            if failed:
                why = f"{_last_line(report)}{_place(report)}"
                self._refused = f"{report['nodeid']} cannot be collected: {why}"
                self.stop = self._refused  # whatever options ask to run the rest even so
            return
        test = self._identity(message.test)
        trouble = _last_line(message.report) if failed else None
        if message.observed is not None:
            self._reported.add(test)
            try:
                observation = decode(Observation, message.observed, key=test)
                if test != message.test:
                    observation = replace(observation, node_id=message.test)
                observation = self.complete(observation)
            except DecodeError as error:
                self._trouble(test, str(error))
                return
            if observation.out_of_memory is not None and test not in self.found.measured:
                self.found.no_room.setdefault(test, f"out of memory: {observation.out_of_memory}")
                return
            seen = self.found.measured.setdefault(test, [])
            trouble = trouble or _flaw(observation)
            if not self.is_round:
                trouble = trouble or _difference(observation, seen)
            seen.append(observation)
        if trouble is not None and test in self.found.measured:
            self._trouble(test, trouble)

    def _identity(self, test: str) -> str:
        # Versions with other targets have other node ids.
        return self._collected.identities.get(test, test) if self._collected else test

    def _trouble(self, test: str, why: str) -> None:
        self.found.troubles.setdefault(test, f"{self._word} {self.number}: {why}")

    def _report_progress(self) -> None:
        self._progress(self._done, len(self._collected.tests) if self._collected else None)


def _reason(stopped: Stopped) -> str:
    if stopped.cause is StopCause.REFUSED:
        return stopped.text
    if stopped.cause is StopCause.BROKE:
        return f"internal error of a worker\n{stopped.text}"
    return f"a test or a plugin ended the session: {stopped.text or 'interrupted'}"


def _flaw(observation: Observation) -> str | None:
    """Return why an observation can be no baseline."""
    if observation.problems:
        return observation.problems[0]
    if observation.out_of_memory is not None:
        return f"out of memory: {observation.out_of_memory}"
    for verdict in judge_test(observation, None):
        if verdict.outcome is not Outcome.NO_BASELINE:
            return sentence(verdict)
    return None


def _difference(observation: Observation, seen: list[Observation]) -> str | None:
    """Return what differs from the first session and must not.

    What is compared exactly would fail against itself, and another configuration is another test.
    """
    if not seen:
        return None
    first = TestBaseline(Acceptance(""), baselines_of(seen[:1]), seen[0].setting)
    for verdict in judge_test(observation, first):
        by_ratio = verdict.metric.compared_by_ratio and verdict.change is not None
        if not by_ratio and verdict.outcome is not Outcome.WITHIN:
            return f"not as in session 1: {sentence(verdict)}"
    return None


def _last_line(report: dict[str, object]) -> str:
    """Return the error of a serialised report."""
    representation = report.get("longrepr")
    if isinstance(representation, dict):
        crash = representation.get("reprcrash")
        if isinstance(crash, dict) and crash.get("message"):
            return str(crash["message"]).splitlines()[0]
    lines = str(representation or "it failed").strip().splitlines()
    return lines[-1].removeprefix("E  ").strip()  # pytest's mark of an error's own lines


#: A line of code in a traceback, as Python and as pytest print it.
_PLACE: Final = re.compile(r'File "([^"]+)", line (\d+)|^(\S+\.py):(\d+): ', re.MULTILINE)


def _place(report: dict[str, object]) -> str:
    places = list(_PLACE.finditer(str(report.get("longrepr"))))
    if not places:
        return ""
    file, line, short, number = places[-1].groups()
    return f" ({Path(file or short).name}:{line or number})"


def baselines_of(seen: list[Observation], run: str = "") -> dict[str, MetricBaseline]:
    """Return the baselines of gated metrics that all sessions recorded."""
    return {
        name: MetricBaseline(
            observed.metric,
            tuple(
                session_of(observation.metrics[name], observation.metrics[name].samples, run)
                for observation in seen
            ),
        )
        for name, observed in seen[0].metrics.items()
        if observed.gated and all(name in observation.metrics for observation in seen)
    }

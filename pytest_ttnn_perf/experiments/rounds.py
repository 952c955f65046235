"""Rounds: two versions of a project measured in turns in fresh processes.

Which version is the first of a round is random, and as often the one as the other: what the second
process has to bear, and what the machine repeats, is to the disadvantage of neither.
"""

from __future__ import annotations

import os
import secrets
import time
from contextlib import contextmanager
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.assignment import ComparedVersions, PassKind
from pytest_ttnn_perf.core.baseline import Acceptance, MetricBaseline, TestBaseline
from pytest_ttnn_perf.core.codec import decode
from pytest_ttnn_perf.core.errors import DecodeError, UsageError
from pytest_ttnn_perf.core.metric import Better, Source, representative
from pytest_ttnn_perf.core.observation import (
    NO_LIMITS,
    JudgedTest,
    Observation,
    Outcome,
    Reason,
    Verdict,
)
from pytest_ttnn_perf.core.settings import MIN_ROUNDS
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.experiments.paired import (
    Comparison,
    Plan,
    Round,
    by_op_of,
    judge_rounds,
    pairs_of,
)
from pytest_ttnn_perf.experiments.repository import Builds, remove_leftovers, temporary_checkout
from pytest_ttnn_perf.gate.judge import judge_test, session_of, with_parts_explaining
from pytest_ttnn_perf.gate.record import ignore_folder
from pytest_ttnn_perf.machine.inspection import Stray, import_root, own_place
from pytest_ttnn_perf.machine.processes import finds_modules_in, signals_interrupt
from pytest_ttnn_perf.plugin.preflight import choose_profiler, lease
from pytest_ttnn_perf.plugin.wire import Message
from pytest_ttnn_perf.plugin.workers import Pass, Workers, run_device_pass
from pytest_ttnn_perf.report.sentences import command_line, sentence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.experiments.paired import Pair
    from pytest_ttnn_perf.experiments.repository import Commit

    Seen = Sequence[Observation]


class Sessions(Struct):
    """Results of all sessions so far, by the identities of tests.

    ``troubles`` says why a test has no result, ``stopped`` why there are fewer sessions than
    ``wanted``, ``no_room`` which points of sweeps never fitted. The first worker ``collected``.
    """

    wanted: int
    completed: int = 0
    measured: dict[str, list[Observation]] = {}
    troubles: dict[str, str] = {}
    stopped: str | None = None
    collected: Message | None = None
    no_room: dict[str, str] = {}

    def good(self) -> dict[str, list[Observation]]:
        return {t: seen for t, seen in self.measured.items() if t not in self.troubles}


class Experiment(Struct, frozen=True):
    """The arguments of a command that measures versions in turns.

    ``command`` are the words before pytest's ``argv``. ``progress`` is called with a line, and
    whether something has just been measured. ``receipts``: it is recorded how times are taken.
    ``seed`` decides the order of versions. ``build`` is the command that builds each of them.
    """

    command: tuple[str, ...]
    argv: Sequence[str]
    rounds: int
    cwd: Path
    settings: Settings
    progress: Callable[[str, bool], None]
    shared: tuple[str, ...] = ()
    receipts: bool = False
    seed: int = 0
    build: str | None = None

    @property
    def plan(self) -> Plan:
        return Plan(self.rounds, self.seed)

    def print_line(self, text: str) -> None:
        self.progress(text, True)  # noqa: FBT003

    def workers(self, cwd: Path, argv: Callable[[], Sequence[str]], label: str = "") -> Workers:
        """Return workers that write into folders of their own."""
        now = datetime.now(timezone.utc)
        run = f"{self.command[0]}-{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}{label}"
        return Workers(
            self.settings,
            arguments=lambda folder: [
                "-m", "pytest", "--ttnn-perf", "-o", f"cache_dir={folder / 'cache'}", *argv(),
            ],
            cwd=cwd,
            folder=self.settings.artifacts.absolute() / "passes" / run,
            print_line=self.print_line,
        )  # fmt: skip


def experiment_of_gate(
    commit: Commit,
    words: Sequence[str],
    rounds: int,
    cwd: Path,
    settings: Settings,
    progress: Callable[[str, bool], None],
) -> Experiment:
    """Return the experiment of a gated run with a commit."""
    seed, command = secrets.randbelow(2**32), ("ab", commit.short)
    return Experiment(
        command, words, rounds, cwd, settings, progress, seed=seed, build=settings.build
    )


class Session:
    """One session, or one side of a round, and its workers' messages.

    ``begin`` is called in the first session, before a test runs. ``complete`` adds to an
    observation what is known from elsewhere.
    """

    def __init__(
        self,
        found: Sessions,
        number: int,
        progress: Callable[[int, int | None], None],
        begin: Callable[[Message], None] = lambda _: None,
        *,
        is_round: bool = False,
    ) -> None:
        self.found, self.number, self.is_round = found, number, is_round
        self.complete: Callable[[Observation], Observation] = lambda observation: observation
        self.stop: str | None = None
        self.strays: list[Stray] = []
        self._progress, self._begin = progress, begin
        self._word = "round" if is_round else "session"
        self._collected: Message | None = None
        self._done = 0
        self._reported: set[str] = set()
        self._refused: str | None = None

    def run(self, one: Pass) -> None:
        with one:
            for message in one:
                self.receive(message)
                one.stop = self.stop
        if one.stopped:
            self.found.stopped = f"stopped in {self._word} {self.number} (a worker {one.stopped})"

    def receive(self, message: Message) -> None:
        match message:
            case Message("collected"):
                self._collect(message)
            case Message("reported"):
                self._receive(message)
            case Message("finished", {"apart": False}):
                self._done += 1
                self._report_progress()
            case Message("stopped", {"cause": cause, "text": text}):
                causes = {"refused": text, "broke": f"internal error of a worker\n{text}"}
                ended = f"a test or a plugin ended the session: {text or 'interrupted'}"
                self._refused = self._refused or causes.get(cause, ended)
            case Message("strayed", {"modules": modules}):
                strays = [Stray(*stray) for stray in modules]
                self.strays += [stray for stray in strays if stray not in self.strays]
                self.stop = "code of another version was loaded"
            case Message("lost", {"tests": tests, "text": text, "tail": tail}):
                for test in tests:
                    self._trouble(self._identity(test), f"its worker {text}")
                if not tests and not self._done:
                    self._refused = self._refused or f"the worker {text}\n{tail}"

    def close(self, left: Iterable[str], asked: Iterable[str] | None = None) -> None:
        """Note the tests that this session should have measured and did not.

        ``left`` are those that no worker came to run; ``asked`` those that were to be measured
        again, None for all that had no trouble.
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
        measured = self._collected["measured"] if self._collected else None
        for test in left:
            if measured is None or test in measured:
                self._trouble(self._identity(test), "the test did not run")

    def _collect(self, message: Message) -> None:
        if self.is_round and message["measured"] is None:
            wrong = "versions are compared one test at a time: leave out -n and --tx"
            raise UsageError(wrong)
        if message["tests"] and self._collected is None:
            if self.number == 1:
                self._begin(message)
                self.found.collected = message
            self._collected = message
            self._report_progress()

    def _receive(self, message: Message) -> None:
        report = message["report"]
        failed = report.get("outcome") == "failed"
        if message.of_collection:
            if failed:
                self._refused = f"{report['nodeid']} cannot be collected: {_last_line(report)}"
                self.stop = self._refused  # whatever options ask to run the rest even so
            return
        test = self._identity(message.test)
        trouble = _last_line(report) if failed else None
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
            if observation.out_of_memory and test not in self.found.measured:
                self.found.no_room.setdefault(test, str(observation.ended))
                return
            seen = self.found.measured.setdefault(test, [])
            trouble = trouble or _flaw(observation)
            seen.append(observation)
        if trouble is not None and test in self.found.measured:
            self._trouble(test, trouble)

    def _identity(self, test: str) -> str:
        # Versions with other targets have other node ids.
        return str(self._collected["identities"].get(test, test)) if self._collected else test

    def _trouble(self, test: str, why: str) -> None:
        self.found.troubles.setdefault(test, f"{self._word} {self.number}: {why}")

    def _report_progress(self) -> None:
        self._progress(self._done, len(self._collected["tests"]) if self._collected else None)


def _flaw(observation: Observation) -> str | None:
    if observation.problems:
        return observation.problems[0]
    if observation.out_of_memory:
        return str(observation.ended)
    for verdict in judge_test(observation, None):
        if verdict.outcome is not Outcome.NO_BASELINE:
            return sentence(verdict)
    return None


def _last_line(report: dict[str, object]) -> str:
    representation = report.get("longrepr")
    if isinstance(representation, dict):
        crash = representation.get("reprcrash")
        if isinstance(crash, dict) and crash.get("message"):
            return str(crash["message"]).splitlines()[0]
    lines = str(representation or "it failed").strip().splitlines()
    return lines[-1].removeprefix("E  ").strip()  # pytest's mark of an error's own lines


def baselines_of(seen: list[Observation]) -> dict[str, MetricBaseline]:
    """Return the baselines of gated metrics that all sessions recorded."""
    return {
        name: MetricBaseline(
            observed.metric,
            tuple(
                session_of(observation.metrics[name], observation.metrics[name].samples, "")
                for observation in seen
            ),
        )
        for name, observed in seen[0].metrics.items()
        if observed.gated and all(name in observation.metrics for observation in seen)
    }


# Two versions of a project, and the workers that measure each of them.

#: Options of pytest whose value may be the name of a file, which then is no test to run.
_WITH_PATH: Final = frozenset({
    "-c", "--config-file", "--rootdir", "--confcutdir", "--ignore", "--deselect", "--basetemp",
    "-k", "-m", "-p", "-o", "-W", "-n", "-r", "--junitxml", "--junit-xml", "--log-file",
})  # fmt: skip


#: Variables that say where code is.
_PLACES: Final = frozenset(
    {"PYTHONPATH", "LD_LIBRARY_PATH", "TT_METAL_HOME", "TT_METAL_RUNTIME_ROOT"}
)


class Move(Struct, frozen=True):
    """The way from the project in ``root`` to a version in ``tree``."""

    root: Path
    tree: Path
    cwd: Path

    @property
    def is_users(self) -> bool:
        return self.tree == self.root

    @property
    def there(self) -> Path:
        return self.tree / self.cwd.relative_to(self.root)

    def path(self, text: str) -> str:
        """Move a text that begins with a path into the project."""
        root = str(self.root)
        after = text[len(root) : len(root) + 1]
        inside = text.startswith(root) and after in {"", os.sep, ":"}
        return f"{self.tree}{text[len(root) :]}" if inside else text

    def argv(self, argv: Sequence[str], *, chooses: bool = False) -> tuple[tuple[str, ...], bool]:
        """Return pytest's arguments there, and if they choose more tests.

        A file or test that only this project has is left out: pytest would refuse all for one that
        is not there. The tests of a file are then chosen by their ids: those that another version
        collects. The one that ``chooses`` keeps the ids that were given.
        """
        if self.is_users:
            return tuple(argv), False
        kept, missing, named = [], [], False
        for before, word in zip(("", *argv), argv, strict=False):
            file, of_test, _ = word.partition("::")
            option = word.startswith("-") or before in _WITH_PATH
            if option or not file or not (self.cwd / file).exists():
                name, equals, value = word.partition("=")
                kept.append(f"{name}={self.path(value)}" if equals else self.path(word))
            elif not Path(self.path(str(self.cwd / file))).exists():
                missing.append(word)
            else:
                kept.append(self.path(word if chooses else file))
                named = named or bool(of_test)
        if missing and not any((self.cwd / word.partition("::")[0]).exists() for word in kept):
            message = f"nothing to compare: the commit does not have {', '.join(missing)}"
            raise UsageError(message)
        return tuple(kept), named or bool(missing)

    def environment(self, variables: Mapping[str, str]) -> dict[str, str]:
        """Return the environment, with code looked for in the other project.

        What is not there, such as a build, stays that of the project; modules do not.
        """
        moved = dict(variables)
        if self.is_users:
            return moved
        for name in _PLACES & {name for name, text in moved.items() if text}:
            places = ((place, self.path(place)) for place in moved[name].split(os.pathsep))
            moved[name] = os.pathsep.join(
                there if name == "PYTHONPATH" or Path(there).exists() else place
                for place, there in places
            )
        if "PWD" in moved:
            moved["PWD"] = str(self.there)
        return moved


class Version:
    """A version that is measured, its workers, and its results so far.

    ``other`` is a folder whose code it must not run. ``tests`` are those to run at first; None for
    all that are collected. The later one ``chooses``: its tests run in both.
    """

    def __init__(
        self,
        name: str,
        move: Move,
        other: Path,
        asked: Experiment,
        *,
        tests: Sequence[str] | None = None,
        chooses: bool = False,
    ) -> None:
        self.name, self.move, self.asked, self.tests = name, move, asked, tests
        shared = () if move.is_users else asked.shared
        self.rootdir: str | None = None
        self.found = Sessions(asked.rounds)
        if not move.there.is_dir():
            message = f"{name} has no folder {move.cwd.name}: nothing to compare"
            raise UsageError(message)
        argv, self.is_narrowed = move.argv(asked.argv, chooses=chooses and tests is None)
        given = any(word.startswith("--rootdir") for word in argv)

        def arguments() -> tuple[str, ...]:
            known = [] if given or self.rootdir is None else [f"--rootdir={self.rootdir}"]
            return (*known, *argv)

        self.workers = asked.workers(move.there, arguments, "-after" if chooses else "-before")
        chosen = choose_profiler(asked.settings, os.environ, isolated=True)
        self.workers.profiler = chosen.kind
        self.versions = ComparedVersions(move.tree, other, shared, receipts=asked.receipts)
        self.workers.cwd_on_path = finds_modules_in(move.cwd)
        self.workers.environment = move.environment(self.workers.environment)

    def follow(self, after: Version, collected: Message) -> None:
        """Take root and settings of the version that was collected."""
        root = collected["root"]
        if root is not None:
            self.versions = replace(self.versions, settings=Path(root))
            self.rootdir = replace(self.move, root=after.move.tree).path(root)


# Judging: every gated metric of the tests that both versions have.


def is_exact(before: Seen, after: Seen) -> bool:
    """One round is enough: no time of a simulation is judged."""
    for each in (*before, *after):
        gated = [observed.metric for observed in each.metrics.values() if observed.gated]
        counts = bool(gated) and all(metric.source is Source.SIM for metric in gated)
        if not (each.is_simulated or counts) or any(m.compared_by_ratio for m in gated):
            return False
    return True


def compare_tests(
    before: Mapping[str, Seen], after: Mapping[str, Seen], plan: Plan
) -> list[Comparison]:
    """Judge every gated metric; all share one chance of a false alarm."""
    tests = [
        _TestRounds(test, before[test][:whole], seen[:whole])
        for test, seen in after.items()
        if test in before
        and (whole := min(len(before[test]), len(seen)))
        and (whole >= MIN_ROUNDS or is_exact(before[test], seen))
    ]
    plan = plan._replace(comparisons=max(1, sum(test.comparisons for test in tests)))
    return [compared for test in tests for compared in test.judge(plan)]


def undecided_tests(compared: Sequence[Comparison]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.test for each in compared if each.is_undecided))


class _TestRounds:
    """One test on both sides, with as many rounds of each."""

    def __init__(self, test: str, before: Seen, after: Seen) -> None:
        self.test, self.before, self.after = test, before, after
        then, self.now = _merge_rounds(before), _merge_rounds(after)
        sides = (then.metrics, self.now.metrics)
        self.by_op = by_op_of(then, self.now)
        self.gated = [
            pair
            for pair in pairs_of(JudgedTest(then), JudgedTest(self.now))
            if any(side[pair.metric].gated for side in sides if pair.metric in side)
        ]

    @property
    def comparisons(self) -> int:
        """The metrics that are judged by their rounds, and explain no other."""
        names = {pair.metric for pair in self.gated}
        return sum(
            pair.after.metric.compared_by_ratio
            and (
                self.now.metrics[pair.metric].limits != NO_LIMITS
                or names.isdisjoint(pair.after.metric.totals)
            )
            for pair in self.gated
            if pair.before is not None and pair.after is not None and pair.obstacle is None
        )

    def judge(self, plan: Plan) -> Iterator[Comparison]:
        # With its own setting: one that differs is an obstacle, in the words of this command.
        stored = TestBaseline(Acceptance(""), baselines_of(list(self.before)), self.now.setting)
        exact = {verdict.metric.name: verdict for verdict in judge_test(self.now, stored)}
        judged = [self._judge(pair, exact, plan) for pair in self.gated]
        verdicts = with_parts_explaining([paired.verdict for paired in judged], self.now)
        for pair, paired, verdict in zip(self.gated, judged, verdicts, strict=True):
            before, after = (
                tuple(
                    representative(observed.metric, observed.samples)
                    for observation in seen
                    if (observed := observation.metrics.get(pair.metric)) and observed.samples
                )
                for seen in (self.before, self.after)
            )
            own = self.now.metrics.get(pair.metric)
            yield replace(
                paired,
                verdict=verdict,
                rounds=paired.rounds or len(self.after),
                test=self.test,
                before=before,
                after=after,
                obstacle=pair.obstacle,
                by_op=self.by_op if verdict.is_of_changed_time else None,
                limits=own.limits if own else NO_LIMITS,
            )

    def _judge(self, pair: Pair, exact: Mapping[str, Verdict], plan: Plan) -> Comparison:
        name, then, now = pair.metric, pair.before, pair.after
        if then is None or now is None:
            reason = Reason.NEW_METRIC if now else Reason.NOT_RECORDED
            verdict = Verdict((now or then).metric, Outcome.NOT_COMPARABLE, reason)  # type: ignore[union-attr]
            observed, centre = (side.value if side else None for side in (now, then))
            return Comparison(replace(verdict, observed=observed, centre=centre))
        if any(name not in observation.metrics for observation in (*self.before, *self.after)):
            return Comparison(Verdict(now.metric, Outcome.NO_DATA, Reason.NOT_RECORDED))
        if pair.obstacle is not None:
            verdict = Verdict(now.metric, Outcome.NOT_COMPARABLE, Reason.OTHER_CONFIGURATION)
            return Comparison(replace(verdict, observed=now.value, centre=then.value))
        if now.metric.compared_by_ratio:
            limits = self.after[-1].metrics[name].limits
            rounds = rounds_of(name, self.before, self.after, plan)
            return judge_rounds(now.metric, rounds, limits, plan=plan)
        values = [sample for seen in self.before for sample in seen.metrics[name].samples]
        if then.metric.better is Better.EQUAL and min(values) != max(values):
            reason, detail = Reason.SAMPLES_DIFFER, f"{min(values)!r} to {max(values)!r}"
            verdict = Verdict(then.metric, Outcome.TOO_NOISY, reason, detail, centre=values[0])
            return Comparison(verdict)
        return Comparison(exact[name])


def rounds_of(name: str, before: Seen, after: Seen, plan: Plan) -> list[Round]:
    return [
        Round(then.metrics[name].samples, now.metrics[name].samples, before_first)
        for then, now, before_first in zip(before, after, plan.orders(), strict=False)
    ]


def _merge_rounds(seen: Seen) -> Observation:
    metrics = {name: metric for observed in seen for name, metric in observed.metrics.items()}
    joined = {
        name: replace(
            metric,
            samples=tuple(s for o in seen if name in o.metrics for s in o.metrics[name].samples),
        )
        for name, metric in metrics.items()
    }
    ops = next((o.ops for o in reversed(seen) if o.ops), None)
    return replace(seen[-1], metrics=joined, ops=ops)


class InTurns(Protocol):
    """Two versions measured round by round, and their results so far."""

    before: Sessions
    after: Sessions

    def run(self, number: int, tests: Sequence[str] | None) -> str | None:
        """Run a round of some tests; return why no other can follow."""


def run_rounds(
    turns: InTurns,
    rounds: int,
    look: Callable[[int], Sequence[str]],
    check: Callable[[InTurns, int], str | None] | None = None,
) -> str | None:
    """Run rounds until all is decided; return why it ended early.

    ``look`` is called after some of them, and returns the tests that are to be measured on;
    ``check`` after each, and returns why no other may follow. Ctrl-C, or a round that cannot be run
    after others could, keeps what there is.
    """
    looks = Plan(rounds).looks()
    tests: Sequence[str] | None = None
    try:
        for number in range(1, rounds + 1):
            stopped = turns.run(number, tests)
            if stopped is None and check is not None:
                stopped = check(turns, number)
            if stopped is not None:
                return stopped
            tests = look(number) if number in looks else tests
            # What has failed once has no result any more, and what is exact is known: more rounds
            # cost time only.
            before, after = turns.before.good(), turns.after.good()
            good = [test for test in in_both(turns) if not is_exact(before[test], after[test])]
            tests = tuple(test for test in (good if tests is None else tests) if test in good)
            if not tests:
                return None
    except KeyboardInterrupt:
        return "interrupted"
    return None


def in_both(turns: InTurns) -> tuple[str, ...]:
    known = turns.before.good()
    return tuple(test for test in turns.after.good() if test in known)


@contextmanager
def hold_machine(root: Path, asked: Experiment) -> Iterator[None]:
    """Hold the chips, let signals interrupt, and remove leftovers."""
    with signals_interrupt(), lease(asked.settings, os.environ, asked.print_line):
        left = remove_leftovers(root)
        if left:
            asked.print_line(f"removed what {counted(left, 'earlier run')} left behind")
        yield


def builds_of(asked: Experiment, root: Path) -> Builds | None:
    """Return what builds each version; None if nothing is to be built."""
    if asked.build is None:
        return None
    ignore_folder(asked.settings.artifacts)
    folder = asked.settings.artifacts.resolve() / "builds"
    cwd, most_bytes = asked.cwd.resolve(), asked.settings.builds_gb * 10**9
    return Builds(
        asked.build, folder, most_bytes, asked.print_line,
        lambda tree: Move(root, tree, cwd).environment(os.environ),
    )  # fmt: skip


def checkout(asked: Experiment, root: Path, commit: Commit) -> AbstractContextManager[Path]:
    """Check a commit out for a while, built if that is asked."""
    builds = builds_of(asked, root)
    return builds.checkout(root, commit) if builds else temporary_checkout(root, commit.id)


class StrayedError(UsageError):
    """A version's tests ran code that is not its own."""

    def __init__(self, version: Version, strays: Sequence[Stray]) -> None:
        first, move, asked = strays[0], version.move, version.asked
        own = replace(version.versions, own=move.root)
        again = command_line("ttnn-perf", *asked.command, *asked.argv)
        more = f" and {counted(len(strays) - 1, 'other module')}" if len(strays) > 1 else ""
        shown, place = first.file, own_place(first, own, move.cwd)
        whose, points = "that is installed", "what is installed comes first"
        remedies = []
        if Path(first.file).is_relative_to(move.root):
            shown, place = os.path.relpath(first.file, move.cwd), import_root(first)
            whose, points = "of the working tree", "an editable install, or a path, points there"
            shared = command_line(str(Path(shown).parent))
            remedies.append(f"  or, if both are to use the same: {again} --same {shared}")
        folder = command_line(os.path.relpath(place, move.cwd))
        of = "the working tree" if move.is_users else version.name
        lines = (
            f"tests of {of} ran code {whose}: {first.name} from {shown}{more}",
            f"  so it would be compared with itself: {points}",
            f"  let each side find its own first: PYTHONPATH={folder} {again}",
        )
        super().__init__("\n".join((*lines, *remedies)))


def time_left(start_s: float, part: float) -> str:
    """Estimate the time for the rest from that of a part."""
    left_s = (time.monotonic() - start_s) * (1 / part - 1)
    return f"{left_s:.0f} s" if left_s < 100 else f"{left_s / 60:.0f} min"


class Turns:
    """Measures two versions with the settings of the later one."""

    def __init__(self, before: Version, after: Version) -> None:
        self._rounds, self._progress = after.asked.rounds, after.asked.progress
        self._orders = after.asked.plan.orders()
        self._versions = before, after
        self.before, self.after = before.found, after.found
        self._start_s = time.monotonic()

    def run(self, number: int, tests: Sequence[str] | None) -> str | None:
        order = self._versions if self._orders[number - 1] else self._versions[::-1]
        for place, version in enumerate(order):
            good, asked = in_both(self), version.tests
            if tests is not None:
                asked = [test for test in tests if test in good]
            self._measure(version, number, place, asked)
            found = version.found
            if found.stopped is not None:
                return f"{found.stopped}, {version.name}"
            if number == 1 and place == 0 and not found.measured:
                return None  # nothing to compare the other side with
        return None

    def _measure(
        self, version: Version, number: int, place: int, tests: Sequence[str] | None
    ) -> None:
        """Measure a version once, as a usual run does."""
        workers, found = version.workers, version.found
        is_later = version is self._versions[1]
        report = partial(self._report, number, place, version.name)
        session = Session(
            found, number, report, self._begin if is_later else lambda _: None, is_round=True
        )
        # Where a step is tried, workers of the first round ask the rules: once is enough.
        asks = version.versions.receipts and number == 1
        workers.versions = replace(version.versions, checklist=asks)
        if workers.has_device_pass:
            device = run_device_pass(workers)
            if device.stopped is not None:
                found.stopped = f"stopped in round {number} ({device.stopped})"
                return
            session.complete = device.add_to
        kind = PassKind.AB if workers.first_kind is PassKind.WALL else workers.first_kind
        one = Pass(workers, kind, tests)
        session.run(one)
        if session.strays:
            raise StrayedError(version, session.strays)
        if found.stopped is not None:
            return
        try:
            session.close(one.left, () if number == 1 else tests)
        except UsageError as error:
            message = f"{version.name}: {error}"
            raise UsageError(message) from error
        found.completed = number

    def _begin(self, collected: Message) -> None:
        before, after = self._versions
        if before.is_narrowed and before.tests is None:
            identities = collected["identities"]
            before.tests = tuple(identities.get(test, test) for test in collected["tests"])
        before.follow(after, collected)

    def _report(self, number: int, place: int, name: str, done: int, of: int | None) -> None:
        part = number - 1 + (place + (done / of if of else 0.0)) / 2
        part = min(part / self._rounds, 1.0)
        tests = "" if of is None else f", test {done} of {of}"
        left = f", up to {time_left(self._start_s, part)} left" if part else ""
        self._progress(f"round {number}, {name}{tests}{left}", done == of)

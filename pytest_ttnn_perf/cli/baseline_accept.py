"""``ttnn-perf baseline refresh --from-history``: the last runs of a branch become baselines.

What is not the same test all along is refused, and so is what got worse: however slowly it came,
nobody has accepted it.
"""

from __future__ import annotations

from functools import partial
from itertools import chain, product
from math import expm1, isfinite, log
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.detect import read_run
from pytest_ttnn_perf.cli.baseline_edits import (
    Edits,
    Refusal,
    TestEdit,
    edited_settings,
    file_edits,
    metric_edits,
    repeated_options,
    select_tests,
    show_then_write,
)
from pytest_ttnn_perf.cli.history import wanted_history
from pytest_ttnn_perf.core.errors import InputError, TtnnPerfError, UsageError
from pytest_ttnn_perf.core.hardware import Hardware
from pytest_ttnn_perf.core.metric import Better, median
from pytest_ttnn_perf.core.settings import MIN_REFRESHED, Update
from pytest_ttnn_perf.core.text import counted, percent
from pytest_ttnn_perf.core.verdict import Outcome, Reason
from pytest_ttnn_perf.gate.confirm import MEASURED_ONCE
from pytest_ttnn_perf.gate.judge import session_of
from pytest_ttnn_perf.gate.judging import (
    Policies,
    judge_observation,
    judge_run,
    relabel_shifted,
    violations,
)
from pytest_ttnn_perf.gate.ratios import band_of, centre_of
from pytest_ttnn_perf.gate.store import BaselineStore
from pytest_ttnn_perf.gate.update import (
    Action,
    Change,
    Updates,
    acceptance_now,
    action_for,
    plan,
    sessions_of,
    sessions_to_append,
)
from pytest_ttnn_perf.history.series import LATEST
from pytest_ttnn_perf.history.trends import find_steps, winsorised
from pytest_ttnn_perf.machine.git import is_ancestor, is_known, state, work_tree
from pytest_ttnn_perf.report.sentences import accept_command, command_line, place_of, sentence
from pytest_ttnn_perf.report.tables import format_value
from pytest_ttnn_perf.report.terminal import shift_line

if TYPE_CHECKING:
    import argparse
    from argparse import Namespace
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.baseline import Accepted, MetricBaseline, Session, TestBaseline
    from pytest_ttnn_perf.core.observation import JudgedTest, MetricObservation, Observation, Run
    from pytest_ttnn_perf.core.settings import Checklist, Settings
    from pytest_ttnn_perf.core.verdict import Verdict
    from pytest_ttnn_perf.history.runs import RecordedRun, RunHistory
    from pytest_ttnn_perf.report.tables import Result


# ``ttnn-perf baseline accept``: takes the results of recorded runs into the baselines.


class Measured(Struct, frozen=True):
    """A test as one record tells it, judged by itself; ``record`` is the record's name."""

    record: str
    judged: JudgedTest
    run: str

    @property
    def observation(self) -> Observation:
        """What it observed."""
        return self.judged.observation


def join_records(measured: Sequence[Measured]) -> Observation:
    """Return the records of a test as one: each more is a confirmation of the first.

    Of what is compared exactly all samples count together, as nothing of it may differ. If they
    contradict each other, the result has a problem, and cannot be accepted.
    """
    first, *rest = measured
    if not rest:
        return first.observation
    for result in measured:
        trouble = _trouble(result.observation)
        if trouble is not None:
            return replace(first.observation, problems=(f"{result.record}: {trouble}",))
    for result in rest:
        difference = _difference(first, result)
        if difference is not None:
            return replace(first.observation, problems=(f"{result.record}: {difference}",))
    metrics = {
        name: _series([result.observation.metrics[name] for result in measured])
        for name in first.observation.metrics
    }
    return replace(first.observation, metrics=metrics, ops=rest[-1].observation.ops)


def is_stored(measured: Measured, stored: TestBaseline | None) -> bool:
    """Return whether all timings of a test are sessions of the baseline already.

    Taking the same record twice must not make its sessions count twice. Times may be equal by
    chance, as those of a simulator are: what is compared exactly must be as it is stored.
    """
    exact = (v for v in measured.judged.verdicts if not v.metric.compared_by_ratio)
    if stored is None or any(verdict.outcome is not Outcome.WITHIN for verdict in exact):
        return False
    gated = [
        (observed, stored.metrics[name].sessions)
        for name, observed in measured.observation.metrics.items()
        if observed.metric.compared_by_ratio and name in stored.metrics
    ]
    return bool(gated) and all(
        bool(observed.samples)
        and any(
            session[:3] == session_of(observed, observed.samples)[:3]
            and session.run in {"", measured.run}
            for session in sessions
        )
        for observed, sessions in gated
    )


def _trouble(observation: Observation) -> str | None:
    if observation.lost is not None:
        return f"its worker {observation.lost}"
    if observation.raised is not None:
        return f"the test raised {observation.error}"
    if observation.out_of_memory is not None:
        return f"it ran out of memory: {observation.out_of_memory}"
    if observation.unconfirmed is not None:
        return f"it could not be confirmed: {observation.unconfirmed}"
    return observation.problems[0] if observation.problems else None


def _difference(first: Measured, other: Measured) -> str | None:
    ours, theirs = first.observation, other.observation
    setting = theirs.setting.first_difference(ours.setting)
    if setting is not None:
        name, now, then = setting
        return f"another configuration: {name} is {now!r}, in {first.record} {then!r}"
    for name in sorted({*ours.metrics, *theirs.metrics}):
        mine, its = ours.metrics.get(name), theirs.metrics.get(name)
        if mine is None or its is None:
            lacking = first.record if mine is None else other.record
            return f"{name} is not in {lacking}: records that are joined must measure the same"
        if mine.metric != its.metric:
            return f"{name} is defined differently than in {first.record}"
    return None


def _series(measured: Sequence[MetricObservation]) -> MetricObservation:
    first, *rest = measured
    if not first.metric.compared_by_ratio:
        samples = tuple(sample for observed in measured for sample in observed.samples)
        return replace(first, samples=samples)
    more = (sample for observed in rest for sample in (observed.samples, *observed.confirmations))
    machine = tuple(move for observed in measured for move in _moves(observed))
    known = machine if any(move is not None for move in machine) else ()
    return replace(first, confirmations=(*first.confirmations, *more), machine=known)


def _moves(observed: MetricObservation) -> tuple[float | None, ...]:
    """Return what is known of the machine in each measurement, None for those that nothing tells.

    A test that was not suspect was measured once, beside no controls.
    """
    measurements = 1 + len(observed.confirmations)
    return (*observed.machine, *[None] * measurements)[:measurements]


def refusal_of(
    judged: JudgedTest,
    measured: Sequence[Measured],
    update: Update,
    *,
    settings: Settings,
    options: Sequence[str],
) -> Refusal | None:
    """Return why a test's result cannot be accepted; None if it can, or changes nothing."""
    test = judged.observation.test

    def refused(why: str, remedy: str) -> Refusal:
        return Refusal("", test, why, remedy)

    if judged.observation.problems:
        return refused(judged.observation.problems[0], "fix that, and run the test again")
    for result in measured:
        for finding in violations(result.judged, settings.checklist):
            why = f"{finding.code} {finding.name}: {finding.reason or 'found'}"
            return refused(
                why, f"a failing test cannot be a baseline; see: ttnn-perf rules {finding.code}"
            )
    blocked = [v for v in judged.verdicts if action_for(v, update) is Action.BLOCK]
    adds = any(action_for(verdict, update) is Action.ADD for verdict in judged.verdicts)
    wanted = update is not Update.NEW or adds
    command = accept_command([result.record for result in measured], (test,), options)
    if blocked:
        why = "; ".join(map(sentence, blocked))
        return refused(why, _remedy(blocked, command)) if wanted else None
    lucky = [v for v in judged.verdicts if update is Update.IMPROVED and _seen_once(v, judged)]
    if lucky and settings.confirm:
        why = f"{sentence(lucky[0])}: measured by one process, which may have been lucky"
        return refused(why, f"give a second record of this commit too, or: {command}")
    return None


def _seen_once(verdict: Verdict, judged: JudgedTest) -> bool:
    """Return whether a gain was measured by one process only, though another may differ."""
    observed = judged.observation.metrics.get(verdict.metric.name)
    by_luck = verdict.metric.compared_by_ratio and verdict.metric.source not in MEASURED_ONCE
    gained = verdict.outcome is Outcome.IMPROVED and observed is not None
    return by_luck and gained and not (observed and observed.confirmations)


def _remedy(blocked: Sequence[Verdict], command: str) -> str:
    """Return what to do: what no command resolves comes first."""
    if any(verdict.reason is Reason.ABSOLUTE_LIMIT for verdict in blocked):
        return "no update accepts a broken limit: fix the model, or change the limit in the test"
    outcomes = {verdict.outcome for verdict in blocked}
    if Outcome.NO_DATA in outcomes:
        return "there is no number to store: fix that, and run the test again"
    if Outcome.TOO_NOISY in outcomes:
        return "there is no number to store: raise iterations= or quiet the machine, and run again"
    return f"accept it with: {command}"


#: How the names of records and journals end; every other argument names tests.
_RECORDS: Final = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
_WORDS: Final = {
    Action.ADD: "recorded",
    Action.ACCEPT: "accepted",
    Action.REPLACE: "replaced",
    Action.REMOVE: "removed",
}


class Acceptance(Struct, frozen=True):
    """What is asked for: the records, the tests in them (all if none is named), what of it, why.

    ``tests`` may be patterns and folders, ``ids`` are tests and nothing else. ``options`` are those
    of this command that the next one needs too.
    """

    records: Sequence[Path]
    tests: Sequence[str]
    update: Update
    reason: str | None
    options: tuple[str, ...] = ()
    ids: Sequence[str] = ()

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> Acceptance:
        """Return what a command line asks for.

        Raises:
            UsageError: it has an unknown option, no record, or no reason where one is needed.
        """
        unknown = [argument for argument in options.rest if argument.startswith("-")]
        if unknown:
            message = f"unrecognized arguments: {' '.join(unknown)}"
            raise UsageError(message)
        arguments = [*options.words, *options.rest]
        records = [Path(argument) for argument in arguments if argument.endswith(_RECORDS)]
        if not records:
            message = f"expected a run record that ends in .json or .jsonl, found {arguments[0]}"
            raise UsageError(message)
        usual = Update.ALL if options.reason is not None else Update.IMPROVED
        update = Update(options.update) if options.update else usual
        if update is Update.ALL and not (options.reason or "").strip():
            message = 'to accept what got worse, say --reason "why the change is right"'
            raise UsageError(message)
        tests = [argument for argument in arguments if not argument.endswith(_RECORDS)]
        records = list(dict.fromkeys(records))
        again = repeated_options(options)
        again += ("--other-commit",) if options.other_commit else ()
        return cls(records, tests, update, options.reason, again, tuple(options.ids))


def run_accept(options: argparse.Namespace) -> Result:
    """Show what records change in the baselines, and change it.

    Raises:
        UsageError: the records cannot be taken together, or as a whole; a test is not in them.
        InputError: a record or a baseline is unreadable.
    """
    asked, settings = Acceptance.from_options(options), edited_settings(options)
    store = BaselineStore(settings.baselines)
    runs = {path: judge_run(read_run(path), store, settings) for path in asked.records}
    _check_together(runs)
    remarks = [] if options.other_commit else [*_check_commit(runs)]
    for path, run in runs.items():
        _check_whole(path, run, asked)
    accepting = _Accepting(asked, settings, store, runs, remarks=remarks)
    accepting.decide()
    edits = accepting.edits()
    return show_then_write(edits, options, accepting.write, failed=bool(accepting.refusals))


def _check_together(runs: dict[Path, Run]) -> None:
    """Refuse records that are not measurements of the same thing."""
    (first, run), *others = runs.items()
    for path, other in others:
        ours, theirs = run.environment.commit, other.environment.commit
        if ours != theirs:
            message = f"{first} is of commit {ours or 'unknown'}, {path} of {theirs or 'unknown'}"
            raise UsageError(f"{message}: accept them one after the other")
    seen: dict[str, Path] = {}
    for path, other in runs.items():
        if other.id is not None and seen.setdefault(other.id, path) is not path:
            message = f"{seen[other.id]} and {path} are records of one run, {other.id}: give one"
            raise UsageError(message)


def _check_commit(runs: dict[Path, Run]) -> Iterator[str]:
    """Refuse records of code that is not checked out here; yield what cannot be told of them."""
    path, run = next(iter(runs.items()))
    here, of = Path.cwd(), run.environment
    head = state(here).commit
    if head is None:
        if work_tree(here) is not None and of.commit is not None:
            message = f"git cannot tell what is checked out here, and {path} is of commit"
            raise UsageError(f"{message} {of.commit[:12]}: see git status, or say --other-commit")
        return
    if of.commit is None:
        yield f"{path} does not say which commit it is of: make sure that it is this one"
        return
    # Of a pull request CI systems check out its merge into the target, which nobody else has.
    measured = of.parents[1] if of.pull_request and len(of.parents) > 1 else of.commit
    if head in {of.commit, measured}:
        return
    what = f"{path} is of commit {of.commit[:12]}{f' of {of.branch}' if of.branch else ''}"
    if is_ancestor(here, measured):
        yield f"{what}, which {head[:12]} follows: what changed since was not measured"
        return
    why = f"which {head[:12]} does not contain: check that commit out"
    if not is_known(here, measured):
        why = "which is not known here: fetch it, with git fetch --unshallow in a shallow clone"
    raise UsageError(f"{what}, {why}, or say --other-commit")


def _check_whole(path: Path, run: Run, asked: Acceptance) -> None:
    if not run.tests:
        raise InputError(path, "the run has no tests: there is nothing to accept")
    if not run.complete and not (asked.tests or asked.ids):
        count = counted(len(run.tests), "test")
        message = f"{path}: the run was cut short after {count}, and may not have measured again"
        command = command_line("ttnn-perf", "baseline", "accept", place_of(str(path)), "--")
        hint = (
            f"accept those that you trust by name: {command} {command_line(next(iter(run.tests)))}"
        )
        raise UsageError(f"{message} what looked different; {hint}")


class _Accepting(Struct):
    """Goes through the tests of some records, key by key."""

    asked: Acceptance
    settings: Settings
    store: BaselineStore
    runs: dict[Path, Run]
    refusals: list[Refusal] = []
    remarks: list[str] = []
    _changes: dict[Hardware, dict[str, Change]] = {}

    def decide(self) -> None:
        """Find out what each test changes, or why it must not."""
        update = self._update()
        policies = Policies(self.store)
        kept = again = 0
        for (hardware, test), measured in self._measured().items():
            stored = self.store.find(hardware, test)
            if all(is_stored(result, stored) for result in measured):
                again += 1
                continue
            judged = self._judged(hardware, measured, update, policies)
            options = self.asked.options
            refusal = refusal_of(judged, measured, update, settings=self.settings, options=options)
            change = plan(judged, update, accepted=self._accepted(), run=measured[0].run)
            if refusal is not None:
                self.refusals.append(replace(refusal, key=hardware.key))
            elif change is not None:
                self._changes.setdefault(hardware, {})[test] = _of_records(change, measured)
            else:
                kept += 1
        if again:
            self.remarks.append(f"{counted(again, 'test')} already in the baselines")
        if kept:
            self.remarks.append(f"{counted(kept, 'test')} unchanged")
        if any(run.environment.dirty for run in self.runs.values()):
            dirty = "the code had uncommitted changes when this was measured"
            self.remarks.append(dirty)

    def edits(self) -> Edits:
        """Return what is going to be written, as it would be at this moment."""
        tests, after = [], []
        for hardware, changes in self._changes.items():
            then: dict[str, TestBaseline | None] = {}
            for test, change in changes.items():
                before = self.store.find(hardware, test)
                then[test] = change(before)
                what = {
                    name: _WORDS.get(action) or _added_text(before, then[test], name)
                    for name, action in change.actions.items()
                    if action is not Action.KEEP
                }
                edit = metric_edits(before, then[test], what)
                tests.append(TestEdit(hardware.key, test, edit))
            after.append((hardware, then))
        files = file_edits(self.store, after, cwd=Path.cwd())
        return Edits(tuple(tests), files, tuple(self.refusals), tuple(self.remarks))

    def write(self) -> Iterator[str]:
        """Write it; yield what could not be."""
        updates = Updates(self.store, self.asked.update)
        for hardware, changes in self._changes.items():
            for test, change in changes.items():
                updates.add(hardware, test, change)
        yield from (error for error, _ in updates.write([]))

    def _update(self) -> Update:
        """Return what may be written: of a machine that has shifted, only what is new."""
        update = self.asked.update
        shifts = [run.shift for run in self.runs.values() if run.shift is not None]
        if not shifts or update is Update.ALL:
            return update
        self.remarks.append(shift_line(shifts[0]))
        self.remarks.append("  only new baselines are accepted: a shifted machine is no standard")
        return Update.NEW

    def _measured(self) -> dict[tuple[Hardware, str], list[Measured]]:
        tests = dict.fromkeys(test for run in self.runs.values() for test in run.tests)
        where = ", ".join(map(str, self.runs))
        found: dict[tuple[Hardware, str], list[Measured]] = {}
        # As pytest names a test it may be asked for, too.
        known = {
            j.observation.node_id: t for run in self.runs.values() for t, j in run.tests.items()
        }
        asked = ([known.get(w, w) for w in words] for words in (self.asked.tests, self.asked.ids))
        for test in select_tests(tests, *asked, where=where):
            for path, run in self.runs.items():
                if test in run.tests:
                    hardware = run.tests[test].observation.hardware or run.hardware
                    assert hardware is not None, f"{test} has no hardware"
                    name = run.id or f"{path.name} of {run.environment.started_at}"
                    measured = Measured(str(path), run.tests[test], name)
                    found.setdefault((hardware, test), []).append(measured)
        return found

    def _judged(
        self, hardware: Hardware, measured: list[Measured], update: Update, policies: Policies
    ) -> JudgedTest:
        judged = judge_observation(join_records(measured), policies, hardware=hardware)
        shift = next((run.shift for run in self.runs.values() if run.shift), None)
        return relabel_shifted(judged, shift) if shift and update is not Update.ALL else judged

    def _accepted(self) -> Accepted:
        """Return the provenance of the numbers: the machine and the commit of the first record."""
        return acceptance_now(next(iter(self.runs.values())).environment, self.asked.reason)


def _of_records(change: Change, measured: Sequence[Measured]) -> Change:
    """Return a change whose timings are the sessions of several records, each of its own run."""
    records = [(result.run, result.judged) for result in measured]
    timings = {
        name: sessions
        for name, sessions in sessions_of(records).items()
        if change.observation.metrics[name].metric.compared_by_ratio
    }
    joined = {**change.measured, **timings}
    return replace(change, measured=joined, appended=sessions_to_append(records))


def _added_text(before: TestBaseline | None, after: TestBaseline | None, name: str) -> str:
    then = len(before.metrics[name].sessions) if before else 0
    now = len(after.metrics[name].sessions) if after else 0
    return f"{counted(now - then, 'session')} added"


def run_refresh(options: Namespace) -> Result:
    """Show what the last runs make of the baselines, and change these.

    Raises:
        UsageError: there are no records, or no such test or branch among them.
        InputError: none of the records can be read, or a baseline cannot.
    """
    unknown = [word for word in options.rest if word.startswith("-")]
    if unknown:
        message = f"unrecognized arguments: {' '.join(unknown)}"
        raise UsageError(message)
    settings, history = edited_settings(options), wanted_history(options)
    store = BaselineStore(settings.baselines)
    every = _windows(history, Policies(store))
    where = f"the {counted(len(history.runs), 'run')} of {options.branch or 'the main branch'}"
    tests = dict.fromkeys(window.test for window in every)
    named = select_tests(tests, [*options.tests, *options.rest], options.ids, where=where)
    refusals, edits, after = [], [], []
    changes: dict[Hardware, dict[str, _Refreshed]] = {}
    again = 0
    for window in (each for each in every if each.test in named):
        refusal = next(window.refusals(settings.checklist, repeated_options(options)), None)
        if refusal is not None:
            refusals.append(refusal)
            continue
        change, before = window.change(options.reason, options.branch), window.stored
        then = change(before)
        if before is not None and then.metrics == before.metrics:
            again += 1
            continue
        changes.setdefault(window.hardware, {})[window.test] = change
        metrics = metric_edits(before, then, change.words(window.stored_metrics))
        edits.append(TestEdit(window.hardware.key, window.test, metrics))
        after.append((window.hardware, {window.test: then}))
    files = file_edits(store, after, cwd=Path.cwd())
    remarks = [f"{counted(again, 'test')} as in these runs already"] if again else []
    shown = Edits(tuple(edits), files, tuple(refusals), (*remarks, *history.notes))

    def write() -> tuple[str, ...]:
        store.amend_keys(changes)
        return ()

    return show_then_write(shown, options, write, failed=bool(refusals))


class _Refreshed(Struct, frozen=True):
    """What a refresh makes of the baseline of a test.

    Those of its times that did not get better still know what was ``accepted``.
    """

    change: Change
    accepted: frozenset[str]

    def __call__(self, stored: TestBaseline | None) -> TestBaseline:
        """Return the baseline with other sessions."""
        after = self.change(stored)
        metrics = {
            name: replace(after.metrics[name], accepted_value=_accepted_value(metric))
            for name, metric in (stored.metrics if stored else {}).items()
            if name in self.accepted
        }
        return replace(after, metrics={**after.metrics, **metrics})

    def words(self, stored: Collection[str]) -> dict[str, str]:
        """Say what becomes of each metric, where some are stored."""
        new = {name: "recorded" for name in self.change.metrics if name not in stored}
        old = self.change.metrics.intersection(stored)
        return new | {n: "refreshed" if n in self.accepted else "accepted" for n in old}


def _accepted_value(stored: MetricBaseline) -> float:
    """Return the centre at the last accept, in the digits that are stored."""
    value = stored.accepted_value
    return float(f"{centre_of(stored):.7g}") if value is None else value


def _windows(history: RunHistory, policies: Policies) -> list[_Window]:
    """Return what runs say of each test on each hardware, under the name of today."""
    found: dict[tuple[str, str], _Window] = {}
    for run in history.runs:
        try:
            record = run.source.read()
        except TtnnPerfError:  # its numbers are known, and what they are made of is gone
            record = None
        tests = {(r.key, r.test): r.recorded_as or r.test for r in run.readings}
        for (key, test), recorded_as in tests.items():
            hardware = Hardware.from_key(key)
            if hardware is None:
                continue
            window = found.setdefault((key, test), _Window(hardware, test, policies))
            seen = None
            # What a database stores of an id may not be what its record has.
            judged_then = record.tests.get(recorded_as) if record is not None else None
            if record is not None and judged_then is not None:
                seen = judged_then.observation if record.complete and not record.shift else None
            if seen is None or any(
                (seen.problems, seen.lost, seen.raised, seen.out_of_memory, seen.unconfirmed)
            ):
                window.unfit += 1
                continue
            renamed = replace(seen, test=test, hardware=hardware)
            judged = judge_observation(renamed, policies, hardware=hardware)
            name = run.id or f"{run.source.name} of {run.at}"
            window.runs.append((run, Measured(run.source.file, judged, name)))
    return [window for _, window in sorted(found.items())]


class _Window(Struct):
    """The runs of a test on one hardware, the oldest first; ``unfit`` ones are passed over."""

    hardware: Hardware
    test: str
    policies: Policies
    runs: list[tuple[RecordedRun, Measured]] = []
    unfit: int = 0

    @property
    def stored(self) -> TestBaseline | None:
        """The baseline that there is."""
        return self.policies.store.find(self.hardware, self.test)

    @property
    def stored_metrics(self) -> Mapping[str, MetricBaseline]:
        """Its metrics."""
        return self.stored.metrics if self.stored else {}

    def refusals(self, checklist: Checklist, options: tuple[str, ...]) -> Iterator[Refusal]:
        """Yield why these runs must not become the baseline, and what to do about it."""
        count, export = len(self.runs), "(after ttnn-perf history export -o .) "
        refused = partial(Refusal, self.hardware.key, self.test)
        if count < MIN_REFRESHED:
            more = f"; {self.unfit} more were cut short, had no result, or a machine that shifted"
            why = f"expected {MIN_REFRESHED} runs, found {count}{more if self.unfit else ''}"
            yield refused(why, "wait for more runs")
            return
        lacking = self._lacking()
        if lacking is not None:
            yield refused(lacking, "take later runs alone with --last, or wait for more")
            return
        last, newest = self.runs[-1]
        joined = join_records([measured for _, measured in self.runs])
        if joined.problems:
            yield refused(joined.problems[0], "take later runs alone with --last, or wait for more")
        accept = accept_command([newest.record], (self.test,), options)
        accept = f"accept it with: {export if last.source.is_stored else ''}{accept}"
        judged = judge_observation(joined, self.policies, hardware=self.hardware)
        for verdict in judged.verdicts:
            other_key = verdict.reason is Reason.OTHER_KEY
            if other_key or action_for(verdict, Update.IMPROVED) is Action.BLOCK:
                yield refused(sentence(verdict), accept)
        found = (violations(measured.judged, checklist) for _, measured in self.runs)
        for finding in {each.code: each for each in chain.from_iterable(found)}.values():
            why = f"{finding.code} {finding.name}: {finding.reason or 'found'}"
            yield refused(why, f"see: ttnn-perf rules {finding.code}")
        for name in self._times:
            worse, limit = self._since_accept(name)
            if worse > limit:
                stored = self.stored_metrics[name]
                why = (
                    f"{name} is {percent(expm1(worse))} worse than what was last accepted, "
                    f"{format_value(stored.metric, _accepted_value(stored))} "
                    f"(limit {percent(expm1(limit))}): however slowly that came, "
                    "nobody has accepted it"
                )
                yield refused(why, f"find out why: ttnn-perf trends; {accept}")
            sessions = self._sessions(name)
            for step in find_steps(winsorised([log(session.median) for _, session in sessions])):
                (good, _), (bad, _) = sessions[step.first - 1], sessions[step.last]
                size = f"{'+' if step.size > 0 else '−'}{percent(abs(expm1(step.size)))}"
                why = (
                    f"{name} changed within these runs, {size}, between {good.short_commit} of "
                    f"{good.day} and {bad.short_commit} of {bad.day}"
                )
                remedy = "take later runs alone with --last, or wait for more"
                yield refused(why, f"see: ttnn-perf trends; {remedy}")

    def _lacking(self) -> str | None:
        """Say which run did not measure a time; None if all did."""
        for name, (run, measured) in product(self._times, self.runs):
            if not _has(measured.observation, name):
                return f"{name} is not in {run.short_commit} of {run.day}"
        return None

    @property
    def _times(self) -> list[str]:
        """The times and throughputs, which is what a refresh is about."""
        metrics = self.runs[-1][1].observation.metrics
        return [n for n, seen in metrics.items() if seen.metric.compared_by_ratio and seen.gated]

    def _sessions(self, name: str) -> list[tuple[RecordedRun, Session]]:
        """Return a session for each run: its first measurement, as what came after is noise."""
        found: dict[str, tuple[RecordedRun, Session]] = {}
        for recorded, measured in self.runs:
            seen = measured.observation.metrics[name]
            run = seen.capture or measured.run  # a capture is the same in all runs
            found.setdefault(run, (recorded, session_of(seen, seen.samples, run)))
        return list(found.values())

    def _since_accept(self, name: str) -> tuple[float, float]:
        """Return how much worse a metric is than what was accepted, and its limit; logarithms.

        The worse of all runs and the latest of them: a slow change is at its end in these.
        """
        if name not in self.stored_metrics:
            return 0.0, 0.0
        stored, metrics = self.stored_metrics[name], self.runs[-1][1].observation.metrics
        policy = self.policies.of(self.hardware, metrics.values())
        samples = len(metrics[name].samples)
        band = band_of(stored, metrics[name].limits, policy=policy, samples=samples)
        sign = -1.0 if stored.metric.better is Better.HIGHER else 1.0
        logs = [log(session.median) for _, session in self._sessions(name)]
        accepted = log(_accepted_value(stored))
        levels = (median(logs), median(logs[-LATEST:]))
        return max(sign * (level - accepted) for level in levels), band.limit

    def change(self, reason: str | None, branch: str | None) -> _Refreshed:
        """Return what runs without an obstacle make of a baseline."""
        (first, _), (last, newest) = self.runs[0], self.runs[-1]
        if not reason:
            runs, of = counted(len(self.runs), "run"), f" of {branch}" if branch else ""
            reason = f"refreshed from {runs}{of}, {first.day} to {last.day}"
        actions = {
            v.metric.name: Action.ADD if v.outcome is Outcome.NO_BASELINE else Action.KEEP
            for v in newest.judged.verdicts
        }
        actions |= dict.fromkeys(self._times, Action.REPLACE)
        measured = dict(sessions_of([(newest.run, newest.judged)]))
        measured |= {name: tuple(s for _, s in self._sessions(name)) for name in self._times}
        since = {name: self._since_accept(name) for name in self._times}
        not_better = frozenset(name for name, (worse, limit) in since.items() if worse >= -limit)
        accepted = acceptance_now(last.environment, reason)
        return _Refreshed(Change(newest.observation, actions, accepted, measured, {}), not_better)


def _has(observation: Observation, name: str) -> bool:
    """Tell whether a test measured a time."""
    seen = observation.metrics.get(name)
    return seen is not None and all(isfinite(s) and s > 0 for s in seen.samples or (0.0,))

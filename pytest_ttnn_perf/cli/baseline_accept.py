"""``ttnn-perf baseline accept`` and ``refresh``: recorded runs become baselines."""

from __future__ import annotations

from functools import partial
from math import expm1, log
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from pytest_ttnn_perf.analysis.readers.detect import read_run
from pytest_ttnn_perf.cli.baseline_edits import (
    Edits,
    Refusal,
    add_change,
    edited_settings,
    repeated_options,
)
from pytest_ttnn_perf.cli.common import add_argument, number_within, select_tests
from pytest_ttnn_perf.cli.history import add_branch, add_source, wanted_history
from pytest_ttnn_perf.core.errors import InputError, TtnnPerfError, UsageError
from pytest_ttnn_perf.core.hardware import Hardware, first_difference
from pytest_ttnn_perf.core.metric import Better, median
from pytest_ttnn_perf.core.observation import Outcome, Reason
from pytest_ttnn_perf.core.settings import Update
from pytest_ttnn_perf.core.text import counted, percent
from pytest_ttnn_perf.experiments.repository import Repository
from pytest_ttnn_perf.gate.confirm import MEASURED_ONCE
from pytest_ttnn_perf.gate.judge import session_of
from pytest_ttnn_perf.gate.judging import (
    judge_observation,
    judge_run,
    relabel_shifted,
    violations,
)
from pytest_ttnn_perf.gate.machine_shift import Suites
from pytest_ttnn_perf.gate.ratios import band_of, centre_of
from pytest_ttnn_perf.gate.store import BaselineStore
from pytest_ttnn_perf.gate.update import (
    Action,
    Change,
    acceptance_now,
    action_for,
    plan,
    sessions_of,
    sessions_to_append,
)
from pytest_ttnn_perf.history.runs import LATEST
from pytest_ttnn_perf.machine.git import state, work_tree
from pytest_ttnn_perf.report.sentences import accept_command, command_line, place_of, sentence
from pytest_ttnn_perf.report.tables import format_value
from pytest_ttnn_perf.report.terminal import shift_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.baseline import MetricBaseline, Session, TestBaseline
    from pytest_ttnn_perf.core.observation import (
        JudgedTest,
        MetricObservation,
        Observation,
        Run,
        Verdict,
    )
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.history.runs import RecordedRun, RunHistory
    from pytest_ttnn_perf.report.tables import Result


#: Runs that a baseline is refreshed from: fewer do not show how much runs differ, and a baseline
#: keeps no more of them.
MIN_REFRESHED: Final = 3
MAX_REFRESHED: Final = 20


def add_accept(parser: argparse.ArgumentParser) -> None:
    parser.usage = (
        "ttnn-perf baseline accept RUN.json [RUN.json ...] [TEST ...] [options] [-- ID ...]"
    )
    add = partial(add_argument, parser)
    add("words RUN.json", "run records, followed by tests", nargs="+")
    add("--update", "what to accept: new results only, improved ones too (default), or worse ones "
        "too (default with --reason)", choices=[choice.value for choice in Update])  # fmt: skip
    add("--reason TEXT", "why the change is accepted; required with --update all")
    add("--other-commit", "accept records of a commit that is neither checked out nor before the "
        "one that is")  # fmt: skip
    add_change(parser)
    parser.set_defaults(passes_on=True)  # tests may stand after the options


class RecordedTest(NamedTuple):
    """A test in one record, judged by itself."""

    record: str
    judged: JudgedTest
    run: str

    @property
    def observation(self) -> Observation:
        return self.judged.observation


#: How the names of records and journals end; every other argument names tests.
_RECORDS: Final = (".json", ".jsonl", ".json.gz", ".jsonl.gz")


def run_accept(options: argparse.Namespace) -> Result:
    """Accept the results of recorded runs as baselines.

    Several records of one commit become several sessions. What follows -- is the exact id of a
    test, not a pattern or a folder.
    """
    records, tests, update = _asked(options)
    settings = edited_settings(options)
    store = BaselineStore(settings.baselines)
    edits = Edits(store)
    runs = {path: judge_run(read_run(path), store, settings) for path in records}
    _check_records(runs, named=bool(tests or options.ids))
    if not options.other_commit:
        edits.remarks += _check_commit(runs)
    shift = next((run.shift for run in runs.values() if run.shift), None)
    if shift is not None and update is not Update.ALL:
        edits.remarks.append(shift_line(shift))
        edits.remarks.append("  only new baselines are accepted: a shifted machine is no standard")
        update = Update.NEW
    accepted = acceptance_now(runs[records[0]].environment, options.reason)
    again = (*repeated_options(options), *(["--other-commit"] if options.other_commit else []))
    suites = Suites(store)
    unchanged = there = 0
    for (hardware, test), measured in _measured(runs, tests, options.ids).items():
        stored = store.find(hardware, test)
        if all(_is_stored(result, stored) for result in measured):
            there += 1
            continue
        judged = judge_observation(join_records(measured), suites, hardware=hardware)
        if shift is not None and update is not Update.ALL:
            judged = relabel_shifted(judged, shift)
        command = accept_command([result.record for result in measured], (test,), again)
        refused = _refusal_of(judged, measured, update, settings, command)
        change = plan(judged, update, accepted=accepted, run=measured[0].run)
        if refused is not None:
            edits.refusals.append(Refusal(hardware.key, test, *refused))
        elif change is not None:
            _add_change(edits, hardware, change, measured, judged)
        else:
            unchanged += 1
    edits.remarks += [f"{counted(there, 'test')} already in the baselines"] if there else []
    edits.remarks += [f"{counted(unchanged, 'test')} unchanged"] if unchanged else []
    if any(run.environment.dirty for run in runs.values()):
        edits.remarks.append("the code had uncommitted changes when this was measured")
    return edits.result(options)


def _asked(options: argparse.Namespace) -> tuple[list[Path], list[str], Update]:
    _refuse_options(options.rest)
    words = [*options.words, *options.rest]
    records = [Path(word) for word in words if word.endswith(_RECORDS)]
    if not records:
        raise UsageError(f"expected a run record that ends in .json or .jsonl, found {words[0]}")
    usual = Update.ALL if options.reason is not None else Update.IMPROVED
    update = Update(options.update) if options.update else usual
    if update is Update.ALL and not (options.reason or "").strip():
        raise UsageError('to accept what got worse, say --reason "why the change is right"')
    tests = [word for word in words if not word.endswith(_RECORDS)]
    return list(dict.fromkeys(records)), tests, update


def _refuse_options(words: Sequence[str]) -> None:
    unknown = [word for word in words if word.startswith("-")]
    if unknown:
        raise UsageError(f"unrecognized arguments: {' '.join(unknown)}")


def _check_records(runs: Mapping[Path, Run], *, named: bool) -> None:
    """Refuse records that cannot be accepted together, or as a whole."""
    first, run = next(iter(runs.items()))
    seen: dict[str, Path] = {}
    for path, other in runs.items():
        ours, theirs = run.environment.commit, other.environment.commit
        if ours != theirs:
            message = f"{first} is of commit {ours or 'unknown'}, {path} of {theirs or 'unknown'}"
            raise UsageError(f"{message}: accept them one after the other")
        if other.id is not None and seen.setdefault(other.id, path) is not path:
            message = f"{seen[other.id]} and {path} are records of one run, {other.id}: give one"
            raise UsageError(message)
        if not other.tests:
            raise InputError(path, "the run has no tests: there is nothing to accept")
        if not other.complete and not named:
            count = counted(len(other.tests), "test")
            message = f"{path}: the run was cut short after {count}, and may not have measured"
            command = command_line("ttnn-perf", "baseline", "accept", place_of(str(path)), "--")
            example = command_line(next(iter(other.tests)))
            raise UsageError(
                f"{message} again what looked different; accept those that you trust by name: "
                f"{command} {example}"
            )


def _check_commit(runs: Mapping[Path, Run]) -> Iterator[str]:
    """Refuse records of other code than is checked out; yield doubts."""
    path, run = next(iter(runs.items()))
    here, of = Path.cwd(), run.environment
    top, head = work_tree(here), state(here).commit
    if top is None or head is None:
        if top is not None and of.commit is not None:
            message = f"git does not know what is checked out here, and {path} is of commit"
            raise UsageError(f"{message} {of.commit[:12]}: see git status, or say --other-commit")
        return
    if of.commit is None:
        yield f"{path} does not say which commit it is of: make sure that it is this one"
        return
    # Of a pull request CI systems check out its merge into the target, which only they have.
    measured = of.parents[1] if of.pull_request and len(of.parents) > 1 else of.commit
    if head in {of.commit, measured}:
        return
    what = f"{path} is of commit {of.commit[:12]}{f' of {of.branch}' if of.branch else ''}"
    if Repository(top).descends_from(measured):
        yield f"{what}, which {head[:12]} follows: what changed since was not measured"
        return
    why = f"which {head[:12]} does not contain: check that commit out"
    if not Repository(top).has(measured):
        why = "which is not known here: fetch it, with git fetch --unshallow in a shallow clone"
    raise UsageError(f"{what}, {why}, or say --other-commit")


def _measured(
    runs: Mapping[Path, Run], tests: Sequence[str], ids: Sequence[str]
) -> dict[tuple[Hardware, str], list[RecordedTest]]:
    """Return the selected tests by hardware, with each record that has them."""
    every = dict.fromkeys(test for run in runs.values() for test in run.tests)
    # As pytest names a test it may be asked for, too.
    known = {j.observation.node_id: t for run in runs.values() for t, j in run.tests.items()}
    asked = ([known.get(word, word) for word in words] for words in (tests, ids))
    found: dict[tuple[Hardware, str], list[RecordedTest]] = {}
    for test in select_tests(every, *asked, where=", ".join(map(str, runs))):
        for path, run in runs.items():
            if test in run.tests:
                hardware = run.tests[test].observation.hardware or run.hardware
                assert hardware is not None, f"{test} has no hardware"
                name = run.id or f"{path.name} of {run.environment.started_at}"
                measured = RecordedTest(str(path), run.tests[test], name)
                found.setdefault((hardware, test), []).append(measured)
    return found


def _is_stored(measured: RecordedTest, stored: TestBaseline | None) -> bool:
    """Return whether the baseline has this run's session of all timings.

    Taking the same record twice must not make its sessions count twice. What is compared exactly
    has no sessions of its own: it must be as it is stored.
    """
    exact = (v for v in measured.judged.verdicts if not v.metric.compared_by_ratio)
    if stored is None or any(verdict.outcome is not Outcome.WITHIN for verdict in exact):
        return False
    gated = [
        stored.metrics[name].sessions
        for name, observed in measured.observation.metrics.items()
        if observed.metric.compared_by_ratio and name in stored.metrics
    ]
    runs = ({session.run for session in sessions} for sessions in gated)
    return bool(gated) and all(measured.run in known for known in runs)


def join_records(measured: Sequence[RecordedTest]) -> Observation:
    """Join the records of a test: others confirm the first.

    Of what is compared exactly all samples count together, as nothing of it may differ. If they
    contradict each other, the result has a problem, and cannot be accepted.
    """
    first, *rest = measured
    if not rest:
        return first.observation
    problems = [(result, _trouble(result.observation)) for result in measured]
    problems += [(result, _difference(first, result)) for result in rest]
    for result, problem in problems:
        if problem is not None:
            return replace(first.observation, problems=(f"{result.record}: {problem}",))
    metrics = {
        name: _series([result.observation.metrics[name] for result in measured])
        for name in first.observation.metrics
    }
    return replace(first.observation, metrics=metrics, ops=rest[-1].observation.ops)


def _trouble(observation: Observation) -> str | None:
    if observation.ended:
        return str(observation.ended)
    return next(iter(observation.problems), None)


def _difference(first: RecordedTest, other: RecordedTest) -> str | None:
    ours, theirs = first.observation, other.observation
    setting = first_difference(theirs.setting, ours.setting)
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
    machine: list[float | None] = []
    for observed in measured:
        # A test that was not suspect was measured once, without controls around it.
        count = 1 + len(observed.confirmations)
        machine += (*observed.machine, *[None] * count)[:count]
    known = tuple(machine) if any(move is not None for move in machine) else ()
    return replace(first, confirmations=(*first.confirmations, *more), machine=known)


def _refusal_of(
    judged: JudgedTest,
    measured: Sequence[RecordedTest],
    update: Update,
    settings: Settings,
    command: str,
) -> tuple[str, str] | None:
    if judged.observation.problems:
        return judged.observation.problems[0], "fix that, and run the test again"
    for result in measured:
        for finding in violations(result.judged, settings.checklist):
            why = f"{finding.code} {finding.name}: {finding.reason or 'found'}"
            see = f"a failing test cannot be a baseline; see: ttnn-perf rules {finding.code}"
            return why, see
    actions = [action_for(verdict, update) for verdict in judged.verdicts]
    blocked = [v for v, a in zip(judged.verdicts, actions, strict=True) if a is Action.BLOCK]
    if blocked:
        if update is Update.NEW and Action.ADD not in actions:
            return None
        return "; ".join(map(sentence, blocked)), _remedy(blocked, command)
    if update is Update.IMPROVED and settings.confirm_passes:
        for verdict in judged.verdicts:
            if _seen_once(verdict, judged):
                why = f"{sentence(verdict)}: measured by one process, which may have been lucky"
                return why, f"give a second record of this commit too, or: {command}"
    return None


def _seen_once(verdict: Verdict, judged: JudgedTest) -> bool:
    observed = judged.observation.metrics.get(verdict.metric.name)
    by_luck = verdict.metric.compared_by_ratio and verdict.metric.source not in MEASURED_ONCE
    gained = verdict.outcome is Outcome.IMPROVED and observed is not None
    return by_luck and gained and not (observed and observed.confirmations)


def _remedy(blocked: Sequence[Verdict], command: str) -> str:
    """Return the remedy: what no command resolves comes first."""
    if any(verdict.reason is Reason.ABSOLUTE_LIMIT for verdict in blocked):
        return "no update accepts a broken limit: fix the model, or change the limit in the test"
    outcomes = {verdict.outcome for verdict in blocked}
    if Outcome.NO_DATA in outcomes:
        return "there is no number to store: fix that, and run the test again"
    if Outcome.TOO_NOISY in outcomes:
        return "there is no number to store: raise iterations= or quiet the machine, and run again"
    return f"accept: {command}"


_WORDS: Final = {
    Action.ADD: "recorded",
    Action.ACCEPT: "accepted",
    Action.REPLACE: "replaced",
    Action.REMOVE: "removed",
}


def _add_change(
    edits: Edits,
    hardware: Hardware,
    change: Change,
    measured: Sequence[RecordedTest],
    judged: JudgedTest,
) -> None:
    records = [(result.run, result.judged) for result in measured]
    timings = {
        name: sessions
        for name, sessions in sessions_of(records).items()
        if change.observation.metrics[name].metric.compared_by_ratio
    }
    joined = {**change.measured, **timings}
    change = replace(change, measured=joined, appended=sessions_to_append(records))
    before = edits.store.find(hardware, change.observation.test)
    after = change(before)
    what = {}
    for name in change.metrics:
        then = len(before.metrics[name].sessions) if before and name in before.metrics else 0
        now = len(after.metrics[name].sessions) if name in after.metrics else 0
        added = f"{counted(now - then, 'session')} added"
        what[name] = _WORDS.get(change.actions[name], added)
    edits.add(hardware, change.observation.test, change, what)
    edits.remarks += _measured_otherwise(judged, after, change)


def _measured_otherwise(judged: JudgedTest, after: TestBaseline, change: Change) -> Iterator[str]:
    """Yield accepted values that differ in print from their new centre."""
    for verdict in judged.verdicts:
        name, value = verdict.metric.name, verdict.observed
        if change.actions.get(name) is Action.ACCEPT and value and name in after.metrics:
            then, own = verdict.centre, centre_of(after.metrics[name])
            told, kept = (format_value(verdict.metric, v, beside=then) for v in (value, own))
            if told != kept:
                yield (
                    f"{judged.observation.test}: {name} was measured as {told}, the mean of the "
                    f"confirm passes; the new baseline is {kept}, the median of all processes"
                )


def add_refresh(parser: argparse.ArgumentParser) -> None:
    parser.usage = "ttnn-perf baseline refresh --from-history [TEST ...] [options] [-- ID ...]"
    add = partial(add_argument, parser)
    add("tests TEST", "only these tests", nargs="*")
    add("--from-history", "take runs that were recorded", action="store_true", required=True)
    add_source(parser)
    add_branch(parser)
    add("--last N", f"how many runs of the branch to look at (default: {MAX_REFRESHED})",
        type=number_within(MIN_REFRESHED, MAX_REFRESHED), default=MAX_REFRESHED)  # fmt: skip
    add("--reason TEXT", "what to store as the reason (default: which runs)")
    add_change(parser)
    parser.set_defaults(passes_on=True, all_branches=False, dirty=False)


def run_refresh(options: argparse.Namespace) -> Result:
    """Make baselines of the last recorded runs of a branch.

    What got worse than the gate's limit since it was last accepted is refused, however slowly;
    so is what changed within these runs. Exit 1 if a test is refused.
    """
    _refuse_options(options.rest)
    settings, history = edited_settings(options), wanted_history(options)
    store = BaselineStore(settings.baselines)
    edits, suites = Edits(store), Suites(store)
    found = _runs_by_test(history, suites)
    where = f"the {counted(len(history.runs), 'run')} of {options.branch or 'the main branch'}"
    tests = dict.fromkeys(test for _, test in found)
    named = select_tests(tests, [*options.tests, *options.rest], options.ids, where=where)
    for (hardware, test), runs in found.items():
        if test not in named:
            continue
        refresh = _Refresh(hardware, test, runs, suites)
        refused = refresh.refusal(settings, repeated_options(options))
        if refused is not None:
            edits.refusals.append(Refusal(hardware.key, test, *refused))
            continue
        change, not_better = refresh.change(options.reason, options.branch)
        refreshed = partial(_refreshed, change, not_better)
        words = dict.fromkeys(change.metrics, "accepted")
        words |= dict.fromkeys(not_better, "refreshed")
        words |= dict.fromkeys(change.metrics - refresh.baselines.keys(), "recorded")
        edits.add(hardware, test, refreshed, words)
    edits.remarks += history.notes
    return edits.result(options)


def _refreshed(
    change: Change, not_better: frozenset[str], stored: TestBaseline | None
) -> TestBaseline:
    after = change(stored)
    metrics = {
        name: replace(after.metrics[name], accepted_value=_accepted_value(metric))
        for name, metric in (stored.metrics if stored else {}).items()
        if name in not_better
    }
    return replace(after, metrics={**after.metrics, **metrics})


def _accepted_value(stored: MetricBaseline) -> float:
    # In the digits that are stored.
    value = stored.accepted_value
    return float(f"{centre_of(stored):.7g}") if value is None else value


_Runs = list[tuple["RecordedRun", RecordedTest]]


def _runs_by_test(history: RunHistory, suites: Suites) -> dict[tuple[Hardware, str], _Runs]:
    """Group whole runs by hardware and test."""
    found: dict[tuple[Hardware, str], _Runs] = {}
    for run in history.runs:
        try:
            record = run.source.read()
        except TtnnPerfError:  # its numbers are known, and what they are made of is gone
            record = None
        for key, test in dict.fromkeys((r.key, r.test) for r in run.readings):
            hardware = Hardware.from_key(key)
            if hardware is None:
                continue
            runs = found.setdefault((hardware, test), [])
            # What a database stores of an id may not be what its record has.
            judged = record.tests.get(test) if record else None
            whole = record is not None and record.complete and not record.shift
            if whole and judged is not None and _is_whole(judged.observation):
                renamed = replace(judged.observation, test=test, hardware=hardware)
                judged = judge_observation(renamed, suites, hardware=hardware)
                name = run.id or f"{run.source.name} of {run.at}"
                runs.append((run, RecordedTest(run.source.name, judged, name)))
    return dict(sorted(found.items(), key=lambda item: (item[0][0].key, item[0][1])))


def _is_whole(observation: Observation) -> bool:
    times = (
        seen.value
        for seen in observation.metrics.values()
        if seen.gated and seen.metric.compared_by_ratio
    )
    return _trouble(observation) is None and None not in times


class _Refresh(NamedTuple):
    """The runs of a test that its baseline is made of."""

    hardware: Hardware
    test: str
    runs: _Runs
    suites: Suites

    @property
    def baselines(self) -> Mapping[str, MetricBaseline]:
        stored = self.suites.store.find(self.hardware, self.test)
        return stored.metrics if stored else {}

    @property
    def times(self) -> list[str]:
        """The times and throughputs, which is what a refresh is about."""
        metrics = self.runs[-1][1].observation.metrics
        return [n for n, seen in metrics.items() if seen.metric.compared_by_ratio and seen.gated]

    def refusal(self, settings: Settings, options: tuple[str, ...]) -> tuple[str, str] | None:
        if len(self.runs) < MIN_REFRESHED:
            why = f"expected {MIN_REFRESHED} whole runs, found {len(self.runs)}"
            return why, "wait for more runs"
        tests = [measured for _, measured in self.runs]
        joined = join_records(tests)
        if joined.problems:
            return joined.problems[0], "take later runs alone with --last, or wait for more"
        last, newest = self.runs[-1]
        export = "ttnn-perf history export -o . && " if last.source.is_stored else ""
        command = f"{export}{accept_command([newest.record], (self.test,), options)}"
        judged = judge_observation(joined, self.suites, hardware=self.hardware)
        refused = _refusal_of(judged, tests, Update.IMPROVED, settings, command)
        return refused or next(filter(None, (self._crept(n, command) for n in self.times)), None)

    def _crept(self, name: str, command: str) -> tuple[str, str] | None:
        worse, limit = self._since_accept(name)
        if worse <= limit:
            return None
        stored = self.baselines[name]
        accepted = format_value(stored.metric, _accepted_value(stored))
        why = (
            f"{name} is {percent(expm1(worse))} worse than what was last accepted, {accepted} "
            f"(limit {percent(expm1(limit))}): however slowly that came, it was never accepted"
        )
        return why, f"find out why: ttnn-perf trends; accept: {command}"

    def _sessions(self, name: str) -> list[Session]:
        """Return a session for each run: its first measurement."""
        found: dict[str, Session] = {}
        for _, measured in self.runs:
            seen = measured.observation.metrics[name]
            run = seen.capture or measured.run  # a capture is the same in all runs
            found.setdefault(run, session_of(seen, seen.samples, run))
        return list(found.values())

    def _since_accept(self, name: str) -> tuple[float, float]:
        """Return the log ratio to the accepted value, and its limit.

        The worse of all runs and the latest of them: a slow change is at its end in these.
        """
        if name not in self.baselines:
            return 0.0, 0.0
        stored, metrics = self.baselines[name], self.runs[-1][1].observation.metrics
        band = band_of(
            stored,
            metrics[name].limits,
            suite=self.suites.of(self.hardware).get(stored.metric.source),
            samples=len(metrics[name].samples),
        )
        sign = -1.0 if stored.metric.better is Better.HIGHER else 1.0
        logs = [log(session.median) for session in self._sessions(name)]
        accepted = log(_accepted_value(stored))
        levels = (median(logs), median(logs[-LATEST:]))
        return max(sign * (level - accepted) for level in levels), band.limit

    def change(self, reason: str | None, branch: str | None) -> tuple[Change, frozenset[str]]:
        """Return the change, and the times that are not better."""
        (first, _), (last, newest) = self.runs[0], self.runs[-1]
        if not reason:
            runs, of = counted(len(self.runs), "run"), f" of {branch}" if branch else ""
            reason = f"refreshed from {runs}{of}, {first.day} to {last.day}"
        actions = {
            v.metric.name: Action.ADD if v.outcome is Outcome.NO_BASELINE else Action.KEEP
            for v in newest.judged.verdicts
        }
        actions |= dict.fromkeys(self.times, Action.REPLACE)
        measured = dict(sessions_of([(newest.run, newest.judged)]))
        measured |= {name: tuple(self._sessions(name)) for name in self.times}
        since = {name: self._since_accept(name) for name in self.times}
        not_better = frozenset(name for name, (worse, limit) in since.items() if worse >= -limit)
        accepted = acceptance_now(last.environment, reason)
        return Change(newest.observation, actions, accepted, measured, {}), not_better

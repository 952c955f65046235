"""``ttnn-perf baseline refresh --from-history``: the last runs of a branch become baselines.

What is not the same test all along is refused, and so is what got worse: however slowly it came,
nobody has accepted it.
"""

from __future__ import annotations

from dataclasses import field, replace
from functools import partial
from itertools import chain, product
from math import expm1, isfinite, log
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import TtnnPerfError, UsageError
from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.cli.baseline_accept import Measured, join_records
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
from pytest_ttnn_perf.gate.judge import session_of
from pytest_ttnn_perf.gate.ratios import band_of, centre_of
from pytest_ttnn_perf.history.series import LATEST
from pytest_ttnn_perf.history.steps import find_steps, winsorised
from pytest_ttnn_perf.records.hardware import Hardware
from pytest_ttnn_perf.records.metric import Better, median
from pytest_ttnn_perf.records.settings import MIN_REFRESHED, Update
from pytest_ttnn_perf.records.verdict import Outcome, Reason
from pytest_ttnn_perf.report.numbers import format_value
from pytest_ttnn_perf.report.sentences import accept_command, sentence
from pytest_ttnn_perf.run.judge import Policies, judge_observation, violations
from pytest_ttnn_perf.run.update import Action, Change, acceptance_now, action_for, sessions_of

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Collection, Iterator, Mapping

    from pytest_ttnn_perf.history.runs import RecordedRun, RunHistory
    from pytest_ttnn_perf.records.baseline import MetricBaseline, Session, TestBaseline
    from pytest_ttnn_perf.records.observation import Observation
    from pytest_ttnn_perf.records.settings import Checklist
    from pytest_ttnn_perf.report.numbers import Result


def run(options: Namespace) -> Result:
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


@dataclass(frozen=True, slots=True)
class _Refreshed:
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


@dataclass(slots=True)
class _Window:
    """The runs of a test on one hardware, the oldest first; ``unfit`` ones are passed over."""

    hardware: Hardware
    test: str
    policies: Policies
    runs: list[tuple[RecordedRun, Measured]] = field(default_factory=list)
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

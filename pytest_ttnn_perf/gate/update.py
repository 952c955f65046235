"""Decide which results become part of the baselines, and write them."""

from __future__ import annotations

from datetime import datetime, timezone
from enum import Enum, auto
from math import expm1, log, log1p
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import (
    CAPTURE,
    MAX_SESSIONS,
    Acceptance,
    MetricBaseline,
    Session,
    TestBaseline,
)
from pytest_ttnn_perf.core.metric import Kind
from pytest_ttnn_perf.core.observation import Outcome, Reason, Verdict
from pytest_ttnn_perf.core.settings import Update
from pytest_ttnn_perf.gate.judge import is_learning, session_of
from pytest_ttnn_perf.gate.ratios import POLICY, band_of, is_too_noisy
from pytest_ttnn_perf.gate.rules_on_numbers import pcc_error_grew

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from pytest_ttnn_perf.core.hardware import Environment, Hardware
    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.core.observation import JudgedTest, MetricObservation, Observation
    from pytest_ttnn_perf.gate.store import BaselineStore


class Action(Enum):
    """The change of one metric's stored sessions."""

    KEEP = auto()
    ADD = auto()
    APPEND = auto()
    ACCEPT = auto()
    REPLACE = auto()
    REMOVE = auto()
    BLOCK = auto()


class Change(Struct, frozen=True):
    """The change of a test's baseline, applied to what is stored then.

    ``measured`` are all sessions of each metric, of which a new centre is made; ``appended`` are
    those of metrics within their limits: of each record, the first measurement.
    """

    observation: Observation
    actions: Mapping[str, Action]
    accepted: Acceptance
    measured: Mapping[str, tuple[Session, ...]]
    appended: Mapping[str, tuple[Session, ...]]

    @property
    def metrics(self) -> frozenset[str]:
        """The metrics whose sessions change."""
        changed = (name for name, action in self.actions.items() if action is not Action.KEEP)
        return frozenset(changed)

    def __call__(self, stored: TestBaseline | None) -> TestBaseline:
        """Return the baseline after the change."""
        observation, ops = self.observation, self.observation.ops
        before = stored.metrics if stored else {}
        metrics = {name: own for name, own in before.items() if not own.metric.only_recorded}
        for name, action in self.actions.items():
            if action is Action.REMOVE:
                metrics.pop(name, None)
            elif action is not Action.KEEP:
                sessions = self.appended if action is Action.APPEND else self.measured
                metric, added = observation.metrics[name].metric, sessions.get(name, ())
                metrics[name] = _change_metric(metrics.get(name), metric, action, added)
        if stored is None:
            return TestBaseline(self.accepted, metrics, observation.setting, op_table=ops)
        only_sessions = set(self.actions.values()) <= {Action.KEEP, Action.APPEND}
        # The table is of the run that was accepted, as the centre is: a session more changes none.
        new_table = not only_sessions or stored.ops is None
        # Nor does a list of calls replace one of times that are still gated.
        timed = any(kept.metric.is_kernel_time for kept in metrics.values())
        if ops is not None and not ops.is_timed and timed:
            new_table = stored.ops is None
        return replace(
            stored,
            metrics=metrics,
            configuration=observation.setting,
            # A session more is not a decision: who accepted the numbers, and why, stays.
            accepted=stored.accepted if only_sessions else self.accepted,
            op_table=ops if new_table else None,
        )


def acceptance_now(environment: Environment, reason: str | None) -> Acceptance:
    """Return the acceptance of numbers of this run."""
    return Acceptance(
        at=f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}",
        commit=environment.commit[:12] if environment.commit else None,
        reason=reason,
        ttnn=environment.ttnn,
        environment=environment.lasting,
    )


def plan(judged: JudgedTest, update: Update, *, accepted: Acceptance, run: str) -> Change | None:
    """Return the change of a test's baseline, if there is one.

    All of a test or nothing: no gain in speed is written together with a loss in accuracy.
    """
    actions = actions_of(judged, update)
    if not actions:
        return None
    if judged.observation.is_simulated:  # the same on every host
        accepted = replace(accepted, environment={})
    records = [(run, judged)]
    measured, appended = sessions_of(records), sessions_to_append(records)
    return Change(judged.observation, actions, accepted, measured, appended)


def sessions_of(records: Iterable[tuple[str, JudgedTest]]) -> Mapping[str, tuple[Session, ...]]:
    """Return all sessions of each metric in the records of one test."""
    found: dict[str, tuple[Session, ...]] = {}
    for run, judged in records:
        for name, observed in judged.observation.metrics.items():
            taken = filter(None, (observed.samples, *observed.confirmations))
            its_run = observed.capture or run
            sessions = (session_of(observed, samples, its_run) for samples in taken)
            found[name] = (*found.get(name, ()), *sessions)
    return found


def sessions_to_append(
    records: Iterable[tuple[str, JudgedTest]],
) -> Mapping[str, tuple[Session, ...]]:
    """Return the sessions that metrics within their limits add.

    Of a result that was measured again it is the first measurement, not the one that cleared it.
    Only what lies far out is measured again, until it does not: keeping the last would cut the
    noise off at the limit, and a limit that follows from cut noise fails too often.
    """
    found: dict[str, tuple[Session, ...]] = {}
    for run, judged in records:
        for verdict in judged.verdicts:
            name = verdict.metric.name
            observed = judged.observation.metrics.get(name)
            if (
                observed is not None
                and _shows_noise(verdict)
                and not _is_accident(verdict, observed)
            ):
                added = session_of(observed, observed.samples, observed.capture or run)
                found[name] = (*found.get(name, ()), added)
    return found


def _is_accident(verdict: Verdict, observed: MetricObservation) -> bool:
    """Return whether another process refuted what is far out.

    With few sessions stored, a machine that stood still for a moment would move the centre.
    """
    if verdict.outcome is Outcome.TOO_NOISY or not observed.confirmations or not verdict.centre:
        return False
    distance = abs(log(session_of(observed, observed.samples).median / verdict.centre))
    return distance > log1p(POLICY.too_noisy)


def actions_of(judged: JudgedTest, update: Update) -> Mapping[str, Action]:
    """Return the action for each metric; empty if nothing is written."""
    added = sessions_to_append([("", judged)])
    own = (v for v in judged.verdicts if v.reason is not Reason.EXPLAINS)
    actions = {v.metric.name: action_for(v, update) for v in own}
    for name, action in actions.items():
        if action is Action.APPEND and name not in added:
            actions[name] = Action.KEEP
    for name in _less_accurate(judged):
        actions[name] = Action.ACCEPT if update is Update.ALL else Action.KEEP
    for verdict in judged.verdicts:
        if verdict.reason is Reason.EXPLAINS and verdict.detail in actions:
            measured = verdict.metric.name in judged.observation.metrics
            following = _following(verdict, actions[verdict.detail], measured=measured)
            actions[verdict.metric.name] = following
    chosen = set(actions.values())
    if judged.observation.problems or Action.BLOCK in chosen or chosen <= {Action.KEEP}:
        return {}
    return actions


def _less_accurate(judged: JudgedTest) -> Iterator[str]:
    """Yield the accuracies that pass, where the checklist warns of one.

    That is no noise to learn from: a session more would be the error that the next run is compared
    with, without having been accepted. A finding names some only, so all of them are meant.
    """
    if any(
        each.code == pcc_error_grew.code and each.stands for each in judged.observation.findings
    ):
        for verdict in judged.verdicts:
            if verdict.outcome is Outcome.WITHIN and verdict.metric.kind is Kind.ACCURACY:
                yield verdict.metric.name


def action_for(verdict: Verdict, update: Update) -> Action:
    """Return the action for a verdict; BLOCK is for the whole test."""
    match verdict.outcome:
        case Outcome.NO_BASELINE:
            return Action.ADD
        case Outcome.NOT_COMPARABLE:
            if verdict.reason is Reason.OTHER_KEY:
                return Action.ADD
            return Action.REPLACE if update is Update.ALL else Action.BLOCK
        case Outcome.REGRESSED if update is Update.ALL and verdict.reason not in _NEVER_ACCEPTED:
            return Action.ACCEPT
        case _ if _shows_noise(verdict):
            return Action.APPEND if _has_room(verdict) and update is not Update.NEW else Action.KEEP
        case Outcome.SHIFTED:
            return Action.KEEP
        case Outcome.IMPROVED if update is Update.NEW or verdict.reason is not Reason.OPS_CHANGED:
            accepted = Action.REMOVE if verdict.reason is Reason.GONE else Action.ACCEPT
            return Action.KEEP if update is Update.NEW else accepted
        case Outcome.IMPROVED if update is Update.ALL:
            return Action.ACCEPT
    return Action.BLOCK


#: A broken absolute limit is changed where it is written, not accepted around. What does not fit
#: has nothing to store.
_NEVER_ACCEPTED: Final = frozenset({Reason.ABSOLUTE_LIMIT, Reason.OUT_OF_MEMORY})


def _shows_noise(verdict: Verdict) -> bool:
    """Return whether a result shows how its metric varies.

    While a baseline has few runs, what is beyond an assumed limit may be noise that it has not
    shown yet, unless confirm passes agree.
    """
    if verdict.outcome is Outcome.WITHIN:
        return True
    if verdict.outcome is Outcome.TOO_NOISY:
        return verdict.reason in {None, Reason.UNDECIDED}
    return verdict.outcome is Outcome.REGRESSED and is_learning(verdict) and not verdict.confirmed


def _has_room(verdict: Verdict) -> bool:
    # Many sessions of one run count as one.
    return min(verdict.sessions, verdict.runs or verdict.sessions) < MAX_SESSIONS


def _following(part: Verdict, total: Action, *, measured: bool) -> Action:
    """Return the action for a part of a total."""
    if total not in {Action.ACCEPT, Action.REPLACE}:
        room = part.observed is not None and part.centre is not None and measured
        return total if room and _has_room(part) else Action.KEEP
    if not measured:
        return Action.REMOVE
    if part.observed is None:
        return Action.KEEP
    return Action.REPLACE if part.centre is None else Action.ACCEPT


def _change_metric(
    stored: MetricBaseline | None, metric: Metric, action: Action, added: tuple[Session, ...]
) -> MetricBaseline:
    if stored is None or action is Action.REPLACE:
        return MetricBaseline(metric, added[:MAX_SESSIONS])
    if action is Action.ACCEPT:
        # The centre starts anew; the runs before it still tell the spread. Those of one accept
        # only, the one with more of them: two would tell the step between them.
        before = max(
            stored.current,
            stored.sessions[: stored.since],
            key=lambda side: (len({session.run for session in side}), len(side)),
        )
        return MetricBaseline(metric, (*before, *added[:MAX_SESSIONS]), since=len(before))
    # A capture that is read again tells nothing more.
    known = {session.run for session in stored.current if session.run.startswith(CAPTURE)}
    added = tuple(session for session in added if session.run not in known)
    # Many sessions of one run, as a calibration has them, leave room for those of other runs.
    room = MAX_SESSIONS - len({session.run for session in stored.current})
    return replace(stored, sessions=(*stored.sessions, *added[: max(room, 0)]))


def _noted(change: Change) -> Iterator[tuple[str, MetricObservation]]:
    """Yield new metrics that are too noisy to gate, with a note."""
    for name, action in change.actions.items():
        if action not in {Action.ADD, Action.REPLACE}:
            continue
        observed = change.observation.metrics[name]
        if observed.metric.compared_by_ratio:
            stored = MetricBaseline(observed.metric, change.measured[name])
            noise = band_of(stored, observed.limits).noise
            if is_too_noisy(noise, observed.limits):
                yield name, replace(observed, note=_TOO_NOISY.format(100 * expm1(noise)))


_TOO_NOISY: Final = (
    "recorded; noise reaches {:.0f} %: nothing below that will be noticed here; more runs make it "
    "less, then more confirm passes"
)


class Updates(Struct):
    """The changes to write, by hardware."""

    store: BaselineStore
    update: Update | None
    _changes: dict[Hardware, dict[str, Change]] = {}

    def decide(
        self,
        judged: JudgedTest,
        *,
        hardware: Hardware,
        accepted: Callable[[], Acceptance],
        run: str,
    ) -> JudgedTest:
        """Return a judged test with the metrics that will be written."""
        if self.update is None:
            return judged
        test = judged.observation.test
        self.withdraw(test)  # a test that is run again counts once, as it ended
        change = plan(judged, self.update, accepted=accepted(), run=run)
        if change is None:
            return judged
        own = judged.observation.hardware or hardware
        self._changes.setdefault(own, {})[test] = change
        metrics = {**judged.observation.metrics, **dict(_noted(change))}
        observation = replace(judged.observation, metrics=metrics)
        return replace(judged, observation=observation, written=change.metrics)

    def only_new(self) -> None:
        """Forget all changes, and write new baselines alone from now on."""
        self._changes.clear()
        self.update = self.update and Update.NEW

    def withdraw(self, test: str) -> bool:
        """Forget a test's change; return whether there was one."""
        return any(changes.pop(test, None) for changes in self._changes.values())

    def write(self) -> tuple[Path, ...]:
        """Change all files or none; return the changed files.

        Raises:
            TtnnPerfError: a file cannot be read or written.
        """
        changes = {hardware: tests for hardware, tests in self._changes.items() if tests}
        return self.store.amend_keys(changes) if changes else ()

"""Observations against stored baselines, and what each verdict means for its test."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_ttnn_perf.gate.judge import judge_test
from pytest_ttnn_perf.model.metric import Kind
from pytest_ttnn_perf.model.observation import JudgedTest
from pytest_ttnn_perf.model.settings import Missing
from pytest_ttnn_perf.model.verdict import Outcome, Reason
from pytest_ttnn_perf.report.terminal import Manner
from pytest_ttnn_perf.workflow.drifts import drifts_of
from pytest_ttnn_perf.workflow.findings import progress_of_test, violations
from pytest_ttnn_perf.workflow.shifted import assess, relabelled
from pytest_ttnn_perf.workflow.waivers import needless_waivers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_ttnn_perf.baselines.store import BaselineStore
    from pytest_ttnn_perf.model.hardware import Hardware
    from pytest_ttnn_perf.model.observation import Observation, Run
    from pytest_ttnn_perf.model.rerun import Rerun
    from pytest_ttnn_perf.model.settings import Settings
    from pytest_ttnn_perf.model.shift import Shift
    from pytest_ttnn_perf.model.verdict import Verdict


def judge_observation(
    observation: Observation, store: BaselineStore, *, hardware: Hardware | None
) -> JudgedTest:
    """Judge one test on the hardware it ran on: its own, else ``hardware``."""
    own = observation.hardware or hardware
    # Decoding refuses a record that lacks both: no test may drop out of the judging here.
    assert own is not None, f"{observation.test} has no hardware"
    baseline = store.find(own, observation.test)
    other_keys = () if baseline else store.keys_with(observation.test)
    verdicts = judge_test(observation, baseline, other_keys=other_keys)
    judged = JudgedTest(observation, verdicts)
    if observation.ops is None:
        return judged
    from pytest_ttnn_perf.workflow.by_op import judged_by_op

    return replace(judged, by_op=judged_by_op(judged, store, own))


def checked_against_verdicts(judged: JudgedTest, settings: Settings) -> JudgedTest:
    """Ask the checklist what it says of the verdicts on a PCC."""
    if not any(verdict.metric.kind is Kind.ACCURACY for verdict in judged.verdicts):
        return judged
    from pytest_ttnn_perf.workflow.checked_test import asked_of_verdicts

    return asked_of_verdicts(judged, settings)


def judge_run(run: Run, store: BaselineStore, settings: Settings) -> Run:
    """Judge every test of a recorded run anew, and the machine by how they moved at first.

    What the checklist says of verdicts is asked anew too: the record has what it said of others.
    """
    observations = [judged.observation for judged in run.tests.values()]
    tests = _judged(observations, store, run)
    at_first = {**tests, **_judged(filter(None, map(_unconfirmed, observations)), store, run)}
    environment = run.environment
    shift = assess(at_first, store, hardware=run.hardware, environment=environment)
    if shift is not None:
        tests = {name: relabelled(judged, shift) for name, judged in tests.items()}
    tests = {name: checked_against_verdicts(judged, settings) for name, judged in tests.items()}
    return replace(run, tests=tests, shift=shift)


def _judged(
    observations: Iterable[Observation], store: BaselineStore, run: Run
) -> dict[str, JudgedTest]:
    return {
        each.test: judge_observation(each, store, hardware=run.hardware) for each in observations
    }


def _unconfirmed(observation: Observation) -> Observation | None:
    """Return an observation as it was before its confirm passes; None if it had none."""
    metrics = observation.metrics
    if not any(observed.confirmations for observed in metrics.values()):
        return None
    first = {name: replace(observed, confirmations=()) for name, observed in metrics.items()}
    return replace(observation, metrics=first, unconfirmed=None)


def failing(judged: JudgedTest, settings: Settings) -> tuple[Verdict, ...]:
    """Return the verdicts that fail a test; none when its result was written."""
    if judged.written:
        return ()
    missing = settings.missing
    return tuple(verdict for verdict in judged.verdicts if _fails(verdict, missing=missing))


def failed(judged: JudgedTest, settings: Settings) -> bool:
    """Return whether a test fails: by a verdict, a finding, or a mistake in using the plugin."""
    wrong = judged.observation.problems or violations(judged, settings.checklist)
    return bool(wrong or failing(judged, settings))


def manner_of(
    tests: Sequence[JudgedTest], settings: Settings, *, rerun: Rerun, shift: Shift | None
) -> Manner:
    """Return how a judged run is told."""
    # What only the machine did is told once for all tests.
    silent = {Outcome.WITHIN, Outcome.SHIFTED}
    if settings.missing is Missing.IGNORE:
        silent |= {Outcome.NO_BASELINE, Outcome.NOT_COMPARABLE}
    names = frozenset(judged.observation.test for judged in tests if failed(judged, settings))
    progress = {judged.observation.test: progress_of_test(judged) for judged in tests}
    known = tuple((test, each) for test, each in progress.items() if each is not None)
    drifts = tuple(drifts_of(tests))
    return Manner(
        names,
        rerun,
        frozenset(silent),
        shift,
        drifts,
        progress=known,
        needless=tuple(needless_waivers(tests, settings)),
    )


def _fails(verdict: Verdict, *, missing: Missing) -> bool:
    match verdict.outcome:
        case Outcome.WITHIN | Outcome.IMPROVED:
            return False
        case Outcome.SHIFTED:
            return False  # no test's own fault: it fails the run
        case Outcome.REGRESSED | Outcome.TOO_NOISY | Outcome.NO_DATA:
            return True
        case Outcome.NO_BASELINE | Outcome.NOT_COMPARABLE:
            # Another unit is a mistake in the test or the file, not a missing baseline.
            return missing is Missing.FAIL or verdict.reason is Reason.OTHER_DEFINITION

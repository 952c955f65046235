"""Observations against stored baselines, and what each verdict means for its test."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_ttnn_perf.gate.judge import judge_test
from pytest_ttnn_perf.model.observation import JudgedTest
from pytest_ttnn_perf.model.settings import Missing
from pytest_ttnn_perf.model.verdict import Outcome, Reason
from pytest_ttnn_perf.report.terminal import Manner

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_ttnn_perf.baselines.store import BaselineStore
    from pytest_ttnn_perf.model.hardware import Hardware
    from pytest_ttnn_perf.model.observation import Observation, Run
    from pytest_ttnn_perf.model.rerun import Rerun
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
    return JudgedTest(observation, judge_test(observation, baseline, other_keys=other_keys))


def judge_run(run: Run, store: BaselineStore) -> Run:
    """Judge every test of a recorded run anew."""
    tests = {
        name: judge_observation(judged.observation, store, hardware=run.hardware)
        for name, judged in run.tests.items()
    }
    return replace(run, tests=tests)


def failing(judged: JudgedTest, *, missing: Missing) -> tuple[Verdict, ...]:
    """Return the verdicts that fail a test; none when its result was written."""
    if judged.written:
        return ()
    return tuple(verdict for verdict in judged.verdicts if _fails(verdict, missing=missing))


def failed(judged: JudgedTest, *, missing: Missing) -> bool:
    """Return whether a test fails, by a verdict or by a mistake in how it uses the plugin."""
    return bool(judged.observation.problems or failing(judged, missing=missing))


def manner_of(tests: Iterable[JudgedTest], *, missing: Missing, rerun: Rerun) -> Manner:
    """Return how a judged run is told."""
    silent = {Outcome.WITHIN}
    if missing is Missing.IGNORE:
        silent |= {Outcome.NO_BASELINE, Outcome.NOT_COMPARABLE}
    names = frozenset(
        judged.observation.test for judged in tests if failed(judged, missing=missing)
    )
    return Manner(names, rerun, frozenset(silent))


def _fails(verdict: Verdict, *, missing: Missing) -> bool:
    match verdict.outcome:
        case Outcome.WITHIN | Outcome.IMPROVED:
            return False
        case Outcome.REGRESSED | Outcome.TOO_NOISY | Outcome.NO_DATA:
            return True
        case Outcome.NO_BASELINE | Outcome.NOT_COMPARABLE:
            # Another unit is a mistake in the test or the file, not a missing baseline.
            return missing is Missing.FAIL or verdict.reason is Reason.OTHER_DEFINITION

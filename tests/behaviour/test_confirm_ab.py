"""``--ttnn-perf-confirm=ab``: the baseline's commit is measured in turns with this version."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from math import exp
from typing import TYPE_CHECKING

import pytest

from pytest_ttnn_perf.core.baseline import Acceptance, MetricBaseline, Session, TestBaseline
from pytest_ttnn_perf.core.metric import Metric, median
from pytest_ttnn_perf.core.observation import (
    NO_LIMITS,
    JudgedTest,
    MetricObservation,
    Observation,
    Outcome,
    Reason,
    Verdict,
)
from pytest_ttnn_perf.core.settings import USUAL_ROUNDS, Settings, TooNoisy
from pytest_ttnn_perf.experiments.paired import Plan, Round, judge_rounds
from pytest_ttnn_perf.gate.confirm import in_doubt
from pytest_ttnn_perf.gate.judge import judge_test
from pytest_ttnn_perf.gate.judging import failing_verdicts
from pytest_ttnn_perf.gate.ratios import judge_ratio, suite_of
from pytest_ttnn_perf.report.sentences import sentence
from tests.harness.project import Ran, clean
from tests.harness.versions import Versions

if TYPE_CHECKING:
    from pathlib import Path

AB = "--ttnn-perf-confirm=ab"
TIME = Metric("t", unit="ms")


@pytest.fixture
def versions(tmp_path: Path) -> Versions:
    """A repository with a recorded baseline of one test, and its commit."""
    versions = Versions(tmp_path)
    versions.model(a={"latency": 10.0})
    versions.commit("Start")
    assert gate(versions, "--ttnn-perf-update").code == 0
    return versions


def gate(versions: Versions, *words: str, **variables: str) -> Ran:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--ttnn-perf-json=run.json", "--ttnn-perf", *words],
        cwd=versions.root, env=versions.environment("src", **variables), text=True,
        capture_output=True, timeout=300, check=False,
    )  # fmt: skip
    return Ran(done.returncode, clean(done.stdout), clean(done.stderr))


def verdict(versions: Versions) -> dict[str, object]:
    record = json.loads((versions.root / "run.json").read_text())
    found = record["tests"]["test_model.py::test_model[a]"]["verdicts"]["latency"]
    assert isinstance(found, dict)
    return found


def test_a_slower_version_fails_and_a_slower_machine_does_not(versions: Versions) -> None:
    state = versions.state()
    slow_machine = gate(versions, AB, DRIFT="0.02")  # each process finds it slower

    assert slow_machine.code == 0, slow_machine.text
    assert "in turns with" in slow_machine.text
    assert verdict(versions)["outcome"] == "WITHIN"

    versions.model(a={"latency": 10.4})
    assert gate(versions).code == 0  # one run shows little of the noise
    slower = gate(versions, AB)

    assert slower.code == 1, slower.text
    assert "latency 4.0 % slower, limit" in slower.text
    assert "4 rounds against" in slower.text
    assert verdict(versions)["provisional"] is False
    again = versions.command("gate", "run.json")  # the record has what rounds found
    assert (again.code, "latency 4.0 % slower" in again.text) == (1, True), again.text
    assert (versions.state()[2:], versions.left_behind()) == (state[2:], [])


@pytest.mark.parametrize(
    ("first", "outcome", "fails"),
    [(10.3, Outcome.TOO_NOISY, False), (19.0, Outcome.REGRESSED, True)],
)
def test_what_rounds_leave_open_is_no_pass(first: float, outcome: Outcome, fails: bool) -> None:
    session = Session(10.0, 0.01, 10, "r")
    stored = TestBaseline(Acceptance("now"), {"t": MetricBaseline(TIME, (session,))})
    rounds = Verdict(TIME, Outcome.TOO_NOISY, Reason.UNDECIDED, "undecided, -1.0 % to +4.0 %")
    observed = MetricObservation(TIME, (first,), rounds=rounds)
    (verdict,) = judge_test(Observation("t", {"t": observed}), stored)

    assert verdict.outcome is outcome
    assert "undecided, -1.0 %" in sentence(verdict)
    judged = JudgedTest(Observation("t"), (verdict,))
    assert bool(failing_verdicts(judged, Settings())) is fails
    assert failing_verdicts(judged, Settings(too_noisy=TooNoisy.FAIL))


def test_without_the_commit_confirm_passes_decide(versions: Versions) -> None:
    file = next((versions.root / "baselines").rglob("test_model.json"))
    text = file.read_text()
    commit = json.loads(text)["tests"]["test_model[a]"]["accepted"]["commit"]
    file.write_text(text.replace(commit, "0123456789ab"))
    versions.model(a={"latency": 13.0})
    ran = gate(versions, AB)

    assert ran.code == 1
    assert "not compared in turns: '0123456789ab' is not a commit" in ran.text
    assert verdict(versions)["confirmed"] == [13.0] * 4


#: Nights and the machine 1 % off, processes 0.6 %, samples 0.3 %: a test by itself.
NIGHT, PROCESS, SAMPLES = 0.014, 0.006, 0.003


def share_found(effect: float, *, rounds: bool, count: int = 150) -> float:
    """Return how often a test that is slower by ``effect`` fails after three recorded runs."""
    chance, found = random.Random(7), 0
    plan = Plan(USUAL_ROUNDS)

    def process(night: float, slower: float = 0.0) -> tuple[float, ...]:
        own = night + chance.gauss(0, PROCESS)
        return tuple(10 * (1 + slower) * exp(own + chance.gauss(0, SAMPLES)) for _ in range(10))

    for _ in range(count):
        sessions = []
        for run in range(3):
            samples = process(chance.gauss(0, NIGHT))
            sessions.append(Session(median(samples), 0.02, 10, f"r{run}"))
        baseline = MetricBaseline(TIME, tuple(sessions))
        suite = suite_of((baseline,))._replace(move=None)
        night = chance.gauss(0, NIGHT)
        passes = [process(night, effect) for _ in range(5)]
        seen = MetricObservation(TIME, passes[0], () if rounds else tuple(passes[1:]))
        verdict = judge_ratio(seen, baseline, suite=suite)
        once = JudgedTest(Observation("t", {"t": seen}), (verdict,))
        if rounds and in_doubt(once, lambda _: False):
            turns = [
                Round(process(night), process(night, effect), first) for first in plan.orders()
            ]
            compared = judge_rounds(TIME, turns, NO_LIMITS, plan=plan)
            found += compared.outcome is Outcome.REGRESSED
        elif not rounds:
            found += verdict.outcome is Outcome.REGRESSED
    return found / count


def test_rounds_find_what_history_cannot() -> None:
    assert share_found(0.0, rounds=True) == 0
    by_history, by_rounds = (
        [share_found(effect, rounds=rounds) for effect in (0.03, 0.05)] for rounds in (False, True)
    )
    assert by_rounds[0] > by_history[0] + 0.5
    assert by_rounds[1] > 0.85 > by_history[1]

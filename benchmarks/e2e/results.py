"""What the run records tell, and whether that is what must hold."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from benchmarks.e2e.project import least_call_ms
from pytest_ttnn_perf.analysis.captures.detect import read_run
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.records.settings import Settings
from pytest_ttnn_perf.records.verdict import Outcome
from pytest_ttnn_perf.run.judge import failing_verdicts, is_failed, judge_run

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from benchmarks.e2e.project import Project, Ran
    from pytest_ttnn_perf.records.hardware import Environment
    from pytest_ttnn_perf.records.observation import JudgedTest, Run

#: What pytest ends with when all tests pass, when some fail, and when the machine is slower.
PASSED, FAILED, SHIFTED = 0, 1, 6


@dataclass(frozen=True)
class Tested:
    """One test of one run.

    ``alone`` and ``failed_alone`` are what a gate without confirm passes makes of the same first
    measurement; ``change`` and ``limit`` are those of the first measurement.
    """

    test: str
    slowed: bool
    outcome: Outcome
    failed: bool
    alone: Outcome
    failed_alone: bool
    change: float | None
    limit: float | None
    measurements: int

    @property
    def cleared(self) -> bool:
        """Whether it looked slower at first and a confirm pass took that back."""
        return self.alone is Outcome.REGRESSED and self.outcome is Outcome.WITHIN


@dataclass(frozen=True)
class Attempt:
    """One run of the gate. ``slowed`` is the test that did more work; None for none."""

    slowed: str | None
    ran: Ran
    tests: tuple[Tested, ...] = ()
    shift: float | None = None
    reproduced: bool = False
    fastest_ms: float | None = None
    environment: Environment | None = None
    trouble: str | None = None
    neighbour: bool = False

    @property
    def caught(self) -> bool:
        """Whether the test that did more work failed as REGRESSED."""
        return any(t.slowed and t.failed and t.outcome is Outcome.REGRESSED for t in self.tests)

    @property
    def accused(self) -> tuple[Tested, ...]:
        """The tests that failed although they did the same work as ever."""
        return tuple(t for t in self.tests if t.failed and not t.slowed)

    @property
    def consistent(self) -> bool:
        """Whether record, pytest's report and exit code tell the same."""
        slower = self.shift is not None and self.shift > 0
        code = FAILED if any(t.failed for t in self.tests) else SHIFTED if slower else PASSED
        return self.trouble is None and self.ran.code == code

    @property
    def right(self) -> bool:
        """Whether the run ended as it must, exit code and all."""
        if self.accused or not self.consistent:
            return False
        if self.slowed:
            return self.caught
        # With a neighbour on it, the machine is slower: that is the answer then.
        return self.ran.code == PASSED or (self.neighbour and self.ran.code == SHIFTED)

    @property
    def words(self) -> str:
        """What came out, in a few words."""
        failures = [
            f"{t.outcome.value} {t.test.rpartition('::')[2]}" for t in self.tests if t.failed
        ]
        cleared = sum(t.cleared for t in self.tests)
        parts = [", ".join(failures) or "all passed"]
        parts += [f"{cleared} cleared"] if cleared else []
        parts += [] if self.shift is None else [f"shifted by {self.shift:+.1%}"]
        parts += [self.trouble] if self.trouble else []
        parts += [] if self.right else [f"exit code {self.ran.code}: WRONG"]
        return "; ".join(parts)


def run_once(
    project: Project,
    slowed: str | None,
    *,
    more: float,
    record: Path,
    neighbour_after_s: float | None = None,
) -> Attempt:
    """Run the gate with ``slowed`` doing more work, and read the record that it leaves."""
    project.set_work(slowed, more=more)
    ran = project.gate(record, neighbour_after_s=neighbour_after_s)
    attempt = Attempt(slowed, ran, neighbour=neighbour_after_s is not None)
    if not record.exists():
        return replace(attempt, trouble=f"no run record; see {record.with_suffix('.log')}")
    reported = _failed_in_pytest(record.with_suffix(".xml"))
    return _read(attempt, read_run(record), project, reported=reported)


def _failed_in_pytest(report: Path) -> set[str]:
    """Return the tests that pytest's own report has as failed or broken."""
    cases = ET.parse(report).getroot().iter("testcase") if report.exists() else ()
    return {
        f"{case.get('classname')}.py::{case.get('name')}"
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    }


def _read(attempt: Attempt, run: Run, project: Project, *, reported: set[str]) -> Attempt:
    store = BaselineStore(project.baselines)
    store.preload(run.tests)
    alone = judge_run(_without_confirmations(run), store, Settings()).tests
    again = judge_run(run, store, Settings())
    trouble = None
    failures = {name for name, judged in run.tests.items() if is_failed(judged, Settings())}
    if set(run.tests) != set(project.tests):
        trouble = f"tests in the record: {', '.join(run.tests) or 'none'}"
    elif not run.complete:
        trouble = "the run was cut short"
    elif failures != reported:
        trouble = f"failed for pytest itself: {', '.join(sorted(reported)) or 'none'}"
    outcomes = {name: _outcomes(judged) for name, judged in run.tests.items()}
    return replace(
        attempt,
        tests=tuple(
            _tested(judged, alone[name], slowed=name == attempt.slowed)
            for name, judged in run.tests.items()
        ),
        shift=run.shift.change if run.shift else None,
        reproduced=outcomes == {name: _outcomes(judged) for name, judged in again.tests.items()},
        fastest_ms=min(_samples_ms(run.tests.values()), default=None),
        environment=run.environment,
        trouble=trouble,
    )


def _without_confirmations(run: Run) -> Run:
    def first(judged: JudgedTest) -> JudgedTest:
        seen = judged.observation
        metrics = {name: replace(each, confirmations=()) for name, each in seen.metrics.items()}
        return replace(judged, observation=replace(seen, metrics=metrics, unconfirmed=None))

    return replace(run, tests={name: first(judged) for name, judged in run.tests.items()})


def _tested(judged: JudgedTest, alone: JudgedTest, *, slowed: bool) -> Tested:
    first = next(iter(alone.verdicts))
    confirmations = (len(each.confirmations) for each in judged.observation.metrics.values())
    return Tested(
        test=judged.observation.test,
        slowed=slowed,
        outcome=_worst(judged),
        failed=is_failed(judged, Settings()),
        alone=_worst(alone),
        failed_alone=is_failed(alone, Settings()),
        change=first.change,
        limit=first.limit,
        measurements=1 + max(confirmations, default=0),
    )


def _worst(judged: JudgedTest) -> Outcome:
    return (*failing_verdicts(judged, Settings()), *judged.verdicts)[0].outcome


def _outcomes(judged: JudgedTest) -> dict[str, Outcome]:
    return {verdict.metric.name: verdict.outcome for verdict in judged.verdicts}


def _samples_ms(tests: Iterable[JudgedTest]) -> Iterable[float]:
    for judged in tests:
        observed = judged.observation.metrics.get("wall_time")
        for samples in (observed.samples, *observed.confirmations) if observed else ():
            yield from (sample / 1e6 for sample in samples)


@dataclass
class Findings:
    """All that was found. ``calibration`` is what the baseline tells, a row per test.

    ``note`` is what a reader must know of how the figures came about, such as runs before them.
    """

    command: str
    kind: str
    more: float
    note: str = ""
    calibration: list[dict[str, Any]] = field(default_factory=list)
    calibration_s: float = 0.0
    attempts: list[Attempt] = field(default_factory=list)

    def runs(self, *, changed: bool) -> list[Attempt]:
        """Return the runs with or without a test that does more work."""
        return [each for each in self.attempts if bool(each.slowed) is changed]

    def tests(self, *, slowed: bool) -> list[Tested]:
        """Return the tests of all runs that did, or did not do, more work."""
        return [t for each in self.attempts for t in each.tests if t.slowed is slowed]

    @property
    def fastest_ms(self) -> float | None:
        """The shortest call of all runs."""
        return min((a.fastest_ms for a in self.attempts if a.fastest_ms is not None), default=None)

    def bars(self) -> list[tuple[str, bool]]:
        """Return what must hold, in words, and whether it does."""
        changed, unchanged = self.runs(changed=True), self.runs(changed=False)
        caught = sum(each.caught for each in changed)
        accusing = sum(bool(each.accused) for each in changed)
        failures = sum(not each.right for each in unchanged)
        same = sum(each.consistent and each.reproduced for each in self.attempts)
        fastest, least = self.fastest_ms, least_call_ms(self.kind)
        shown = "not measured" if fastest is None else f"{fastest:.1f} ms"
        runs, total = f"of {len(changed)} runs", len(self.attempts)
        return [
            (
                f"{self.more:.0%} more work is `REGRESSED`: in {caught} {runs}",
                0 < caught == len(changed),
            ),
            (f"another test of those runs fails: in {accusing} {runs}", accusing == 0),
            (
                f"unchanged work fails: in {failures} of {len(unchanged)} runs",
                failures == 0 < len(unchanged),
            ),
            (
                "the exit code, pytest's JUnit report and the record judged again all agree with "
                f"the record: {same} of {total} runs",
                0 < same == total,
            ),
            (
                f"the shortest of all calls took {shown} (at least {least} ms)",
                fastest is not None and fastest >= least,
            ),
        ]

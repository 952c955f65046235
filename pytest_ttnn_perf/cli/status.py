"""``ttnn-perf status``: what is stored, what the last run said of it, and what is missing."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.captures.detect import read_run
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.cli.artifacts import from_here, newest_record
from pytest_ttnn_perf.cli.gate import Gate
from pytest_ttnn_perf.records.verdict import WITHOUT_BASELINE
from pytest_ttnn_perf.report.layout import Line
from pytest_ttnn_perf.report.numbers import Listing, Result
from pytest_ttnn_perf.report.sentences import Rerun, command_line, sentence
from pytest_ttnn_perf.run.health import lost_tests
from pytest_ttnn_perf.run.judge import failing_verdicts, violations
from pytest_ttnn_perf.run.record import ci_job
from pytest_ttnn_perf.run.settings import find_root, project_settings

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from pytest_ttnn_perf.cli.gate import Gated
    from pytest_ttnn_perf.records.observation import JudgedTest
    from pytest_ttnn_perf.records.settings import Settings
    from pytest_ttnn_perf.report.layout import Block


@dataclass(frozen=True, slots=True)
class Stored:
    """What is in the folder of baselines."""

    folder: str
    keys: tuple[str, ...]
    tests: int
    metrics: int


@dataclass(frozen=True, slots=True)
class LastRun:
    """The newest run record, judged against the baselines as they are now.

    ``failed`` and ``without_baseline`` have tests with what is wrong: what they measured, or that
    there is nothing to compare it with. ``without_result`` are tests that have a baseline, and were
    not measured in a full run.
    """

    record: str
    gated: Gated
    failed: tuple[tuple[str, str], ...]
    without_baseline: tuple[tuple[str, str], ...]
    without_result: tuple[str, ...]

    @property
    def outcomes(self) -> dict[str, int]:
        """How many metrics have each verdict."""
        tests = self.gated.run.tests.values()
        found = Counter(verdict.outcome.value for judged in tests for verdict in judged.verdicts)
        return dict(sorted(found.items()))

    def document(self) -> dict[str, object]:
        """Return it as plain JSON."""
        run = self.gated.run
        return {
            "record": self.record,
            "started_at": run.environment.started_at,
            "commit": run.environment.commit,
            "dirty": run.environment.dirty,
            "label": run.label,
            "key": run.hardware.key if run.hardware else None,
            "passed": self.gated.passed,
            "complete": run.complete,
            "shifted": run.shift is not None,
            "tests": len(run.tests),
            "outcomes": self.outcomes,
        }


def run(options: argparse.Namespace) -> Result:
    """Return what is stored and what the last run said.

    Raises:
        InputError: a baseline or the newest record is malformed.
    """
    settings = project_settings()
    return Result(_listing(_stored(settings), last_run(settings)).text(options.format))


def gate_here(settings: Settings) -> Gate:
    """Return how recorded runs are judged in this project."""
    return Gate(settings, Rerun(), ci_job(os.environ, find_root(Path.cwd())))


def last_run(settings: Settings) -> LastRun | None:
    """Return the last run; None if there is none.

    Raises:
        InputError: its record or a baseline is malformed.
    """
    record = newest_record(settings)
    if record is None:
        return None
    store = BaselineStore(settings.baselines)
    gated = gate_here(settings).judge(read_run(record), store, records=[record])
    tests = gated.run.tests
    return LastRun(
        str(record),
        gated,
        tuple((name, wrong) for name, each in tests.items() for wrong in _wrong(each, settings)),
        tuple((name, why) for name, each in tests.items() for why in _incomparable(each)),
        tuple(lost_tests(gated.run, store)),
    )


def _wrong(judged: JudgedTest, settings: Settings) -> Iterator[str]:
    yield from judged.observation.problems
    for verdict in failing_verdicts(judged, settings):
        if verdict.outcome not in WITHOUT_BASELINE:
            yield f"{verdict.outcome.value}: {sentence(verdict)}"
    for finding in violations(judged, settings.checklist):
        yield f"{finding.code} {finding.name}: {finding.reason or 'found'}"


def _incomparable(judged: JudgedTest) -> Iterator[str]:
    for verdict in judged.verdicts:
        if verdict.outcome in WITHOUT_BASELINE:
            yield f"{verdict.outcome.value}: {sentence(verdict)}"


def _stored(settings: Settings) -> Stored:
    keys: set[str] = set()
    tests = metrics = 0
    for file in (
        BaselineStore(settings.baselines).all_files() if settings.baselines.is_dir() else ()
    ):
        keys.add(file.content.hardware.key)
        tests += len(file.content.tests)
        metrics += sum(len(test.metrics) for test in file.content.tests.values())
    return Stored(str(from_here(settings.baselines)), tuple(sorted(keys)), tests, metrics)


def _listing(stored: Stored, last: LastRun | None) -> Listing:
    steps = tuple(_next(stored, last))
    failed, incomparable = (last.failed, last.without_baseline) if last else ((), ())
    lost = last.without_result if last else ()
    document = {
        "baselines": {
            "folder": stored.folder,
            "keys": list(stored.keys),
            "tests": stored.tests,
            "metrics": stored.metrics,
        },
        "last_run": last.document() if last else None,
        "failed": [{"test": test, "why": why} for test, why in failed],
        "without_baseline": [{"test": test, "why": why} for test, why in incomparable],
        "without_result": list(lost),
        "next": list(steps),
    }
    rows = (
        *(("failed", *each) for each in failed),
        *(("without_baseline", *each) for each in incomparable),
        *(("without_result", test, "") for test in lost),
    )
    lines = (*_lines(stored, last), *(f"next: {step}" for step in steps))
    return Listing(lines, document, ("state", "test", "why"), rows)


def _lines(stored: Stored, last: LastRun | None) -> Iterator[Block]:
    metrics, tests = counted(stored.metrics, "metric"), counted(stored.tests, "test")
    keys = f", for {', '.join(stored.keys)}" if stored.keys else ""
    yield f"baselines: {metrics} of {tests} in {stored.folder}{keys}"
    if last is None:
        yield "last run: none"
        return
    run = last.gated.run
    environment = run.environment
    commit = f", commit {environment.commit}" if environment.commit else ""
    dirty = " (dirty)" if environment.dirty else ""
    label = f", {run.label}" if run.label else ""
    started = environment.started_at or "time unknown"
    yield f"last run: {last.record}, {started}{commit}{dirty}{label}"
    counts = ", ".join(f"{count} {name}" for name, count in last.outcomes.items())
    verdict = "passed" if last.gated.passed else "failed"
    cut = "" if run.complete else ", and was cut short"
    yield Line(
        f"{counted(len(run.tests), 'test')}: {counts or 'nothing gated'}; it {verdict}{cut}",
        bad=not last.gated.passed,
    )
    for test, why in (*last.failed, *last.without_baseline):
        yield Line(f"{test}: {why}", bad=True)
    for test in last.without_result:
        yield f"{test}: has a baseline, and was not measured"


def _next(stored: Stored, last: LastRun | None) -> Iterator[str]:
    """Yield the commands that lead on."""
    if last is not None and last.failed:
        yield command_line("ttnn-perf", "explain", last.failed[0][0])
    if not stored.tests or (last is not None and last.without_baseline):
        yield "pytest --ttnn-perf-update=new"
    elif last is None:
        yield "pytest --ttnn-perf"

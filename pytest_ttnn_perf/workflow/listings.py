"""What is stored, laid out: the baselines of a folder, the content of a run record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.capture.run_record import read_run
from pytest_ttnn_perf.gate.judge import session_of
from pytest_ttnn_perf.gate.ratios import centre_of
from pytest_ttnn_perf.model.encoding.runs import encode_run
from pytest_ttnn_perf.report.listing import Listing
from pytest_ttnn_perf.report.numbers import format_fraction, format_value
from pytest_ttnn_perf.report.tables import table_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_ttnn_perf.baselines.store import StoredFile
    from pytest_ttnn_perf.model.observation import JudgedTest, MetricObservation, Run

_BASELINE_HEADINGS = (
    "key", "test", "metric", "centre", "unit", "sessions", "since", "current", "accepted",
    "commit", "reason",
)  # fmt: skip
_RUN_HEADINGS = ("test", "metric", "median", "mad", "n", "unit", "source", "gated", "outcome")


def list_baselines(root: Path, *, shape: str) -> str:
    """List every stored metric: its centre, how many sessions it rests on, and why it is there.

    Raises:
        InputError: the folder is missing, or a file in it is malformed.
    """
    rows: list[tuple[object, ...]] = []
    shown: list[tuple[str, ...]] = []
    for file in BaselineStore(root).all_files():
        for row, line in _baseline_rows(file):
            rows.append(row)
            shown.append(line)
    headings = ("key", "test", "metric", "baseline", "sessions", "accepted", "commit", "reason")
    lines = table_lines(headings, shown, right=frozenset({3, 4})) if shown else []
    tests = len({(row[0], row[1]) for row in rows})
    count = f"{counted(len(rows), 'metric')} of {counted(tests, 'test')}"
    document = {
        "baselines": [dict(zip(_BASELINE_HEADINGS, row, strict=True)) for row in rows],
    }
    return Listing((*lines, count), document, _BASELINE_HEADINGS, tuple(rows)).text(shape)


def _baseline_rows(file: StoredFile) -> Iterator[tuple[tuple[object, ...], tuple[str, ...]]]:
    key = file.content.hardware.key
    place = file.test_file or file.path.stem
    for name, test in sorted(file.content.tests.items()):
        nodeid = f"{place}::{name}" if name else place
        accepted = test.accepted
        for metric, stored in sorted(test.metrics.items()):
            centre = centre_of(stored)
            count, since, current = len(stored.sessions), stored.since, len(stored.current)
            provenance = (accepted.at, accepted.commit, accepted.reason)
            unit, value = stored.metric.unit, format_value(stored.metric, centre)
            sessions = "1 (provisional)" if count == 1 else str(current)
            row = (key, nodeid, metric, centre, unit, count, since, current, *provenance)
            yield (
                row,
                (key, nodeid, metric, value, sessions, *(text or "-" for text in provenance)),
            )


def show_run(record: Path, *, shape: str) -> str:
    """Show what a run record holds.

    Raises:
        InputError: with file, line and what was expected.
    """
    run = read_run(record)
    rows: list[tuple[object, ...]] = []
    shown: list[tuple[str, ...]] = []
    for name, judged in run.tests.items():
        for metric, observed in judged.observation.metrics.items():
            row, line = _run_row(name, metric, observed, outcome=_outcome(judged, metric))
            rows.append(row)
            shown.append(line)
    headings = ("test", "metric", "median", "spread", "samples", "verdict")
    lines = table_lines(headings, shown, right=frozenset({2, 3, 4})) if shown else []
    raised = [
        f"{name} raised {judged.observation.raised}"
        for name, judged in run.tests.items()
        if judged.observation.raised is not None
    ]
    text = (*_heading(run), *lines, *raised)
    return Listing(text, encode_run(run), _RUN_HEADINGS, tuple(rows)).text(shape)


def _heading(run: Run) -> Iterator[str]:
    environment = run.environment
    parts = {
        "run": run.id,
        "label": run.label,
        "key": run.hardware.key if run.hardware else None,
        "started": environment.started_at,
        "commit": environment.commit,
        "python": environment.python,
        "ttnn": environment.ttnn,
        "cpu": environment.cpu,
    }
    for name, value in parts.items():
        if value is not None:
            dirty = " (dirty)" if name == "commit" and environment.dirty else ""
            yield f"{name}: {value}{dirty}"
    yield f"tests: {len(run.tests)}" + ("" if run.complete else " (the run was cut short)")


def _run_row(
    test: str, metric: str, observed: MetricObservation, *, outcome: str | None
) -> tuple[tuple[object, ...], tuple[str, ...]]:
    finite = tuple(sample for sample in observed.samples if sample == sample)  # noqa: PLR0124 (NaN)
    session = session_of(observed, finite) if finite else None
    value = session.median if session else None
    several = session is not None and session.n > 1 and session.median
    spread = session.mad / abs(session.median) if session and several else None
    definition = observed.metric
    gated = "" if observed.gated else "recorded only"
    count = len(observed.samples)
    row = (
        test,
        metric,
        value,
        session.mad if session else None,
        count,
        definition.unit,
        definition.source.value,
        observed.gated,
        outcome,
    )
    shown = format_value(definition, value), format_fraction(spread), str(count)
    return row, (test, metric, *shown, outcome or gated or "-")


def _outcome(judged: JudgedTest, metric: str) -> str | None:
    return next((v.outcome.value for v in judged.verdicts if v.metric.name == metric), None)

"""A change of baselines, to be read before it is made: a row per test and metric."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.wording import counted
from pytest_ttnn_perf.model.verdict import Outcome, Verdict
from pytest_ttnn_perf.report.listing import Listing
from pytest_ttnn_perf.report.numbers import format_value
from pytest_ttnn_perf.report.sentences import change_in_words
from pytest_ttnn_perf.report.tables import table_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.model.edit import Edits, Level, MetricEdit, TestEdit

_HEADINGS: Final = ("key", "test", "metric", "before", "after", "change", "what")
_COLUMNS: Final = (
    "key", "test", "renamed_to", "metric", "what", "unit", "before", "before_sessions", "after",
    "after_sessions", "change",
)  # fmt: skip


def edits_listing(edits: Edits, *, dry_run: bool) -> Listing:
    """Lay out what is about to happen; with ``dry_run``, what would."""
    rows = [row for edit in edits.tests for row in _shown_rows(edit)]
    lines = table_lines(_HEADINGS, rows, right=frozenset({3, 4})) if rows else []
    lines += [f"{edit.test}: {edit.note}" for edit in edits.tests if edit.note]
    for refusal in edits.refusals:
        lines += [f"refused {refusal.test} on {refusal.key}: {refusal.why}"]
        lines += [f"  {refusal.remedy}"] if refusal.remedy else []
    lines += edits.remarks
    would = "would " if dry_run else ""
    lines += [f"{would}{file.fate.value} {file.path}" for file in edits.files]
    lines.append(_count(edits, dry_run=dry_run))
    return Listing(tuple(lines), _document(edits, dry_run=dry_run), _COLUMNS, tuple(_rows(edits)))


def _count(edits: Edits, *, dry_run: bool) -> str:
    metrics = sum(len(edit.metrics) for edit in edits.tests)
    parts = [f"{counted(len(edits.tests), 'test')}, {counted(metrics, 'metric')}"]
    parts += [f"{len(edits.refusals)} refused"] if edits.refusals else []
    if not edits.tests:
        parts = ["nothing to write", *parts[1:]]
    return "; ".join(parts) + ("; dry run: nothing is written" if dry_run else "")


def _shown_rows(edit: TestEdit) -> Iterator[tuple[str, ...]]:
    key, test = edit.key, edit.test
    if edit.renamed_to is not None:
        test = f"{edit.test} → {edit.renamed_to}"
    for metric in edit.metrics:
        then = metric.before.centre if metric.before else None
        yield (
            key,
            test,
            metric.metric.name,
            _level(metric, metric.before),
            _level(metric, metric.after, beside=then),
            change_text(metric),
            metric.what,
        )
        key = test = ""


def _level(edit: MetricEdit, level: Level | None, *, beside: float | None = None) -> str:
    if level is None:
        return "-"
    value = format_value(edit.metric, level.centre, beside=beside)
    return f"{value} ({counted(level.sessions, 'session')})"


def change_text(edit: MetricEdit) -> str:
    """Say how much better or worse the centre becomes; "-" where there is nothing to compare."""
    if edit.before is None or edit.after is None:
        return "-"
    if edit.change is None and edit.before.centre:
        return "not comparable"
    return change_in_words(Verdict(edit.metric, Outcome.WITHIN, change=edit.change))


def _rows(edits: Edits) -> Iterator[tuple[object, ...]]:
    for edit in edits.tests:
        for each in edit.metrics:
            then, now = _pair(each.before), _pair(each.after)
            head = (edit.key, edit.test, edit.renamed_to, each.metric.name, each.what)
            yield (*head, each.metric.unit, *then, *now, each.change)


def _pair(level: Level | None) -> tuple[float | None, int | None]:
    return (None, None) if level is None else (level.centre, level.sessions)


def _document(edits: Edits, *, dry_run: bool) -> dict[str, object]:
    return {
        "dry_run": dry_run,
        "tests": [
            {
                "key": edit.key,
                "test": edit.test,
                "renamed_to": edit.renamed_to,
                "note": edit.note,
                "metrics": [_metric_document(each) for each in edit.metrics],
            }
            for edit in edits.tests
        ],
        "refused": [
            {"key": each.key, "test": each.test, "why": each.why, "remedy": each.remedy}
            for each in edits.refusals
        ],
        "files": [{"path": file.path, "fate": file.fate.value} for file in edits.files],
        "remarks": list(edits.remarks),
    }


def _metric_document(edit: MetricEdit) -> dict[str, object]:
    return {
        "metric": edit.metric.name,
        "unit": edit.metric.unit,
        "what": edit.what,
        "before": _level_document(edit.before),
        "after": _level_document(edit.after),
        "change": edit.change,
    }


def _level_document(level: Level | None) -> dict[str, object] | None:
    if level is None:
        return None
    return {"centre": level.centre, "sessions": level.sessions}

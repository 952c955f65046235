"""Changes of baselines, shown and then written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from pytest_ttnn_perf.cli.common import add_argument, add_baselines, add_format
from pytest_ttnn_perf.core.baseline import baseline_path, key_folder, ops_path, split_test_id
from pytest_ttnn_perf.core.errors import TtnnPerfError
from pytest_ttnn_perf.core.metric import Better
from pytest_ttnn_perf.core.observation import Outcome, Verdict
from pytest_ttnn_perf.core.settings import project_settings
from pytest_ttnn_perf.core.text import counted, inert
from pytest_ttnn_perf.gate.ratios import centre_of
from pytest_ttnn_perf.report.sentences import change_in_words
from pytest_ttnn_perf.report.tables import (
    METRIC,
    Column,
    Columns,
    Fit,
    Listing,
    Result,
    format_value,
    id_column,
    shown_path,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from pytest_ttnn_perf.core.baseline import MetricBaseline, TestBaseline
    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.metric import Metric
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.gate.store import BaselineStore, Change
    from pytest_ttnn_perf.report.tables import Block


def add_change(parser: argparse.ArgumentParser) -> None:
    add_argument(parser, "--dry-run", "show the changes without writing them")
    add_baselines(parser)
    add_format(parser)


def edited_settings(options: argparse.Namespace) -> Settings:
    """Return the project's settings, with the baselines that options name."""
    settings = project_settings()
    return replace(settings, baselines=options.baselines) if options.baselines else settings


def repeated_options(options: argparse.Namespace) -> tuple[str, ...]:
    return ("--baselines", str(options.baselines)) if options.baselines else ()


class MetricEdit(NamedTuple):
    """One metric before and after."""

    what: str
    before: MetricBaseline | None
    after: MetricBaseline | None

    @property
    def metric(self) -> Metric:
        stored = self.after or self.before
        assert stored is not None, "a metric that is stored neither before nor after"
        return stored.metric

    @property
    def change(self) -> float | None:
        """The change as the gate computes it: a fraction, plus is worse."""
        if not self.before or not self.after or self.before.metric != self.after.metric:
            return None
        before, after = centre_of(self.before), centre_of(self.after)
        if before == after:
            return 0.0
        if self.metric.better is Better.HIGHER:
            # Of a throughput, the time per unit of work; of an accuracy, what is lost of it.
            whole = after if self.metric.compared_by_ratio else before
            return (before - after) / abs(whole) if whole else None
        return (after - before) / abs(before) if before else None


class Edit(NamedTuple):
    """The change of one test's baseline."""

    key: str
    test: str
    metrics: tuple[MetricEdit, ...] = ()
    renamed_to: str | None = None


class Refusal(NamedTuple):
    """A test whose result is not accepted, why, and its remedy."""

    key: str
    test: str
    why: str
    remedy: str


def metric_edits(
    before: TestBaseline | None, after: TestBaseline | None, what: Mapping[str, str]
) -> tuple[MetricEdit, ...]:
    """Compare the metrics that ``what`` names, with its word for each."""
    old, new = (side.metrics if side else {} for side in (before, after))
    return tuple(
        MetricEdit(word, old.get(name), new.get(name)) for name, word in sorted(what.items())
    )


def _centre(stored: MetricBaseline | None) -> float | None:
    return centre_of(stored) if stored else None


def _sessions(stored: MetricBaseline | None) -> int | None:
    return len(stored.current) if stored else None


def _level(stored: MetricBaseline | None) -> dict[str, object] | None:
    return {"centre": _centre(stored), "sessions": _sessions(stored)} if stored else None


def _level_text(edit: MetricEdit, stored: MetricBaseline | None) -> str:
    if stored is None:
        return "-"
    value = format_value(edit.metric, centre_of(stored), beside=_centre(edit.before))
    return f"{value} ({counted(len(stored.current), 'session')})"


def _change_text(edit: MetricEdit) -> str:
    if edit.before is None or edit.after is None:
        return "-"
    if edit.change is None and centre_of(edit.before):
        return "not comparable"
    return change_in_words(Verdict(edit.metric, Outcome.WITHIN, change=edit.change))


_COLUMNS: Final[Columns[tuple[Edit, MetricEdit]]] = Columns(
    Column("key", lambda row: row[0].key, "key", once=True),
    id_column(lambda row: row[0].test, renamed_to=lambda row: row[0].renamed_to),
    Column("renamed_to", lambda row: row[0].renamed_to),
    Column("metric", lambda row: row[1].metric.name, "metric", fit=METRIC),
    Column("what", lambda row: row[1].what),
    Column("unit", lambda row: row[1].metric.unit),
    Column("before", lambda row: _centre(row[1].before), "before",
           lambda row: _level_text(row[1], row[1].before), right=True, fit=Fit(drop=1)),
    Column("before_sessions", lambda row: _sessions(row[1].before)),
    Column("after", lambda row: _centre(row[1].after), "after",
           lambda row: _level_text(row[1], row[1].after), right=True),
    Column("after_sessions", lambda row: _sessions(row[1].after)),
    Column("change", lambda row: row[1].change, "change", lambda row: _change_text(row[1])),
    Column("", lambda row: row[1].what, "what", fit=Fit(least=10)),
)  # fmt: skip


class Edits:
    """All that a command changes in the baselines."""

    def __init__(self, store: BaselineStore) -> None:
        self.store = store
        self.tests: list[Edit] = []
        self.refusals: list[Refusal] = []
        self.remarks: list[str] = []
        #: The baselines that tests come to have, None for none.
        self.after: dict[Hardware, dict[str, TestBaseline | None]] = {}
        self.changes: dict[Hardware, dict[str, Change]] = {}

    def add(self, hardware: Hardware, test: str, change: Change, what: Mapping[str, str]) -> None:
        before = self.store.find(hardware, test)
        after = change(before)
        self.tests.append(Edit(hardware.key, test, metric_edits(before, after, what)))
        self.after.setdefault(hardware, {})[test] = after
        self.changes.setdefault(hardware, {})[test] = change

    def result(self, options: argparse.Namespace) -> Result:
        """Print the changes, then make them, unless it is a dry run."""
        files, dry_run = self._files(), options.dry_run
        text = self._listing(files, dry_run=dry_run).text(options.format)
        failed = bool(self.refusals) and not dry_run
        if dry_run or not self.tests:
            return Result(text, failed=failed)

        def then() -> Result:
            try:
                self.store.amend_keys(self.changes)
            except TtnnPerfError as error:
                return Result("", failed=True, errors=f"ttnn-perf: not written: {error}\n")
            done = ""
            if options.format == "table":  # the other shapes are one document
                for path, fate in files.items():
                    done += inert(f"{'removed' if fate == 'remove' else 'wrote'} {path}") + "\n"
            return Result(done)

        return Result(text, failed=failed, then=then)

    def _files(self) -> dict[str, str]:
        """Return whether each file is created, changed or removed."""
        fates: dict[Path, str] = {}
        for hardware, tests in self.after.items():
            folder = key_folder(self.store.root, hardware)
            by_file: dict[str, dict[str, TestBaseline | None]] = {}
            for test, after in tests.items():
                test_file, name = split_test_id(test)
                by_file.setdefault(test_file, {})[name] = after
                table = folder / ops_path(test)
                if after is None and table.exists():
                    fates[table] = "remove"
                elif after is not None and after.op_table is not None:
                    fates[table] = "change" if table.exists() else "create"
            for test_file, own in by_file.items():
                path = baseline_path(self.store.root, hardware, test_file)
                stored = self.store.names_in(hardware, test_file)
                stays = any(own.values()) or stored - own.keys()
                fates[path] = ("change" if path.exists() else "create") if stays else "remove"
        return {shown_path(path, Path.cwd()): fates[path] for path in sorted(fates)}

    def _listing(self, files: Mapping[str, str], *, dry_run: bool) -> Listing:
        rows = [(edit, metric) for edit in self.tests for metric in edit.metrics]
        lines: list[Block] = [*_COLUMNS.table(rows)]
        for refusal in self.refusals:
            lines += [f"refused {refusal.test} on {refusal.key}: {refusal.why}"]
            lines += [f"  {refusal.remedy}"] if refusal.remedy else []
        lines += self.remarks
        would = "would " if dry_run else ""
        lines += [f"{would}{fate} {path}" for path, fate in files.items()]
        counts = [f"{counted(len(self.tests), 'test')}, {counted(len(rows), 'metric')}"]
        counts = counts if self.tests else ["nothing to write"]
        counts += [f"{len(self.refusals)} refused"] if self.refusals else []
        counts += ["dry run: nothing is written"] if dry_run else []
        lines.append("; ".join(counts))
        document = {
            "dry_run": dry_run,
            "tests": [
                {
                    "key": edit.key,
                    "test": edit.test,
                    "renamed_to": edit.renamed_to,
                    "note": None,  # others read it
                    "metrics": [
                        {
                            "metric": metric.metric.name,
                            "unit": metric.metric.unit,
                            "what": metric.what,
                            "before": _level(metric.before),
                            "after": _level(metric.after),
                            "change": metric.change,
                        }
                        for metric in edit.metrics
                    ],
                }
                for edit in self.tests
            ],
            "refused": [refusal._asdict() for refusal in self.refusals],
            "files": [{"path": path, "fate": fate} for path, fate in files.items()],
            "remarks": self.remarks,
        }
        return Listing(tuple(lines), document, _COLUMNS.names, _COLUMNS.rows(rows))

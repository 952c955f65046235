"""What a change makes of a baseline, metric by metric and file by file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_ttnn_perf.baselines.paths import baseline_path, key_folder, ops_path, split_test_id
from pytest_ttnn_perf.gate.ratios import centre_of
from pytest_ttnn_perf.model.edit import FileEdit, FileFate, Level, MetricEdit, TestEdit
from pytest_ttnn_perf.model.metric import Better

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pytest_ttnn_perf.baselines.store import BaselineStore
    from pytest_ttnn_perf.model.baseline import MetricBaseline, TestBaseline
    from pytest_ttnn_perf.model.hardware import Hardware
    from pytest_ttnn_perf.model.metric import Metric


def metric_edits(
    before: TestBaseline | None, after: TestBaseline | None, what: Mapping[str, str]
) -> tuple[MetricEdit, ...]:
    """Return the metrics that ``what`` names, with what becomes of each."""
    old = before.metrics if before else {}
    new = after.metrics if after else {}
    return tuple(
        _metric_edit(old.get(name), new.get(name), text) for name, text in sorted(what.items())
    )


def _metric_edit(
    before: MetricBaseline | None, after: MetricBaseline | None, what: str
) -> MetricEdit:
    stored = after or before
    assert stored is not None, "a metric that is stored neither before nor after does not change"
    then, now = level_of(before), level_of(after)
    same = before is not None and after is not None and before.metric == after.metric
    change = _worsening(stored.metric, then.centre, now.centre) if same and then and now else None
    return MetricEdit(stored.metric, what, then, now, change)


def level_of(baseline: MetricBaseline | None) -> Level | None:
    """Return what a stored metric is compared with."""
    if baseline is None:
        return None
    return Level(centre_of(baseline), len(baseline.current), baseline.since)


def _worsening(metric: Metric, before: float, after: float) -> float | None:
    """Return the change as the gate reckons it: a fraction, plus is worse."""
    if before == after:
        return 0.0
    if metric.better is Better.HIGHER:
        # Of a throughput, the time per unit of work; of an accuracy, what is lost of it.
        lower, whole = (before - after), (after if metric.compared_by_ratio else before)
        return lower / abs(whole) if whole else None
    return (after - before) / abs(before) if before else None


def removal(hardware: Hardware, test: str, stored: TestBaseline) -> TestEdit:
    """Return the edit that removes a test."""
    what = dict.fromkeys(stored.metrics, "removed")
    return TestEdit(hardware.key, test, metric_edits(stored, None, what))


def file_edits(
    store: BaselineStore,
    changes: Iterable[tuple[Hardware, Mapping[str, TestBaseline | None]]],
    *,
    here: Path,
) -> tuple[FileEdit, ...]:
    """Return what becomes of each file if tests come to have these baselines, None for none."""
    fates: dict[Path, FileFate] = {}
    for hardware, tests in changes:
        folder = key_folder(store.root, hardware)
        by_file: dict[str, dict[str, TestBaseline | None]] = {}
        for test, after in tests.items():
            by_file.setdefault(split_test_id(test)[0], {})[test] = after
            table = folder / ops_path(test)
            if after is None and table.exists():
                fates[table] = FileFate.REMOVE
            elif after is not None and after.op_table is not None:
                fates[table] = FileFate.CHANGE if table.exists() else FileFate.CREATE
        for test_file, own in by_file.items():
            path = baseline_path(store.root, hardware, test_file)
            fates[path] = _fate(path, store.names_in(hardware, test_file), own)
    return tuple(FileEdit(shown(path, here), fates[path]) for path in sorted(fates))


def _fate(path: Path, stored: frozenset[str], own: Mapping[str, TestBaseline | None]) -> FileFate:
    names = {split_test_id(test)[1]: after for test, after in own.items()}
    left = (stored - names.keys()) | {name for name, after in names.items() if after is not None}
    if not left:
        return FileFate.REMOVE
    return FileFate.CHANGE if path.exists() else FileFate.CREATE


def shown(path: Path, here: Path) -> str:
    """Return a path as the user would name it from where they stand."""
    nearer = os.path.relpath(path, here)
    return str(path) if nearer.startswith(os.pardir) else nearer


def written_text(edits: Iterable[FileEdit]) -> str:
    """Say what was done to each file."""
    return "".join(
        f"{'removed' if edit.fate is FileFate.REMOVE else 'wrote'} {edit.path}\n" for edit in edits
    )

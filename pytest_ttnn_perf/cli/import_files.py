"""``ttnn-perf import FILE...``: results of benchmarks as a run record; targets of models."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.dataclass import dataclass
from pytest_ttnn_perf._base.errors import InputError, UsageError
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.captures.benchmark_run import joined_run
from pytest_ttnn_perf.analysis.captures.detect import ArtifactKind, head_of, kind_of
from pytest_ttnn_perf.analysis.captures.target_files import is_target_file
from pytest_ttnn_perf.gate.judge import session_of
from pytest_ttnn_perf.records.observation import encode_run
from pytest_ttnn_perf.records.systems import typed_hardware
from pytest_ttnn_perf.report.layout import METRIC
from pytest_ttnn_perf.report.notes import reasons_by_name
from pytest_ttnn_perf.report.numbers import (
    Column,
    Columns,
    Listing,
    Result,
    format_value,
    id_column,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_ttnn_perf.records.hardware import Hardware
    from pytest_ttnn_perf.records.observation import MetricObservation, Run
    from pytest_ttnn_perf.report.layout import Block


@dataclass(frozen=True, slots=True)
class _Imported:
    """A metric of a test, as it will be in the record."""

    test: str
    observed: MetricObservation

    @property
    def value(self) -> float | None:
        finite = tuple(sample for sample in self.observed.samples if not isnan(sample))
        return session_of(self.observed, finite).median if finite else None

    @property
    def use(self) -> str:
        return "no" if not self.observed.gated else "yes" if self.value is not None else "no number"


_COLUMNS: Final[Columns[_Imported]] = Columns(
    id_column(lambda m: m.test),
    Column("metric", lambda m: m.observed.metric.name, "metric", fit=METRIC),
    Column("value", lambda m: m.value, "value",
           lambda m: format_value(m.observed.metric, m.value), right=True),
    Column("unit", lambda m: m.observed.metric.unit),
    Column("better", lambda m: m.observed.metric.better.value),
    Column("target", lambda m: m.observed.limits.target),
    Column("gated", lambda m: m.observed.gated, "gated", lambda m: m.use),
    Column("why_ungated", lambda m: m.observed.why_ungated),
)  # fmt: skip


def run(options: argparse.Namespace) -> Result:
    """Turn results of benchmarks into a run record, or targets into a file of them.

    Raises:
        InputError: a file is none, is damaged, or does not say what hardware it is of.
        UsageError: the hardware is not spelt as keys are, targets stand beside results, or a
            model is named for what is no target.
    """
    targets = [file for file in options.files if is_target_file(file, _head(file))]
    if targets and len(targets) < len(options.files):
        message = f"{targets[0]} has targets, and others do not: import them by themselves"
        raise UsageError(message)
    if targets:
        from pytest_ttnn_perf.cli.import_targets import import_targets

        return import_targets(options, hardware=_hardware(options.hardware))
    if options.model is not None:
        message = f"--model is for targets, and {options.files[0]} has results: they name theirs"
        raise UsageError(message)
    for file in options.files:
        kind = kind_of(file)
        if kind is not ArtifactKind.BENCHMARK_JSON:
            raise InputError(file, f"expected results of a benchmark, found {kind.value}")
    imported = joined_run(options.files, _hardware(options.hardware))
    written: Sequence[str] = ()
    if options.json is not None:
        from pytest_ttnn_perf.run.record import write_run

        write_run(imported, options.json)
        written = (f"wrote {options.json}; judge it: ttnn-perf gate {options.json}",)
    return Result(_listing(imported, written).text(options.format))


def _head(file: Path) -> str:
    return head_of(file).decode("utf-8-sig", errors="replace")


def _hardware(key: str | None) -> Hardware | None:
    return None if key is None else typed_hardware(key)


def _listing(imported: Run, written: Sequence[str]) -> Listing:
    metrics = [
        _Imported(name, observed)
        for name, judged in imported.tests.items()
        for observed in judged.observation.metrics.values()
    ]
    gated = sum(1 for metric in metrics if metric.observed.gated)
    known = (judged.observation.hardware for judged in imported.tests.values())
    keys = sorted({hardware.key for hardware in known if hardware is not None})
    lines: list[Block] = [
        *_COLUMNS.table(metrics),
        "",
        *reasons_by_name(metric.observed for metric in metrics),
        f"{counted(len(imported.tests), 'test')} on {', '.join(keys)}: "
        f"{counted(gated, 'metric')} gated, {len(metrics) - gated} recorded only",
        *written,
    ]
    return Listing(tuple(lines), encode_run(imported), _COLUMNS.names, _COLUMNS.rows(metrics))

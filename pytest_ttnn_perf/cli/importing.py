"""``ttnn-perf import FILE...``: results of benchmarks as a run record; targets of models."""

from __future__ import annotations

import json
from math import isnan
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from pytest_ttnn_perf.analysis.readers.benchmark_json import joined_run
from pytest_ttnn_perf.analysis.readers.detect import ArtifactKind, head_of, kind_of
from pytest_ttnn_perf.analysis.readers.targets import NotTaken, is_target_file, read_target_file
from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.files import write_text
from pytest_ttnn_perf.core.hardware import typed_hardware
from pytest_ttnn_perf.core.observation import encode_run
from pytest_ttnn_perf.core.targets import Target, TargetEntry, encode_targets
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.gate.judge import session_of
from pytest_ttnn_perf.report.sentences import reasons_by_name
from pytest_ttnn_perf.report.tables import (
    METRIC,
    NAME,
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

    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.observation import MetricObservation, Run
    from pytest_ttnn_perf.report.tables import Block


# ``ttnn-perf import`` of targets: what was taken into one file, what was not, and why.

_IMPORT_TARGETS_COLUMNS: Final[Columns[tuple[TargetEntry, Target]]] = Columns(
    Column("model", lambda row: row[0].models[0], "model", fit=NAME),
    Column("system", lambda row: row[0].board or row[0].arch, "system"),
    Column("batch", lambda row: row[0].batch, "batch", lambda row: _any(row[0].batch), right=True),
    Column("input_sequence_length", lambda row: row[0].input_sequence_length, "length",
           lambda row: _any(row[0].input_sequence_length), right=True),
    Column("metric", lambda row: row[1].names[0], "metric"),
    Column("target", lambda row: row[1].value, "target",
           lambda row: f"{row[1].value:g} {row[1].unit}".strip(), right=True),
    Column("unit", lambda row: row[1].unit),
)  # fmt: skip


def _any(number: int | None) -> str:
    return "any" if number is None else str(number)


def import_targets(options: argparse.Namespace, *, hardware: Hardware | None) -> Result:
    """Turn files of targets into one.

    Raises:
        InputError: a file is of no known format, or does not say what it is of.
        WriteError: the result cannot be written.
    """
    read = [
        read_target_file(file, model=options.model, hardware=hardware) for file in options.files
    ]
    entries = [entry for part in read for entry in part.entries]
    left: list[NotTaken] = [item for part in read for item in part.not_taken]
    rows = [(entry, target) for entry in entries for target in entry.targets]
    document = encode_targets(entries)
    lines: list[Block] = [*_IMPORT_TARGETS_COLUMNS.table(rows), ""] if rows else []
    lines += [f"not taken: {item.place}: {item.why}" for item in left]
    models = len({entry.models[0] for entry in entries})
    lines.append(
        f"{counted(len(rows), 'target')} of {counted(models, 'model')} taken, {len(left)} not"
    )
    if options.json is not None and entries:
        write_text(options.json, json.dumps(document, indent=1) + "\n")
        lines.append(
            f'wrote {options.json}; use it: targets = "{options.json}" in [tool.ttnn_perf]'
        )
    not_taken = [{"place": item.place, "why": item.why} for item in left]
    listing = Listing(
        tuple(lines),
        {**document, "not_taken": not_taken},
        _IMPORT_TARGETS_COLUMNS.names,
        _IMPORT_TARGETS_COLUMNS.rows(rows),
    )
    return Result(listing.text(options.format), failed=not entries)


class _Imported(Struct, frozen=True):
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


def run_import(options: argparse.Namespace) -> Result:
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
        from pytest_ttnn_perf.gate.record import write_run

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

"""``ttnn-perf import FILE...``: results of benchmarks as a run record; targets."""

from __future__ import annotations

import json
from functools import partial
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.readers.benchmark_json import joined_run
from pytest_ttnn_perf.analysis.readers.detect import ArtifactKind, head_of, kind_of
from pytest_ttnn_perf.analysis.readers.targets import is_target_file, read_target_file
from pytest_ttnn_perf.cli.common import add_argument, add_format
from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.files import write_text
from pytest_ttnn_perf.core.hardware import typed_hardware
from pytest_ttnn_perf.core.observation import encode_run
from pytest_ttnn_perf.core.text import counted
from pytest_ttnn_perf.gate.judge import session_of
from pytest_ttnn_perf.gate.targets import encode_targets
from pytest_ttnn_perf.report.run import write_run
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

    from pytest_ttnn_perf.core.hardware import Hardware
    from pytest_ttnn_perf.core.observation import MetricObservation, Run
    from pytest_ttnn_perf.gate.targets import Target, TargetEntry
    from pytest_ttnn_perf.report.tables import Block


def add_import(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``ttnn-perf import``."""
    parser.description = (
        "Turn results of benchmarks (BenchmarkRun JSON, tt-xla, vLLM, inference servers) into a "
        "run record, and list which of their numbers are gated. What several files have of one "
        "test are its samples. Turn targets of models, such as model_targets.yaml, into a file "
        "for the setting targets, and list what was not taken, and why."
    )
    add = partial(add_argument, parser)
    add("files FILE", "the format is detected", type=Path, nargs="+")
    add("--json PATH", "where to write it", type=Path)
    add("--hardware KEY", "on what they were measured, such as wormhole_b0-n150-1x1 (default: "
        "what they say)")  # fmt: skip
    add("--model NAME", "of targets: the model, for files that do not name it")
    add_format(parser)
    parser.set_defaults(run=run_import)


def run_import(options: argparse.Namespace) -> Result:
    """Turn results into a run record, or targets into a file."""
    heads = {file: head_of(file).decode("utf-8-sig", errors="replace") for file in options.files}
    targets = [file for file, head in heads.items() if is_target_file(file, head)]
    if targets and len(targets) < len(options.files):
        message = f"{targets[0]} has targets, and others do not: import them by themselves"
        raise UsageError(message)
    if targets:
        return _import_targets(options, _hardware(options))
    if options.model is not None:
        message = f"--model is for targets, and {options.files[0]} has results: they name theirs"
        raise UsageError(message)
    for file in options.files:
        kind = kind_of(file)
        if kind is not ArtifactKind.BENCHMARK_JSON:
            raise InputError(file, f"expected results of a benchmark, found {kind.value}")
    run = joined_run(options.files, _hardware(options))
    lines = _run_lines(run)
    if options.json is not None:
        write_run(run, options.json)
        lines.append(f"wrote {options.json}; judge it: ttnn-perf gate {options.json}")
    rows = _METRICS.rows(_metrics_of(run))
    listing = Listing(tuple(lines), encode_run(run), _METRICS.names, rows)
    return Result(listing.text(options.format))


def _hardware(options: argparse.Namespace) -> Hardware | None:
    return None if options.hardware is None else typed_hardware(options.hardware)


_TARGETS: Final[Columns[tuple[TargetEntry, Target]]] = Columns(
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


def _import_targets(options: argparse.Namespace, hardware: Hardware | None) -> Result:
    read = [
        read_target_file(file, model=options.model, hardware=hardware) for file in options.files
    ]
    entries = [entry for part in read for entry in part.entries]
    left = [item for part in read for item in part.not_taken]
    rows = [(entry, target) for entry in entries for target in entry.targets]
    document = encode_targets(entries)
    lines: list[Block] = [*_TARGETS.table(rows), ""] if rows else []
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
    document |= {"not_taken": not_taken}
    listing = Listing(tuple(lines), document, _TARGETS.names, _TARGETS.rows(rows))
    return Result(listing.text(options.format), failed=not entries)


#: A test, a metric of it, and its value if a sample is finite.
_Row = tuple[str, "MetricObservation", float | None]
_METRICS: Final[Columns[_Row]] = Columns(
    id_column(lambda row: row[0]),
    Column("metric", lambda row: row[1].metric.name, "metric", fit=METRIC),
    Column("value", lambda row: row[2], "value",
           lambda row: format_value(row[1].metric, row[2]), right=True),
    Column("unit", lambda row: row[1].metric.unit),
    Column("better", lambda row: row[1].metric.better.value),
    Column("target", lambda row: row[1].limits.target),
    Column("gated", lambda row: row[1].gated, "gated",
           lambda row: "no" if not row[1].gated else "no number" if row[2] is None else "yes"),
    Column("why_ungated", lambda row: row[1].why_ungated),
)  # fmt: skip


def _metrics_of(run: Run) -> list[_Row]:
    rows: list[_Row] = []
    for test, judged in run.tests.items():
        for observed in judged.observation.metrics.values():
            finite = tuple(sample for sample in observed.samples if not isnan(sample))
            rows.append((test, observed, session_of(observed, finite).median if finite else None))
    return rows


def _run_lines(run: Run) -> list[Block]:
    rows = _metrics_of(run)
    gated = sum(observed.gated for _, observed, _ in rows)
    known = (judged.observation.hardware for judged in run.tests.values())
    keys = sorted({hardware.key for hardware in known if hardware is not None})
    return [
        *_METRICS.table(rows),
        "",
        *reasons_by_name(observed for _, observed, _ in rows),
        f"{counted(len(run.tests), 'test')} on {', '.join(keys)}: "
        f"{counted(gated, 'metric')} gated, {len(rows) - gated} recorded only",
    ]

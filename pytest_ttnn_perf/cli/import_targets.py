"""``ttnn-perf import`` of targets: what was taken into one file, what was not, and why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.files import write_text
from pytest_ttnn_perf._base.text import counted
from pytest_ttnn_perf.analysis.captures.target_files import NotTaken, read_target_file
from pytest_ttnn_perf.records.targets import Target, TargetEntry, encode_targets
from pytest_ttnn_perf.report.layout import NAME
from pytest_ttnn_perf.report.numbers import Column, Columns, Listing, Result

if TYPE_CHECKING:
    import argparse

    from pytest_ttnn_perf.records.hardware import Hardware
    from pytest_ttnn_perf.report.layout import Block

_COLUMNS: Final[Columns[tuple[TargetEntry, Target]]] = Columns(
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
    lines: list[Block] = [*_COLUMNS.table(rows), ""] if rows else []
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
        tuple(lines), {**document, "not_taken": not_taken}, _COLUMNS.names, _COLUMNS.rows(rows)
    )
    return Result(listing.text(options.format), failed=not entries)

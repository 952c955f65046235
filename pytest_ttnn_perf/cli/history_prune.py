"""``ttnn-perf history prune``: removes old run records, or old runs of a database."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf._base.text import counted, inert
from pytest_ttnn_perf.baselines.store import BaselineStore
from pytest_ttnn_perf.cli.baseline_edits import edited_settings
from pytest_ttnn_perf.cli.history import records_folder
from pytest_ttnn_perf.history.retention import Aged, Fate, cited_runs, sort_out
from pytest_ttnn_perf.history.runs import record_files
from pytest_ttnn_perf.report.numbers import Column, Columns, Listing, Result

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_ttnn_perf.report.layout import Block


def run(options: argparse.Namespace) -> Result:
    """Remove old runs: of a database only if one is asked for, else the records that are here.

    Raises:
        HistoryError: the database cannot be changed.
        UsageError: there is no folder of records, no database, or it is not said what stays.
        InputError: a baseline is unreadable, so that nobody knows what it cites.
    """
    if options.keep is None and (options.keep_samples is None or options.history is None):
        message = "expected what stays, found nothing: --keep 90d, or --keep 200"
        raise UsageError(message)
    if options.history is not None:
        from pytest_ttnn_perf.cli.history_database import prune_runs

        return prune_runs(options)
    if options.keep_samples is not None:
        message = "--keep-samples is for a database: run records are kept, or removed, as a whole"
        raise UsageError(message)
    return _prune_records(options)


def _prune_records(options: argparse.Namespace) -> Result:
    """Show which records are old, and remove them."""
    settings = edited_settings(options)
    folder = records_folder()
    if not folder.is_dir():
        message = f"{folder}: expected run records, found no folder: there is nothing to remove"
        raise UsageError(message)
    baselines = settings.baselines
    cited = cited_runs(BaselineStore(baselines).all_files()) if baselines.is_dir() else frozenset()
    found = sort_out(list(record_files([folder])), cited, options.keep)
    text = _listing(found, dry_run=options.dry_run).text(options.format)
    old = [aged.file for aged in found if aged.fate is Fate.REMOVED]
    if options.dry_run or not old:
        return Result(text)

    def then() -> Result:
        errors = "".join(map(_not_removed, old))
        return Result("", failed=bool(errors), errors=errors)

    return Result(text, then=then)


def _not_removed(file: Path) -> str:
    """Remove a file; return what is to be said if it stays."""
    try:
        file.unlink(missing_ok=True)  # another command may have been quicker
    except OSError as cause:
        return f"ttnn-perf: not removed: {inert(str(file))}: {cause.strerror}\n"
    return ""


def _day(aged: Aged) -> str:
    return f"{datetime.fromtimestamp(aged.started_s, timezone.utc):%Y-%m-%d}"


_COLUMNS: Final[Columns[Aged]] = Columns(
    Column("record", lambda aged: str(aged.file), "record"),
    Column("fate", lambda aged: aged.fate.value),
    Column("started", lambda aged: None if aged.fate is Fate.NO_RECORD else _day(aged), "started"),
    Column("size_bytes", lambda aged: aged.size_bytes, "size",
           lambda aged: f"{aged.size_bytes / 1000:.1f} kB", right=True),
)  # fmt: skip


def _listing(found: Sequence[Aged], *, dry_run: bool) -> Listing:
    """Lay out what goes, and count what stays."""
    old = [aged for aged in found if aged.fate is Fate.REMOVED]
    size_mb = sum(aged.size_bytes for aged in old) / 1e6
    lines: list[Block] = [*_COLUMNS.table(old)] if old else []
    would = "would remove" if dry_run else "removing"
    lines.append(f"{would} {counted(len(old), 'record')}, {size_mb:.1f} MB")
    counts = Counter(aged.fate for aged in found)
    kept = (fate for fate in Fate if fate is not Fate.REMOVED and counts[fate])
    lines += [f"kept {counts[fate]}: {fate.value}" for fate in kept]
    document = {"dry_run": dry_run, "files": _COLUMNS.objects(found)}
    return Listing(tuple(lines), document, _COLUMNS.names, _COLUMNS.rows(found))

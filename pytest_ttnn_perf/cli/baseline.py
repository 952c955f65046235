"""``ttnn-perf baseline``: what is stored, and living with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.cli.baseline_edits import Changing
from pytest_ttnn_perf.cli.baseline_list import list_baselines
from pytest_ttnn_perf.cli.shared import project_settings
from pytest_ttnn_perf.records.settings import Update
from pytest_ttnn_perf.report.numbers import Result

if TYPE_CHECKING:
    import argparse

    from pytest_ttnn_perf.records.settings import Settings


#: How the names of records and journals end; every other word names tests.
_RECORDS: Final = (".json", ".jsonl")


def run_accept(options: argparse.Namespace) -> Result:
    """Return what records change, and change it."""
    from pytest_ttnn_perf.cli.baseline_accept import Acceptance, accept_records

    unknown = [word for word in options.rest if word.startswith("-")]
    if unknown:
        message = f"unrecognized arguments: {' '.join(unknown)}"
        raise UsageError(message)
    words = [*options.words, *options.rest]
    records = [Path(word) for word in words if word.endswith(_RECORDS)]
    if not records:
        message = f"expected a run record that ends in .json or .jsonl, found {words[0]}"
        raise UsageError(message)
    asked = Acceptance(
        records=list(dict.fromkeys(records)),
        tests=[word for word in words if not word.endswith(_RECORDS)],
        update=Update(options.update),
        reason=options.reason,
        changing=_changing(options),
        options=_repeated(options),
    )
    return accept_records(asked, _settings(options))


def run_prune(options: argparse.Namespace) -> Result:
    """Return what is gone, and remove it."""
    from pytest_ttnn_perf.cli.baseline_move import Pruning, prune_baselines

    if (options.record is None) is not options.collect:
        message = "say how it is known which tests there are: ttnn-perf baseline prune RUN.json, "
        raise UsageError(
            message + "the record of a full run, or ttnn-perf baseline prune --collect"
        )
    asked = Pruning(
        options.record, options.full, options.key, _changing(options), _repeated(options)
    )
    return prune_baselines(asked, _settings(options))


def run_rename(options: argparse.Namespace) -> Result:
    """Return which baselines are renamed, and rename them."""
    from pytest_ttnn_perf.cli.baseline_move import rename_baselines

    root = _settings(options).baselines
    return rename_baselines(options.before, options.after, root, _changing(options))


def _changing(options: argparse.Namespace) -> Changing:
    return Changing(options.dry_run, options.format, Path.cwd())


def _settings(options: argparse.Namespace) -> Settings:
    settings = project_settings()
    return replace(settings, baselines=options.baselines) if options.baselines else settings


def _repeated(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the options that a command which is offered must repeat."""
    return ("--baselines", str(options.baselines)) if options.baselines else ()


def run_list(options: argparse.Namespace) -> Result:
    """Return the list."""
    root = options.baselines or project_settings().baselines
    if options.log:
        from pytest_ttnn_perf.cli.baseline_list import list_acceptances

        return Result(list_acceptances(root, options.tests, shape=options.format))
    if options.tests:
        from pytest_ttnn_perf._base.errors import UsageError

        message = f"tests are named with --log: ttnn-perf baseline list --log {options.tests[0]}"
        raise UsageError(message)
    return Result(list_baselines(root, shape=options.format))

"""``ttnn-perf baseline``: what is stored, and living with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.errors import UsageError
from pytest_ttnn_perf.cli import baseline_merge
from pytest_ttnn_perf.cli.baseline_edits import Changing
from pytest_ttnn_perf.cli.baseline_list import list_baselines
from pytest_ttnn_perf.cli.options import add_baselines, add_format, project_settings
from pytest_ttnn_perf.records.result import Result
from pytest_ttnn_perf.records.settings import Update

if TYPE_CHECKING:
    import argparse

    from pytest_ttnn_perf.records.settings import Settings


#: How the names of records and journals end; every other word names tests.
_RECORDS: Final = (".json", ".jsonl")


def declare_changes(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the actions."""
    _declare_accept(actions)
    _declare_prune(actions)
    _declare_rename(actions)


def _declare_accept(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    accept = actions.add_parser(
        "accept",
        usage="ttnn-perf baseline accept RUN.json [RUN.json ...] [TEST ...] [options]",
        help="take the results of recorded runs into the baselines",
        description="Take the results of recorded runs, say of a CI job, into the baselines. "
        "Several records of one commit give several sessions.",
    )
    accept.add_argument("words", metavar="RUN.json", nargs="+", help="run records, then tests")
    accept.add_argument(
        "--update",
        choices=[choice.value for choice in Update],
        default=Update.IMPROVED.value,
        help="what to take: what is new, also what improved (default), also what got worse",
    )
    accept.add_argument("--reason", metavar="TEXT", help="why it is right; needed with all")
    _add_change(accept, run_accept)
    accept.set_defaults(passes_on=True)  # tests may stand after the options


def _declare_prune(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    prune = actions.add_parser(
        "prune",
        help="remove baselines whose test is gone",
        description="Remove baselines whose test is gone. Which tests there are is told by the "
        "record of a full run, or by collecting them here.",
    )
    prune.add_argument(
        "record", metavar="RUN.json", type=Path, nargs="?", help="the record of a full run"
    )
    prune.add_argument("--collect", action="store_true", help="ask pytest --collect-only instead")
    prune.add_argument("--full", action="store_true", help="the record has all tests there are")
    prune.add_argument("--key", metavar="KEY", help="only baselines of this hardware")
    _add_change(prune, run_prune)


def _declare_rename(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    rename = actions.add_parser(
        "rename",
        help="give baselines the new name of their test, file or folder",
        description="Give baselines the new name of their test, on all hardware: a test with its "
        "parameters, a class, a file, or a folder that ends in /.",
    )
    rename.add_argument("before", metavar="OLD")
    rename.add_argument("after", metavar="NEW")
    _add_change(rename, run_rename)


def _add_change(parser: argparse.ArgumentParser, run: object) -> None:
    parser.add_argument("--dry-run", action="store_true", help="show it, and write nothing")
    add_baselines(parser)
    add_format(parser)
    parser.set_defaults(run=run)


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


def declare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its actions."""
    parser = commands.add_parser("baseline", help="look at stored baselines, and change them")
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser(
        "list",
        help="list every stored metric, or who accepted it",
        description="List every stored metric: its centre, its sessions, when and why accepted.",
    )
    listing.add_argument(
        "--log", action="store_true", help="who accepted what and why, from the files and from git"
    )
    listing.add_argument(
        "tests", metavar="TEST", nargs="*", help="with --log: only these, by id, file, or * and ?"
    )
    add_baselines(listing)
    add_format(listing)
    listing.set_defaults(run=run_list)
    declare_changes(actions)
    baseline_merge.declare(actions)


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

"""The words of ``ttnn-perf baseline`` and its actions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.words import add_baselines, add_change, add_format

if TYPE_CHECKING:
    import argparse

    Actions = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 (has no other name)


def baseline(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf baseline``."""
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
    listing.set_defaults(run="baseline_list:run")
    _check(actions)
    _accept(actions)
    _prune(actions)
    _rename(actions)
    _merge_baselines(actions)


def _check(actions: Actions) -> None:
    check = actions.add_parser(
        "check",
        help="look whether files are valid, and what got worse has a reason; exit 1 if not",
        description="Look whether baseline files are valid, and whether what is worse than in the "
        "last commit was accepted with a reason. For hooks of git, and for reviews.",
    )
    check.add_argument(
        "files", metavar="FILE", type=Path, nargs="*", help="baseline files (default: all)"
    )
    add_baselines(check)
    add_format(check)
    check.set_defaults(run="baseline_check:run")


def _accept(actions: Actions) -> None:
    from pytest_ttnn_perf.records.settings import Update

    accept = actions.add_parser(
        "accept",
        usage="ttnn-perf baseline accept RUN.json [RUN.json ...] [TEST ...] [options] [-- ID ...]",
        help="take the results of recorded runs into the baselines",
        description="Take the results of recorded runs, say of a CI job, into the baselines. "
        "Several records of one commit give several sessions. What stands behind -- is the id of "
        "one test, and neither a pattern nor a folder.",
    )
    accept.add_argument("words", metavar="RUN.json", nargs="+", help="run records, then tests")
    accept.add_argument(
        "--update",
        choices=[choice.value for choice in Update],
        help="what to take: what is new, also what improved (default), also what got worse "
        "(default with --reason)",
    )
    accept.add_argument("--reason", metavar="TEXT", help="why it is right; needed with all")
    add_change(accept, "baseline_accept:run")
    accept.set_defaults(passes_on=True)  # tests may stand after the options


def _prune(actions: Actions) -> None:
    prune = actions.add_parser(
        "prune",
        help="remove baselines whose test is gone",
        description="Remove baselines whose test is gone. Which tests there are is known from the "
        "record of a full run, or by collecting them here.",
    )
    prune.add_argument(
        "record", metavar="RUN.json", type=Path, nargs="?", help="the record of a full run"
    )
    prune.add_argument("--collect", action="store_true", help="ask pytest --collect-only instead")
    prune.add_argument("--full", action="store_true", help="the record has all tests there are")
    prune.add_argument("--key", metavar="KEY", help="only baselines of this hardware")
    add_change(prune, "baseline_move:run_prune")


def _rename(actions: Actions) -> None:
    rename = actions.add_parser(
        "rename",
        help="give baselines the new name of their test, file or folder",
        description="Give baselines the new name of their test, on all hardware: a test with its "
        "parameters, a class, a file, or a folder that ends in /.",
    )
    rename.add_argument("before", metavar="OLD")
    rename.add_argument("after", metavar="NEW")
    add_change(rename, "baseline_move:run_rename")


def _merge_baselines(actions: Actions) -> None:
    from pytest_ttnn_perf.records.settings import Take

    merge = actions.add_parser(
        "merge",
        usage="ttnn-perf baseline merge BASE OURS THEIRS [--path P] [--take SIDE], or "
        "ttnn-perf baseline merge --path P --take SIDE",
        help="merge a baseline file that two branches changed; exit 1 for conflicts",
        description="Merge three versions of a baseline file, by test and session, into OURS. "
        "Without them: those of a file that git has in conflict.",
    )
    merge.add_argument("files", metavar="BASE OURS THEIRS", type=Path, nargs="*", help="versions")
    merge.add_argument("--path", metavar="P", type=Path, help="the file's name in the repository")
    merge.add_argument(
        "--take",
        choices=[side.value for side in Take],
        help="whose baseline to take of a test that both sides accepted (default: report it)",
    )
    add_format(merge)
    merge.set_defaults(run="baseline_merge:run_merge")
    install = actions.add_parser(
        "install-merge-driver",
        help="let git merge baselines with this command",
        description="Let git merge baselines with ttnn-perf: writes the settings of this clone and "
        "lines in .gitattributes. Doing it again changes nothing.",
    )
    install.add_argument("--dry-run", action="store_true", help="show it, and write nothing")
    add_baselines(install)
    add_format(install)
    install.set_defaults(run="baseline_merge:run_install")

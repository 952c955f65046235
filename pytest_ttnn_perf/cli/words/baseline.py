"""The words of ``ttnn-perf baseline`` and its actions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pytest_ttnn_perf.cli.words import add_baselines, add_change, add_format, number_within

if TYPE_CHECKING:
    import argparse

    Actions = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 (has no other name)


def baseline(parser: argparse.ArgumentParser) -> None:
    """Declare ``ttnn-perf baseline``."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    listing = actions.add_parser(
        "list",
        help="list all stored metrics, or who accepted them",
        description="List all stored metrics: value, sessions, when and why they were accepted.",
    )
    listing.add_argument(
        "--log",
        action="store_true",
        help="show who accepted what and why, from the files and from git",
    )
    listing.add_argument(
        "tests",
        metavar="TEST",
        nargs="*",
        help="with --log: only these tests, as an id, a file, or a pattern with * and ?",
    )
    add_baselines(listing)
    add_format(listing)
    listing.set_defaults(run="baseline_list:run")
    _check(actions)
    _accept(actions)
    _refresh(actions)
    _forget(actions)
    _prune(actions)
    _rename(actions)
    _merge_baselines(actions)


def _check(actions: Actions) -> None:
    check = actions.add_parser(
        "check",
        help="check that files are valid, and that what got worse has a reason; exit 1 if not",
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
        help="accept the results of recorded runs as baselines",
        description="Accept the results of recorded runs, such as those of a CI job, as baselines. "
        "Several records of one commit become several sessions. What follows -- is the exact id "
        "of a test, not a pattern or a folder.",
    )
    accept.add_argument(
        "words", metavar="RUN.json", nargs="+", help="run records, followed by tests"
    )
    accept.add_argument(
        "--update",
        choices=[choice.value for choice in Update],
        help="what to accept: new results only, improved ones too (default), or worse ones too "
        "(default with --reason)",
    )
    accept.add_argument(
        "--reason", metavar="TEXT", help="why the change is accepted; required with --update all"
    )
    accept.add_argument(
        "--other-commit",
        action="store_true",
        help="accept records of a commit that is neither checked out nor before the one that is",
    )
    add_change(accept, "baseline_accept:run")
    accept.set_defaults(passes_on=True)  # tests may stand after the options


def _refresh(actions: Actions) -> None:
    from pytest_ttnn_perf.cli.words.history import add_branch, add_source
    from pytest_ttnn_perf.records.settings import MAX_REFRESHED, MIN_REFRESHED

    refresh = actions.add_parser(
        "refresh",
        usage="ttnn-perf baseline refresh --from-history [TEST ...] [options] [-- ID ...]",
        help="make baselines of the last recorded runs of a branch",
        description="Make baselines of the last recorded runs of a branch, such as those of every "
        "night. What got worse than the gate's limit since it was last accepted is refused, "
        "however slowly; so is what changed within these runs. Exit 1 if a test is refused.",
    )
    refresh.add_argument("tests", metavar="TEST", nargs="*", help="only these tests")
    refresh.add_argument(
        "--from-history", action="store_true", required=True, help="take runs that were recorded"
    )
    add_source(refresh)
    add_branch(refresh)
    refresh.add_argument(
        "--last",
        metavar="N",
        type=number_within(MIN_REFRESHED, MAX_REFRESHED),
        default=MAX_REFRESHED,
        help=f"how many runs of the branch to look at (default: {MAX_REFRESHED})",
    )
    refresh.add_argument(
        "--reason", metavar="TEXT", help="what to store as the reason (default: which runs)"
    )
    add_change(refresh, "baseline_refresh:run")
    refresh.set_defaults(passes_on=True, all_branches=False, dirty=False)


def _forget(actions: Actions) -> None:
    forget = actions.add_parser(
        "forget",
        usage="ttnn-perf baseline forget [TEST ...] [options] [-- ID ...]",
        help="remove baselines of tests, to record them anew",
        description="Remove the baselines of tests, to record them anew. What follows -- is the "
        "exact id of a test, not a pattern or a folder.",
    )
    forget.add_argument(
        "tests", metavar="TEST", nargs="*", help="an id, a file, or a pattern with * and ?"
    )
    forget.add_argument("--metric", metavar="NAME", help="only this metric of them")
    forget.add_argument("--key", metavar="KEY", help="only baselines of this hardware key")
    add_change(forget, "baseline_move:run_forget")


def _prune(actions: Actions) -> None:
    prune = actions.add_parser(
        "prune",
        help="remove baselines of tests that no longer exist",
        description="Remove baselines of tests that no longer exist. Which tests exist is taken "
        "from the record of a full run, or found by collecting them here.",
    )
    prune.add_argument(
        "record", metavar="RUN.json", type=Path, nargs="?", help="the record of a full run"
    )
    prune.add_argument(
        "--collect",
        action="store_true",
        help="collect the tests with pytest instead of reading a record",
    )
    prune.add_argument("--full", action="store_true", help="the record contains all tests")
    prune.add_argument("--key", metavar="KEY", help="only baselines of this hardware key")
    add_change(prune, "baseline_move:run_prune")


def _rename(actions: Actions) -> None:
    rename = actions.add_parser(
        "rename",
        help="rename baselines after their test, file or folder was renamed",
        description="Rename baselines, on all hardware, after their tests were renamed. OLD and "
        "NEW are a test with its parameters, a class, a file, or a folder that ends in /.",
    )
    rename.add_argument("before", metavar="OLD")
    rename.add_argument("after", metavar="NEW")
    rename.add_argument(
        "--keys",
        action="store_true",
        help="OLD and NEW are hardware keys: move all baselines of one to the other",
    )
    add_change(rename, "baseline_move:run_rename")


def _merge_baselines(actions: Actions) -> None:
    from pytest_ttnn_perf.records.settings import Take

    merge = actions.add_parser(
        "merge",
        usage="ttnn-perf baseline merge BASE OURS THEIRS [--path P] [--take SIDE]\n"
        "       ttnn-perf baseline merge --path P --take SIDE",
        help="merge a baseline file that two branches changed; exit 1 on conflicts",
        description="Merge three versions of a baseline file, by test and session, into OURS. "
        "Without files: merge the versions of a file that is in conflict in git.",
    )
    merge.add_argument(
        "files",
        metavar="BASE OURS THEIRS",
        type=Path,
        nargs="*",
        help="the three versions of the file",
    )
    merge.add_argument(
        "--path", metavar="P", type=Path, help="the path of the file in the repository"
    )
    merge.add_argument(
        "--take",
        choices=[side.value for side in Take],
        help="which side to take for a test that both sides accepted (default: report a conflict)",
    )
    add_format(merge)
    merge.set_defaults(run="baseline_merge:run_merge")
    install = actions.add_parser(
        "install-merge-driver",
        help="make git merge baselines with this command",
        description="Make git merge baselines with ttnn-perf: write the settings of this clone and "
        "lines in .gitattributes. Running it again changes nothing.",
    )
    install.add_argument(
        "--dry-run", action="store_true", help="show the changes without writing them"
    )
    add_baselines(install)
    add_format(install)
    install.set_defaults(run="baseline_merge:run_install")

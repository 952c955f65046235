"""``ttnn-perf``: the words of every command, and the function that runs it.

Commands are imported once they are asked for: ``--help`` and a mistyped word cost none.
"""

from __future__ import annotations

import argparse
import io
import sys
from dataclasses import replace
from enum import IntEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf import __version__
from pytest_ttnn_perf._base.errors import TtnnPerfError, UsageError
from pytest_ttnn_perf._base.text import inert_lines
from pytest_ttnn_perf.cli.words import (
    add_artifacts,
    add_baselines,
    add_change,
    add_format,
    add_gate,
    add_window,
    number_within,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.report.numbers import Result

    Commands = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 (has no other name)


class ExitCode(IntEnum):
    """What the shell learns."""

    OK = 0
    GATE_FAILED = 1
    USAGE = 2
    UNREADABLE = 3
    SHIFTED = 6
    INCONCLUSIVE = 7
    INTERNAL_ERROR = 8


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Results go to stdout, everything else to stderr."""
    # A test id may hold what no terminal can print, such as half a surrogate pair.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    words = sys.argv[1:] if arguments is None else arguments
    try:
        return _run(words)
    except Exception:  # noqa: BLE001 (Python's own exit code would be that of a gate that failed)
        return _report_defect(words)


def _run(words: Sequence[str]) -> ExitCode:
    options = parse(words)
    module, _, function = options.run.partition(":")
    try:
        command = import_module(f"pytest_ttnn_perf.cli.{module}")
        result = _print(getattr(command, function)(options))
    except UsageError as error:
        return _complain(error, ExitCode.USAGE)
    except TtnnPerfError as error:
        return _complain(error, ExitCode.UNREADABLE)
    if result.failed:
        return ExitCode.GATE_FAILED
    if result.inconclusive:
        return ExitCode.INCONCLUSIVE
    return ExitCode.SHIFTED if result.shifted else ExitCode.OK


def _print(result: Result) -> Result:
    """Print a result, do what is to be done after it, and print what came of that."""
    try:
        sys.stdout.write(result.text)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, say `head`, has seen enough. Python would complain once more at exit.
        sys.stderr.close()
    if result.errors and not sys.stderr.closed:
        sys.stderr.write(inert_lines(result.errors))
    if result.then is None:
        return result
    after = _print(result.then())
    return replace(after, failed=after.failed or result.failed)


def _complain(error: TtnnPerfError, code: ExitCode) -> ExitCode:
    sys.stderr.write(inert_lines(f"ttnn-perf: {error}\n"))
    return code


def _report_defect(words: Sequence[str]) -> ExitCode:
    """Say that the error which is being handled is ours, and what a report of it should have."""
    import platform
    import shlex
    import traceback

    text = (
        f"{traceback.format_exc()}"
        f"ttnn-perf: internal error, a defect of ttnn-perf {__version__} and no verdict; please "
        "report it with\n"
        f"  the command: {shlex.join(['ttnn-perf', *words])}\n"
        "  the traceback above, and the files that the command read, if they may be shared\n"
        f"  the versions: ttnn-perf {__version__}, Python {platform.python_version()}, "
        f"{platform.system()}\n"
    )
    if not sys.stderr.closed:
        sys.stderr.write(text)
    return ExitCode.INTERNAL_ERROR


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return what a command line says; ``run`` names the module and function of its command.

    What a command does not know is in ``rest`` for those that pass it on to pytest. What stands
    behind two dashes is in ``ids`` for those that take ids of tests, which may look like anything.
    """
    parser = command_parser(arguments[0] if arguments else None)
    ids: list[str] = []
    if tuple(arguments[:2]) in _TAKE_IDS and "--" in arguments:
        end = list(arguments).index("--")
        arguments, ids = arguments[:end], list(arguments[end + 1 :])
    options, rest = parser.parse_known_args(arguments)
    options.rest, options.ids = rest, ids
    if rest and not getattr(options, "passes_on", False):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return options


def command_parser(asked: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands; with the arguments of one alone if it is ``asked`` for."""
    parser = argparse.ArgumentParser(prog="ttnn-perf", description="Performance gates for TTNN.")
    parser.add_argument("--version", action="version", version=f"ttnn-perf {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (summary, declare) in _COMMANDS.items():
        command = commands.add_parser(name, help=summary)
        if asked is None or asked == name:
            declare(command)
    return parser


def _gate(parser: argparse.ArgumentParser) -> None:
    parser.description = "Judge a run record against baselines, with no pytest and no hardware."
    parser.add_argument(
        "record",
        metavar="RUN.json",
        type=Path,
        help="a run record, or the journal of a run that was cut short",
    )
    add_gate(parser)
    parser.set_defaults(run="gate:run")


def _merge(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Join the run records of several shards and hardware keys into one report and "
        "one verdict, with no pytest and no hardware."
    )
    parser.add_argument("records", metavar="RUN.json", type=Path, nargs="+", help="run records")
    parser.add_argument(
        "--expect",
        metavar="N",
        type=int,
        help="how many records there should be: a shard that is missing fails",
    )
    add_gate(parser)
    parser.set_defaults(run="merge:run")


def _ab(parser: argparse.ArgumentParser) -> None:
    from pytest_ttnn_perf.records.settings import USUAL_ROUNDS

    parser.usage = (
        "ttnn-perf ab REF [TESTS] [--rounds N] [--same DIR] [options of this or of pytest]"
    )
    parser.description = (
        "Check REF out beside the working tree, and measure both in turns, each time "
        "in a fresh process, until it is known what changed. Rounds are judged pair by pair, so "
        "that a machine that drifts does not matter. No baseline is needed, and none is written. "
        "What is not an option of this command is passed on to pytest. Exit code 7: not all "
        "could be told."
    )
    parser.allow_abbrev = False
    parser.add_argument("ref", metavar="REF", help="a branch, a tag or a commit")
    _add_rounds(parser, "processes of each side at most", USUAL_ROUNDS)
    _add_same(parser, "code that both sides take from the working tree, such as a build in it")
    add_format(parser)
    # No argument is declared for the tests: pytest's options and their values stay in order.
    parser.set_defaults(run="ab:run", passes_on=True)


def _bisect(parser: argparse.ArgumentParser) -> None:
    from pytest_ttnn_perf.records.settings import MAX_ROUNDS

    parser.usage = (
        "ttnn-perf bisect GOOD [BAD] [TESTS] [--metric NAME] [--rounds N] [--same DIR] "
        "[options of this or of pytest]"
    )
    parser.description = (
        "Find the commit that made a test slower. Commits after GOOD up to BAD (default: HEAD), by "
        "first parents, are measured in turns with GOOD, in folders of their own. The same command "
        "goes on after Ctrl-C. What is not an option of this command is passed on to pytest. Exit "
        "code 1: BAD is not slower. 7: it could not be told, or was interrupted."
    )
    parser.allow_abbrev = False
    parser.add_argument("good", metavar="GOOD", help="a branch, a tag or a commit that is fast")
    parser.add_argument(
        "--metric", metavar="NAME", help="the metric to follow (default: the clearest)"
    )
    _add_rounds(parser, "processes of each commit at most", MAX_ROUNDS)
    _add_same(parser, "code that all commits take from the working tree, such as a build in it")
    add_format(parser)
    # BAD and the tests are not declared: pytest's options and their values stay in order.
    parser.set_defaults(run="bisect:run", passes_on=True)


def _add_rounds(parser: argparse.ArgumentParser, text: str, usual: int) -> None:
    """Declare ``--rounds``."""
    from pytest_ttnn_perf.records.settings import MAX_ROUNDS, MIN_ROUNDS

    parser.add_argument(
        "--rounds",
        metavar="N",
        type=number_within(MIN_ROUNDS, MAX_ROUNDS),
        default=usual,
        help=f"{text}, {MIN_ROUNDS} to {MAX_ROUNDS} (default: {usual})",
    )


def _add_same(parser: argparse.ArgumentParser, text: str) -> None:
    """Declare ``--same``."""
    parser.add_argument("--same", metavar="DIR", action="append", default=[], help=text)


def _check(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Ask every rule of the optimization checklist about what a profiler and ttnn "
        "recorded: what was found, what is clean, and what could not be told."
    )
    add_artifacts(parser)
    parser.add_argument("--select", metavar="CODES", help="only these rules, or prefixes: TTP6")
    parser.add_argument("--ignore", metavar="CODES", help="not these rules, or prefixes")
    parser.add_argument(
        "--all",
        action="store_true",
        help="also what would save less than 1 %% of a step, and what rules lack",
    )
    add_format(parser)
    parser.set_defaults(run="check:run")


def _analyze(parser: argparse.ArgumentParser) -> None:
    from pytest_ttnn_perf.records.finding import NAMES

    parser.description = (
        "Show the numbers behind the optimization checklist, from what a profiler and "
        "ttnn recorded: how things are distributed, and what weighs most."
    )
    parser.add_argument("what", metavar="WHAT", choices=NAMES, help=", ".join(NAMES))
    add_artifacts(parser)
    add_format(parser)
    parser.set_defaults(run="analyze:run")


def _rules(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "List the rules of the optimization checklist; with a code or a name, explain "
        "what one finds, why it matters, what to do, and its limits."
    )
    parser.add_argument("code", metavar="CODE", nargs="?", help="such as TTP203")
    add_format(parser)
    parser.set_defaults(run="rules:run")


def _calibrate(parser: argparse.ArgumentParser) -> None:
    from pytest_ttnn_perf.records.baseline import MAX_SESSIONS

    parser.usage = (
        "ttnn-perf calibrate TESTS [--sessions N] [--write] [options of this or of pytest]"
    )
    parser.description = (
        "Run the same tests in one fresh process after another. Prints per metric the "
        "noise within and between sessions, the limit that follows, the estimated rate of false "
        "alarms, and the smallest regression that is caught in 80 % of runs. What is not an "
        "option of this command is passed on to pytest."
    )
    parser.allow_abbrev = False
    parser.add_argument(
        "--sessions",
        metavar="N",
        type=number_within(2, MAX_SESSIONS),
        default=10,
        help=f"processes, 2 to {MAX_SESSIONS} (default: 10)",
    )
    parser.add_argument("--write", action="store_true", help="store the sessions as the baseline")
    parser.add_argument(
        "--reason", metavar="TEXT", help="why results worse than the stored ones are accepted"
    )
    add_baselines(parser)
    add_format(parser)
    # No argument is declared for the tests: pytest's options and their values stay in order.
    parser.set_defaults(run="calibrate:run", passes_on=True)


def _show(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Show what a file holds. Of a run record: metrics, spread, verdicts, "
        "environment. Of an ops_perf_results CSV: the op table, by op and category, per device, "
        "with traces, signposts, and the rows that were dropped; with --ops, every op by itself."
    )
    parser.add_argument("file", metavar="FILE", type=Path, help="the format is detected")
    parser.add_argument(
        "--ops", action="store_true", help="each op in order: time, cores, part of the peaks, bound"
    )
    add_window(parser)
    add_format(parser)
    parser.set_defaults(run="show:run")


def _compare(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Of two run records, put every metric side by side, without judging it. Of "
        "two ops_perf_results CSVs, align the ops and say which ones changed, by how much, and "
        "why; the parts add up to the change of the kernel time."
    )
    parser.add_argument("before", metavar="BEFORE", type=Path, help="the format is detected")
    parser.add_argument("after", metavar="AFTER", type=Path, help="of the same kind")
    add_window(parser)
    add_format(parser)
    parser.set_defaults(run="compare:run")


def _baseline(parser: argparse.ArgumentParser) -> None:
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
    _accept(actions)
    _prune(actions)
    _rename(actions)
    _merge_baselines(actions)


def _accept(actions: Commands) -> None:
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


def _prune(actions: Commands) -> None:
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


def _rename(actions: Commands) -> None:
    rename = actions.add_parser(
        "rename",
        help="give baselines the new name of their test, file or folder",
        description="Give baselines the new name of their test, on all hardware: a test with its "
        "parameters, a class, a file, or a folder that ends in /.",
    )
    rename.add_argument("before", metavar="OLD")
    rename.add_argument("after", metavar="NEW")
    add_change(rename, "baseline_move:run_rename")


def _merge_baselines(actions: Commands) -> None:
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


def _doctor(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Look at ttnn, devices, host, variables and folders, and say what stands in "
        "the way of a gate, and what to do about it. No device is opened that another process "
        "might be using."
    )
    add_format(parser)
    parser.set_defaults(run="doctor:run")


#: Commands that may be given tests.
_TAKE_IDS: Final = {("baseline", "accept"), ("baseline", "list")}
_COMMANDS: Final = {
    "gate": ("judge a run record against baselines; exit 1 when it fails", _gate),
    "merge": ("judge the records of several shards and systems as one", _merge),
    "ab": (
        "compare a commit with the working tree, in turns on this machine; exit 1 when worse",
        _ab,
    ),
    "bisect": ("find the commit that made a test slower, measured in turns", _bisect),
    "check": ("check artifacts against the optimization checklist; exit 1 on errors", _check),
    "analyze": ("show the numbers behind the checklist: distributions and top offenders", _analyze),
    "rules": ("list the rules of the optimization checklist, or explain one", _rules),
    "calibrate": ("measure how noisy tests are, and what a gate can see in them", _calibrate),
    "show": ("show what a run record or a capture holds", _show),
    "compare": ("say what changed between two run records, or two captures", _compare),
    "baseline": ("look at stored baselines, and change them", _baseline),
    "doctor": ("say what this machine can measure; exit 1 when a gate would fail", _doctor),
}


if __name__ == "__main__":
    sys.exit(main())

"""``ttnn-perf``: finds a command, its words and the function that runs it, and runs it.

Both are imported once they are asked for: ``--help`` loads words alone, and of one command alone.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pytest_ttnn_perf import __version__
from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.errors import TtnnPerfError, UsageError
from pytest_ttnn_perf.core.text import inert_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.report.tables import Result


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
    wings.register("pytest_ttnn_perf.plugin.activation:WINGS")
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
        f"  the command: {shlex.join(['ttnn-perf', *map(_without_password, words)])}\n"
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
    ``files`` of those that take them anywhere also has those after options, which argparse leaves.
    """
    if " ".join(arguments[:2]) in _COMMANDS:  # of a command that takes a test in that place
        arguments = [" ".join(arguments[:2]), *arguments[2:]]
    parser = command_parser(arguments[0] if arguments else None)
    ids: list[str] = []
    if tuple(arguments[:2]) in _TAKE_IDS and "--" in arguments:
        end = list(arguments).index("--")
        arguments, ids = arguments[:end], list(arguments[end + 1 :])
    options, rest = parser.parse_known_args(arguments)
    if getattr(options, "files_anywhere", False):
        options.files += [word for word in rest if not word.startswith("-")]
        rest = [word for word in rest if word.startswith("-")]
    options.rest, options.ids = rest, ids
    if rest and not getattr(options, "passes_on", False):
        parser.error(f"unrecognized arguments: {' '.join(map(_without_password, rest))}")
    return options


def _without_password(word: str) -> str:
    """Return a word of a command line that may be repeated in an output.

    >>> _without_password("--history=postgresql://ci:p@ss/word@db/perf")
    '--history=postgresql://ci:***@db/perf'
    """
    return re.sub(r"(://[^:/?#@]*):.*@", r"\1:***@", word)


def command_parser(asked: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands; with the arguments of one alone if it is ``asked`` for."""
    parser = argparse.ArgumentParser(prog="ttnn-perf", description="Performance gates for TTNN.")
    parser.add_argument("--version", action="version", version=f"ttnn-perf {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (summary, words) in _COMMANDS.items():
        command = commands.add_parser(name, help=summary)
        if asked is None or asked == name:
            module, _, function = words.partition(":")
            getattr(import_module(f"pytest_ttnn_perf.cli.{module}"), function)(command)
    return parser


def command_names() -> tuple[str, ...]:
    """Return the names of all commands."""
    return tuple(_COMMANDS)


#: Commands that may be given tests.
_TAKE_IDS: Final = {("baseline", action) for action in ("accept", "list", "refresh", "forget")}
#: What the list of commands says of each, and the module of ``words`` with the function that
#: declares its arguments. A command of two words is looked for first.
_COMMANDS: Final = {
    "gate": ("judge a run record against baselines; exit 1 when it fails", "records:declare_gate"),
    "merge": (
        "judge the run records of several shards and systems together",
        "records:declare_merge",
    ),
    "ab": (
        "compare the working tree with a commit on this machine; exit 1 when it is worse",
        "experiments:declare_ab",
    ),
    "try": (
        "measure a change against the last kept state: keep, revert, or cannot tell",
        "experiments:declare_try_change",
    ),
    "journal": ("show what the steps tried so far amount to", "experiments:declare_journal"),
    "bisect": ("find the commit that made a test slower", "experiments:declare_bisect"),
    "history": ("show what recorded runs measured, run after run", "history:declare_history"),
    "history import": ("send run records to a database", "history:declare_history_import"),
    "history export": ("write the run records of a database", "history:declare_history_export"),
    "history prune": ("remove old run records, or old runs of a database", "history:declare_prune"),
    "trends": (
        "find when tests became slower or faster, and what changed then",
        "history:declare_trends",
    ),
    "report": ("write a page for a browser, of a run or of captures", "history:declare_report"),
    "check": (
        "check captures against the optimization checklist; exit 1 on errors",
        "captures:declare_check",
    ),
    "analyze": (
        "show the numbers behind the checklist: an overview, or one topic in full",
        "captures:declare_analyze",
    ),
    "plan": (
        "order what was found into a plan: what each step saves, and what is left",
        "captures:declare_plan",
    ),
    "rules": (
        "list the rules of the optimization checklist, or explain one",
        "captures:declare_rules",
    ),
    "calibrate": (
        "measure how noisy tests are, and how small a regression a gate can detect",
        "experiments:declare_calibrate",
    ),
    "show": ("show what is in a run record or a capture", "records:declare_show"),
    "compare": (
        "show what changed between two run records or two captures",
        "records:declare_compare",
    ),
    "import": (
        "turn results of benchmarks into a run record, and targets into a file",
        "records:declare_import_files",
    ),
    "baseline": (
        "list, accept, refresh, forget, prune, rename and merge baselines",
        "baseline:declare_baseline",
    ),
    "doctor": (
        "report what this machine can measure; exit 1 when a gate would fail",
        "records:declare_doctor",
    ),
    "status": ("show what is stored, and what the last run said of it", "records:declare_status"),
    "explain": (
        "show what is known of a rule, a test, a run or a capture",
        "records:declare_explain",
    ),
    "mcp": ("serve these commands to coding agents, on stdin and stdout", "records:declare_mcp"),
    "skill": (
        "print how to optimize with these commands, for coding agents",
        "records:declare_skill",
    ),
}


if __name__ == "__main__":
    sys.exit(main())

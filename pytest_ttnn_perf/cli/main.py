"""``ttnn-perf``: parse a command line, run its command, print the result."""

from __future__ import annotations

import argparse
import io
import re
import sys
from argparse import HelpFormatter
from enum import IntEnum
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from pytest_ttnn_perf import __version__
from pytest_ttnn_perf.core import wings
from pytest_ttnn_perf.core.errors import TtnnPerfError, UsageError
from pytest_ttnn_perf.core.text import did_you_mean, inert_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.report.tables import Result


class ExitCode(IntEnum):
    """Exit codes of all commands."""

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
    failed = False
    try:
        result: Result = options.run(options)
        _print(result)
        if result.then is not None:  # a change is read before it is made
            failed = result.failed
            result = result.then()
            _print(result)
    except TtnnPerfError as error:
        sys.stderr.write(inert_lines(f"ttnn-perf: {error}\n"))
        return ExitCode.USAGE if isinstance(error, UsageError) else ExitCode.UNREADABLE
    if failed or result.failed:
        return ExitCode.GATE_FAILED
    if result.inconclusive:
        return ExitCode.INCONCLUSIVE
    return ExitCode.SHIFTED if result.shifted else ExitCode.OK


def _print(result: Result) -> None:
    try:
        sys.stdout.write(result.text)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, say `head`, has seen enough. Python would complain once more at exit.
        sys.stderr.close()
    if result.errors and not sys.stderr.closed:
        sys.stderr.write(inert_lines(result.errors))


def _report_defect(words: Sequence[str]) -> ExitCode:
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
    """Parse a command line; ``run`` is the function of its command.

    Unknown words are in ``rest`` for commands that pass them on to pytest. Words after two dashes
    are in ``ids`` for commands that take ids of tests, which may look like anything. ``files`` of
    commands that take them anywhere also has those after options, which argparse leaves.
    """
    asked = " ".join(arguments[:2])
    if asked not in _COMMANDS:
        asked = arguments[0] if arguments else ""
    elif arguments[0] != "baseline":  # a command that takes a test in that place
        arguments = [asked, *arguments[2:]]
    parser = command_parser(asked)
    known = dict.fromkeys(name.partition(" ")[0] for name in _COMMANDS)
    if asked and not asked.startswith("-") and asked not in {*known, *_COMMANDS}:
        meant = did_you_mean(asked, known) or "; ttnn-perf --help lists all"
        parser.error(f"no command {asked!r}{meant}")
    ids: list[str] = []
    if asked in _TAKE_IDS and "--" in arguments:
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
    """Hide the password of a URL.

    >>> _without_password("--history=postgresql://ci:p@ss/word@db/perf")
    '--history=postgresql://ci:***@db/perf'
    """
    return re.sub(r"(://[^:/?#@]*):.*@", r"\1:***@", word)


def command_parser(asked: str | None = None) -> argparse.ArgumentParser:
    """Return the parser; only the command ``asked`` (None: all) has arguments."""
    # Wide enough for most options: help fits one screen.
    layout: dict[str, Any] = {"formatter_class": partial(HelpFormatter, max_help_position=29)}
    parser = argparse.ArgumentParser(
        "ttnn-perf", description="Performance gates for TTNN.", **layout
    )
    parser.add_argument("--version", action="version", version=f"ttnn-perf {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    actions = None
    for name, (module, function, summary) in _COMMANDS.items():
        group, _, action = name.partition(" ")
        if group == "baseline" and actions is not None:
            command = actions.add_parser(action, help=summary, **layout)
        else:
            command = commands.add_parser(name, help=summary, **layout)
        if name == "baseline":
            actions = command.add_subparsers(title="actions", metavar="ACTION", required=True)
        elif asked in {None, name}:
            home = import_module(f"pytest_ttnn_perf.cli.{module}")
            run = getattr(home, f"run_{function}")
            command.description = run.__doc__
            command.set_defaults(run=run)
            getattr(home, f"add_{function}", lambda _: None)(command)
    return parser


#: Commands that may be given tests, or another command.
_TAKE_IDS: Final = frozenset({
    "baseline accept", "baseline refresh", "baseline forget", "run", "try", "ab", "bisect",
})  # fmt: skip
#: Each command: its module, the name of its two functions there, and its summary. ``add_NAME`` adds
#: its arguments, if it has any; the docstring of ``run_NAME`` is its help. A module is imported
#: when its command is asked for. A command of two words is looked for first.
_COMMANDS: Final = {
    "gate": ("records", "gate", "judge a run record against baselines; exit 1 when it fails"),
    "merge": ("records", "merge",
        "judge run records of shards and systems together"),
    "run": ("run", "run", "gate a script, such as a tt-lang kernel, or any command"),
    "ab": ("experiments", "ab",
        "compare the working tree with a commit; exit 1 when worse"),
    "try": ("experiments", "try",
        "measure a change: keep, revert, or cannot tell"),
    "journal": ("experiments", "journal", "list the changes that try measured"),
    "bisect": ("experiments", "bisect", "find the commit that made a test slower"),
    "history": ("history", "history", "show the values of recorded runs"),
    "history import": ("history", "import", "send run records to a database"),
    "history export": ("history", "export", "write the run records of a database"),
    "history prune": ("history", "prune", "remove old run records, or old runs of a database"),
    "trends": ("history", "trends",
        "find when tests became slower or faster, and why"),
    "repro": ("records", "repro", "print how to measure a test of a run again"),
    "alert": ("records", "alert", "give the failures of a run to a command"),
    "report": ("history", "report", "write an HTML report of a run or of captures"),
    "check": ("captures", "check",
        "check captures against the checklist; exit 1 on errors"),
    "analyze": ("captures", "analyze",
        "show the numbers behind the checklist"),
    "plan": ("captures", "plan",
        "order findings by the time they save"),
    "rules": ("captures", "rules",
        "list the rules of the checklist, or explain one"),
    "calibrate": ("experiments", "calibrate",
        "measure the noise of tests, and what a gate can detect"),
    "show": ("files", "show", "show a run record or a capture"),
    "compare": ("files", "compare",
        "compare two run records or two captures"),
    "import": ("files", "import",
        "convert benchmark results to a run record"),
    "baseline": ("", "", "list, accept, refresh, forget, prune, rename and merge baselines"),
    "baseline list": ("baseline", "list", "list all stored metrics"),
    "baseline check": ("baseline", "check",
        "check that files are valid, and that what got worse has a reason; exit 1 if not"),
    "baseline accept": ("baseline_accept", "accept",
        "accept the results of recorded runs as baselines"),
    "baseline refresh": ("baseline_accept", "refresh",
        "make baselines of the last recorded runs of a branch"),
    "baseline forget": ("baseline", "forget", "remove baselines of tests, to record them anew"),
    "baseline prune": ("baseline", "prune", "remove baselines of tests that no longer exist"),
    "baseline rename": ("baseline", "rename",
        "rename baselines after their test, file or folder was renamed"),
    "baseline merge": ("baseline_merge", "merge",
        "merge a baseline file that two branches changed; exit 1 on conflicts"),
    "baseline install-merge-driver": ("baseline_merge", "install",
        "make git merge baselines with this command"),
    "doctor": ("doctor", "doctor",
        "check what this machine can measure; exit 1 if it cannot"),
    "hardware-check": ("hardware_check", "hardware_check",
        "try everything once on this board; exit 1 if a step did not hold"),
    "status": ("records", "status", "show baselines and the last verdicts"),
    "explain": ("records", "explain",
        "explain a rule, a test, a run or a capture"),
    "mcp": ("records", "mcp", "serve these commands to coding agents"),
    "skill": ("records", "skill",
        "print a guide to these commands for coding agents"),
}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())

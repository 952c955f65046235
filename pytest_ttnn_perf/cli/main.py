"""``ttnn-perf``: parse, run one command, return an exit code."""

from __future__ import annotations

import argparse
import io
import sys
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf import __version__
from pytest_ttnn_perf._base.errors import TtnnPerfError, UsageError
from pytest_ttnn_perf.cli import (
    ab,
    analyze,
    baseline,
    calibrate,
    check,
    compare,
    doctor,
    gate,
    merge,
    rules,
    show,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.records.result import Result


class ExitCode(IntEnum):
    """What the shell learns."""

    OK = 0
    GATE_FAILED = 1
    USAGE = 2
    UNREADABLE = 3
    SHIFTED = 6


_COMMANDS: Final = (
    *(gate, merge, ab, check, analyze, rules, calibrate, show, compare, baseline, doctor),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Results go to stdout, everything else to stderr."""
    # A test id may hold what no terminal can print, such as half a surrogate pair.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    options = _options(arguments)
    try:
        result = _told(options.run(options))
    except UsageError as error:
        return _complain(error, ExitCode.USAGE)
    except TtnnPerfError as error:
        return _complain(error, ExitCode.UNREADABLE)
    if result.failed:
        return ExitCode.GATE_FAILED
    return ExitCode.SHIFTED if result.shifted else ExitCode.OK


def _told(result: Result) -> Result:
    """Print a result, do what is to be done after it, and print what came of that."""
    try:
        sys.stdout.write(result.text)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, say `head`, has seen enough. Python would complain once more at exit.
        sys.stderr.close()
    if result.errors and not sys.stderr.closed:
        sys.stderr.write(result.errors)
    if result.then is None:
        return result
    after = _told(result.then())
    return replace(after, failed=after.failed or result.failed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="ttnn-perf", description="Performance gates for TTNN.")
    parser.add_argument("--version", action="version", version=f"ttnn-perf {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.declare(commands)
    return parser


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    options.rest = rest
    if rest and not getattr(options, "passes_on", False):
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    return options


def _complain(error: TtnnPerfError, code: ExitCode) -> int:
    sys.stderr.write(f"ttnn-perf: {error}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())

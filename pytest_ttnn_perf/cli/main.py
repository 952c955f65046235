"""``ttnn-perf``: parse, run one command, return an exit code."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.errors import TtnnPerfError, UsageError
from pytest_ttnn_perf.cli.arguments import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_ttnn_perf.report.numbers import Result


class ExitCode(IntEnum):
    """What the shell learns."""

    OK = 0
    GATE_FAILED = 1
    USAGE = 2
    UNREADABLE = 3
    SHIFTED = 6
    INCONCLUSIVE = 7


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Results go to stdout, everything else to stderr."""
    # A test id may hold what no terminal can print, such as half a surrogate pair.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    options = parse(sys.argv[1:] if arguments is None else arguments)
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
        sys.stderr.write(result.errors)
    if result.then is None:
        return result
    after = _print(result.then())
    return replace(after, failed=after.failed or result.failed)


def _complain(error: TtnnPerfError, code: ExitCode) -> int:
    sys.stderr.write(f"ttnn-perf: {error}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())

"""Turning a passed report into a failed one, as complete as one that pytest itself would make."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest
from _pytest._code.code import (
    ExceptionChainRepr,
    ReprEntryNative,
    ReprFileLocation,
    ReprTraceback,
    TerminalRepr,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from _pytest._io import TerminalWriter

    Location = tuple[str, int | None, str]

#: Set on a report of which pytest sends only the text: it was more than a text where it was made.
SHOWN: Final = "ttnn_perf_shown"
#: Before the reason for which a plugin wanted a worker's session to fail.
FAILED: Final = "Failed: "
_PHASES: Final = ("setup", "call", "teardown")
_INTERRUPTED: Final = re.compile(r"KeyboardInterrupt in (.+):(\d+)")


class TextRepr(TerminalRepr):
    """A failure of which only the text is left. Not a bare string: pytest cuts those to a line."""

    def __init__(self, text: str) -> None:
        self.text = text

    def toterminal(self, tw: TerminalWriter) -> None:
        """Print it."""
        tw.line(self.text)


def fail_report(report: pytest.TestReport, text: str) -> None:
    """Make ``report`` a failure that shows ``text`` and points at the test.

    A structured representation, not a bare string: short summary, JUnit and annotation plugins
    read its ``reprcrash``, and pytest's own serialisation keeps it.
    """
    file, line, _ = report.location
    crash = ReprFileLocation(file, (line or 0) + 1, text.splitlines()[0])
    entry = ReprEntryNative([text + "\n"])
    trace = ReprTraceback([entry], extraline=None, style="value")
    report.longrepr = ExceptionChainRepr([(trace, crash, None)])
    report.outcome = "failed"
    # An expected failure excuses what the test does, not what it costs.
    if hasattr(report, "wasxfail"):
        del report.wasxfail


def location_of(test: str) -> Location:
    """Return what can be told of a test's place by its id alone."""
    file, _, name = test.partition("::")
    words, bracket, parameters = name.partition("[")  # parameters may hold anything
    return file, None, words.replace("::", ".") + bracket + parameters


def lost_reports(
    test: str, location: Location, seen: Sequence[str], text: str, tail: str
) -> list[pytest.TestReport]:
    """Return the reports that a test still owes whose process is gone.

    The first phase without a report has failed; then the test is taken down, as others are.
    """
    missing = [phase for phase in _PHASES if phase not in seen] or ["teardown"]
    shown = f"{text}\n{tail}" if tail else text
    reports = []
    for phase in (missing[0], *([] if missing[0] == "teardown" else ["teardown"])):
        report = pytest.TestReport(test, location, {}, "passed", None, phase)  # type: ignore[arg-type]
        reports.append(report)
    fail_report(reports[0], shown)
    return reports


def interruption_text(excinfo: pytest.ExceptionInfo[BaseException]) -> str:
    """Say where a session was interrupted."""
    crash = getattr(excinfo.getrepr(), "reprcrash", None)
    return f"KeyboardInterrupt in {crash.path}:{crash.lineno}" if crash else "KeyboardInterrupt"


def interruption(text: str) -> KeyboardInterrupt | None:
    """Return the interruption that a worker told of, as if raised in the same line of code here.

    pytest says where it was interrupted, and that is in a test. None: it told of something else.
    """
    found = _INTERRUPTED.fullmatch(text)
    try:
        if found is not None:
            line = "\n" * (int(found[2]) - 1) + "raise KeyboardInterrupt"
            exec(compile(line, found[1], "exec"), {})
    except KeyboardInterrupt as error:
        return error
    return KeyboardInterrupt() if text in {"", "KeyboardInterrupt"} else None

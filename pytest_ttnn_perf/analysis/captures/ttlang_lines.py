"""The lines of a tt-lang log, without colours, and a reader that collects problems."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.errors import InputError
from pytest_ttnn_perf._base.files import reading, unpacked, with_plain_ends
from pytest_ttnn_perf.records.ttlang import Problem, ProblemKind

if TYPE_CHECKING:
    from pathlib import Path


PERF_SUMMARY: Final = "=== PERF SUMMARY ==="
OLD_PERF_SUMMARY: Final = "=== NOC PROFILER SUMMARY ==="
FLOW_GRAPHS: Final = ("=== CB FLOW GRAPH ===", "=== DFB FLOW GRAPH ===")
PIPE_GRAPH: Final = "=== PIPE GRAPH ==="
AUTO_PROFILE: Final = "TTLANG AUTO-PROFILE REPORT"
SIGNPOST_PROFILE: Final = "SIGNPOST PROFILE"
#: Whole lines: compiler dumps are full of other ``===``.
HEADINGS: Final = frozenset({
    PERF_SUMMARY, OLD_PERF_SUMMARY, *FLOW_GRAPHS, PIPE_GRAPH, AUTO_PROFILE, SIGNPOST_PROFILE,
})  # fmt: skip
#: So many lines in a row that nobody understands are not part of a section any more.
_MOST_UNREAD: Final = 3
_SHORTEST_RULE: Final = 60
_MOST_SHOWN: Final = 80
_COLOUR: Final = re.compile(r"\x1b\[[0-9;]{0,100}m")
#: Numbers as patterns: short enough for any count, so that no text is too long to convert.
WHOLE: Final = r"[0-9][0-9,]{0,25}"
DECIMAL: Final = r"[0-9]{1,15}(?:\.[0-9]{1,9})?"
LARGEST_FILE: Final = 2**28


def bounded_text(file: Path, *, largest: int = LARGEST_FILE) -> str:
    """Read a text that is not absurdly long.

    Raises:
        InputError: it is, or cannot be read, or is no text, or is empty.
    """
    with reading(file):
        with unpacked(file) as stream:
            content = stream.read(largest + 1)
        if len(content) > largest:
            raise InputError(file, f"too large: more than {largest:,} bytes")
        text = with_plain_ends(content.decode("utf-8"))
    if not text.strip():
        raise InputError(file, "the file is empty")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError(file, "expected text, found a NUL byte", line=line)
    return text


def plain_lines(text: str) -> list[str]:
    """Return the lines of a text without colours and trailing space."""
    return [line.rstrip() for line in _COLOUR.sub("", text).split("\n")]


def whole(digits: str) -> int:
    """Read what ``WHOLE`` matches.

    >>> whole("2,225,426")
    2225426
    """
    return int(digits.replace(",", ""))


def is_rule(line: str) -> bool:
    """Return whether a line is one of the long ``====`` lines around a title."""
    return len(line) >= _SHORTEST_RULE and not line.strip("=")


class Lines:
    """The lines of a log, read once from the first to the last.

    ``problems`` gathers what is wrong. A section stops reading where ``ends`` says so: at the end
    of the log, at the next section, or after several lines that it does not understand.
    """

    def __init__(self, numbered: list[tuple[int, str]], *, last_is_whole: bool = True) -> None:
        """``last_is_whole`` says that the last line has its line end."""
        self._numbered = numbered
        self.last_is_whole = last_is_whole
        self._at = 0
        self._unread_in_a_row = 0
        self.problems: list[Problem] = []

    def peek(self) -> str | None:
        """Return the next line; None at the end."""
        return self._numbered[self._at][1] if self._at < len(self._numbered) else None

    @property
    def number(self) -> int:
        """The number of the next line; of the last one at the end."""
        at = min(self._at, len(self._numbered) - 1)
        return self._numbered[at][0] if self._numbered else 1

    def take(self) -> None:
        """Go on to the next line."""
        self._at += 1
        self._unread_in_a_row = 0

    def skip_unread(self, section: str) -> None:
        """Go on to the next line, and report this one as not understood."""
        shown = self._numbered[self._at][1].strip()[:_MOST_SHOWN]
        self.report(ProblemKind.UNREAD, f"{section}: not understood: {shown}")
        self._at += 1
        self._unread_in_a_row += 1

    def begin(self, *, past_heading: bool = True) -> None:
        """Enter a section."""
        self._at += past_heading
        self._unread_in_a_row = 0

    @property
    def gave_up(self) -> bool:
        """Whether too many lines in a row were not understood."""
        return self._unread_in_a_row >= _MOST_UNREAD

    def ends(self) -> bool:
        """Return whether the section must stop here."""
        line = self.peek()
        return line is None or line in HEADINGS or self.gave_up

    def report(self, kind: ProblemKind, text: str, *, line: int | None = None) -> None:
        """Note a problem, of the next line unless another one is given."""
        self.problems.append(Problem(self.number if line is None else line, kind, text))

    def rest_of_section(self) -> list[str]:
        """Return the lines up to the next heading, without going on."""
        behind = self._at
        while behind < len(self._numbered) and self._numbered[behind][1] not in HEADINGS:
            behind += 1
        return [line for _, line in self._numbered[self._at : behind]]

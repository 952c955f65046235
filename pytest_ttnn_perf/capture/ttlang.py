"""A log of tt-lang: what its profilers printed, among whatever else a program prints."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._support.errors import InputError
from pytest_ttnn_perf.capture.ttlang_graphs import read_flow_graph, read_pipe_graph
from pytest_ttnn_perf.capture.ttlang_lines import (
    AUTO_PROFILE,
    FLOW_GRAPHS,
    HEADINGS,
    OLD_PERF_SUMMARY,
    PERF_SUMMARY,
    PIPE_GRAPH,
    SIGNPOST_PROFILE,
    Lines,
    bounded_text,
    plain_lines,
)
from pytest_ttnn_perf.capture.ttlang_perf import is_program, read_perf_summary
from pytest_ttnn_perf.capture.ttlang_profile import read_auto_profile
from pytest_ttnn_perf.capture.ttlang_signposts import read_signposts
from pytest_ttnn_perf.model.ttlang import (
    AutoProfile,
    FlowGraph,
    PerfSummary,
    PipeGraph,
    Problem,
    ProblemKind,
    SignpostProfile,
    TtlangLog,
)

if TYPE_CHECKING:
    from pathlib import Path

_MOST_SHOWN: Final = 300
#: How the lines begin in which tt-lang admits a failure; no program fails for it.
_ADMISSIONS: Final = (
    ("[Auto-profile] ", ProblemKind.NO_PROFILE),
    ("[signpost_profile] ", ProblemKind.NO_PROFILE),
    ("[perf_dump] WARNING", ProblemKind.STALE),
    ("[perf_summary] WARNING", ProblemKind.WARNING),
)
#: These stand anywhere in a line, behind a time or a file name.
_DROPPED: Final = "Profiler DRAM buffers were full, markers were dropped!"
_IGNORED_SIGNPOST: Final = re.compile(r"\bsignpost\([^)]{0,200}\) ignored: ")


def is_ttlang_log(head: str) -> bool:
    """Return whether a text has a tt-lang section, or tt-lang's word that there is none."""
    return any(
        line in HEADINGS or is_program(line) or _admission(line) is not None
        for line in plain_lines(head)
    )


def read_ttlang_log(file: Path) -> TtlangLog:
    """Read a log.

    Raises:
        InputError: it cannot be read, or tt-lang left no trace in it.
    """
    log = parse_ttlang(bounded_text(file), file)
    if log.is_empty:
        problem = f"no output of tt-lang: expected a section such as {PERF_SUMMARY!r}"
        raise InputError(file, problem)
    return log


def parse_ttlang(text: str, file: Path) -> TtlangLog:
    """Read what a program printed. Sections that are cut or missing are among the problems.

    Raises:
        InputError: it is no text; ``file`` is where it came from.
    """
    if "\0" in text:
        raise InputError(file, "expected text, found a NUL byte")
    numbered: list[tuple[int, str]] = []
    admitted: list[Problem] = []
    # The line end of the last line begins no other.
    for number, line in enumerate(plain_lines(text.removesuffix("\n")), start=1):
        kind = _admission(line)
        if kind is None:
            numbered.append((number, line))
        else:
            admitted.append(Problem(number, kind, line.strip()[:_MOST_SHOWN]))
    last_is_whole = text.endswith("\n")
    if numbered and not last_is_whole and not numbered[-1][1]:
        del numbered[-1]  # the indentation of a line that is cut off, not an empty line
    lines = Lines(numbered, last_is_whole=last_is_whole)
    found = _Found()
    while lines.peek() is not None:
        found.read(lines)
    return found.log([*admitted, *lines.problems])


def _admission(line: str) -> ProblemKind | None:
    for start, kind in _ADMISSIONS:
        if line.startswith(start):
            return kind
    if _DROPPED in line:
        return ProblemKind.DROPPED
    return ProblemKind.NO_PROFILE if _IGNORED_SIGNPOST.search(line) else None


@dataclass
class _Found:
    """The sections so far."""

    perf_summaries: list[PerfSummary] = field(default_factory=list)
    auto_profiles: list[AutoProfile] = field(default_factory=list)
    signpost_profiles: list[SignpostProfile] = field(default_factory=list)
    flow_graphs: list[FlowGraph | None] = field(default_factory=list)
    pipe_graphs: list[PipeGraph | None] = field(default_factory=list)

    def read(self, lines: Lines) -> None:
        """Read the section that begins with the next line, or pass over the line."""
        line = lines.peek() or ""
        if line in {PERF_SUMMARY, OLD_PERF_SUMMARY} or is_program(line):
            self.perf_summaries.append(read_perf_summary(lines))
        elif line in FLOW_GRAPHS:
            self.flow_graphs.append(read_flow_graph(lines))
        elif line == PIPE_GRAPH:
            self.pipe_graphs.append(read_pipe_graph(lines))
        elif line == AUTO_PROFILE:
            self.auto_profiles.append(read_auto_profile(lines))
        elif line == SIGNPOST_PROFILE:
            self.signpost_profiles.append(read_signposts(lines))
        else:
            lines.take()

    def log(self, problems: list[Problem]) -> TtlangLog:
        return TtlangLog(
            tuple(self.perf_summaries),
            tuple(self.auto_profiles),
            tuple(self.signpost_profiles),
            tuple(graph for graph in self.flow_graphs if graph is not None),
            tuple(graph for graph in self.pipe_graphs if graph is not None),
            tuple(sorted(problems, key=lambda problem: problem.line)),
        )

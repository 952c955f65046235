"""What a tt-lang log fails to say is said."""

from __future__ import annotations

import re

import pytest

from pytest_ttnn_perf.records.ttlang import Problem, ProblemKind
from tests.unit.captures import ttlang_text as sample
from tests.unit.captures.test_ttlang import kinds, parse


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("[Auto-profile] TT_METAL_HOME not set, cannot find profile CSV", ProblemKind.NO_PROFILE),
        ("[Auto-profile] No signpost results found in profile CSV", ProblemKind.NO_PROFILE),
        ("[signpost_profile] No user-defined signpost zones found", ProblemKind.NO_PROFILE),
        ("UserWarning: signpost('x') ignored: user-defined signposts", ProblemKind.NO_PROFILE),
        (
            "[perf_dump] WARNING: TT_METAL_PROFILER_MID_RUN_DUMP=1 not set, may be stale",
            ProblemKind.STALE,
        ),
        ("[perf_summary] WARNING: no CSV", ProblemKind.WARNING),
        (
            "2026-01-01 | warning | Metal | Profiler DRAM buffers were full, markers were dropped! "
            "device 0, worker core 1, 2, Risc BRISC,  bufferEndIndex = 9.",
            ProblemKind.DROPPED,
        ),
    ],
)
def test_what_tt_lang_admits(line: str, kind: ProblemKind) -> None:
    assert parse(f"start\n{line}\n").problems == (Problem(2, kind, line),)
    # Amid a section it is a problem of the log, and the section is whole.
    torn = sample.PERF_SUMMARY.replace("  semaphores", f"{line}\n  semaphores")
    log = parse(torn)
    assert kinds(log) == [kind]
    assert log.perf_summaries == parse(sample.PERF_SUMMARY).perf_summaries


def test_a_line_that_nobody_knows() -> None:
    new = sample.PERF_SUMMARY.replace("  semaphores", "  new figure:     3\n  semaphores")
    log = parse(new)
    assert log.perf_summaries == parse(sample.PERF_SUMMARY).perf_summaries
    (problem,) = log.problems
    assert problem == (17, ProblemKind.UNREAD, "PERF SUMMARY: not understood: new figure:     3")


def test_a_figure_that_stands_twice() -> None:
    line = "  DRAM channels:  12\n"
    log = parse(sample.PERF_SUMMARY.replace(line, line * 2))
    assert kinds(log) == [ProblemKind.UNREAD]


def test_a_program_that_is_missing() -> None:
    log = parse(sample.PERF_SUMMARY.replace("programs: 2", "programs: 3"))
    assert not log.perf_summaries[0].complete
    (problem,) = log.problems
    assert problem.kind is ProblemKind.CUT
    assert "2 of 3 programs are whole" in problem.text


@pytest.mark.parametrize("line", ["grid: 3x2", "duration: 1,5", "  DRAM read: ", "  DRAM write: "])
def test_a_program_without_a_line_that_all_have(line: str) -> None:
    kept = [text for text in sample.PERF_SUMMARY.split("\n") if not text.startswith(line)]
    summary = parse("\n".join(kept)).perf_summaries[0]
    assert not summary.complete
    assert 7 not in {program.program_id for program in summary.programs}


def test_a_summary_that_gives_way_to_other_output() -> None:
    text = sample.PERF_SUMMARY.partition("  DRAM write")[0] + "Traceback:\n  a\n  b\n  c\n  d\n"
    log = parse(text)
    assert not log.perf_summaries[0].complete
    assert not log.perf_summaries[0].programs
    assert kinds(log).count(ProblemKind.UNREAD) == 3


LAST = "    TRISC_2  900 cycles (0.9 us) - 950 cycles (1.0 us)\n"


@pytest.mark.parametrize(
    "whole",
    [
        # Behind the last program only an empty line follows.
        sample.PERF_SUMMARY.rstrip("\n") + "\n",
        sample.PROGRAM + LAST,
        sample.AUTO_PROFILE.rstrip("=\n"),
        sample.SIGNPOSTS.rstrip("=\n"),
        sample.FLOW_GRAPH.rstrip("\n"),
    ],
    ids=["summary", "headless program", "report", "signposts", "graph"],
)
def test_a_section_cut_anywhere_is_not_complete(whole: str) -> None:
    for cut in range(len(whole)):
        log = parse(whole[:cut])
        assert not log.flow_graphs
        assert not any(summary.complete for summary in log.perf_summaries)
        assert not any(report.complete for report in log.auto_profiles)
        assert not any(profile.complete for profile in log.signpost_profiles)


def test_programs_of_a_summary_that_is_cut_anywhere_are_whole() -> None:
    programs = set(parse(sample.PERF_SUMMARY).perf_summaries[0].programs)
    for cut in range(len(sample.PERF_SUMMARY)):
        for summary in parse(sample.PERF_SUMMARY[:cut]).perf_summaries:
            assert set(summary.programs) <= programs
    assert parse(sample.PROGRAM + LAST).perf_summaries[0].complete


def test_a_summary_of_threads_that_were_not_listed() -> None:
    log = parse(f"{sample.HEAD}{sample.SUMMARY}{sample.RULE}\n")
    assert not log.auto_profiles[0].complete
    assert kinds(log) == [ProblemKind.CUT]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("nothing", "expected JSON below the heading"),
        ('{"circular_buffers":[', "cannot be read: Expecting value"),
        ('{"circular_buffers":3}', "expected a list, found 3"),
        ('{"circular_buffers":[{"cb_index":-4}]}', "a whole number of at least 0"),
        ('{"a":1,"a":2}', "'a' stands twice in one object"),
        ("{" + '"a":[' * 100_000, "recursion|nested|Expecting"),
        ('{"circular_buffers":' + "9" * 10_000 + "}", "digits|expected a list"),
    ],
)
def test_a_graph_that_is_none(document: str, problem: str) -> None:
    log = parse(f"=== CB FLOW GRAPH ===\n{document}\n{sample.PERF_SUMMARY}")
    assert not log.flow_graphs
    assert log.perf_summaries[0].complete
    (found,) = log.problems
    assert (found.line, found.kind) == (1, ProblemKind.CUT)
    assert re.search(problem, found.text)

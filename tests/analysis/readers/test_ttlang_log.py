"""A log of tt-lang: its sections, its exact form, and its problems."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_ttnn_perf.analysis.readers.ttlang import (
    KernelCode,
    KernelTime,
    L1Overflow,
    Problem,
    ProblemKind,
    Signpost,
    Span,
    Transfers,
    TtlangLog,
    is_perf_summary_json,
    is_ttlang_log,
    parse_ttlang,
    read_perf_summary_json,
    read_ttlang_log,
)
from pytest_ttnn_perf.core.errors import InputError
from tests.analysis.readers import ttlang_text as sample

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.readers.ttlang import PerfSummary


def parse(text: str) -> TtlangLog:
    return parse_ttlang(text, Path("run.log"))


def kinds(log: TtlangLog) -> list[ProblemKind]:
    return [problem.kind for problem in log.problems]


def test_a_perf_summary_with_all_it_says() -> None:
    log = parse(sample.PERF_SUMMARY)
    assert not log.problems
    (summary,) = log.perf_summaries
    assert summary.complete
    assert (summary.arch, summary.clock_mhz, summary.max_compute_cores) == ("blackhole", 1350, 110)
    large, small = summary.programs
    assert (large.program_id, large.name, large.grid, large.cores) == (7, "scale", (3, 2), 6)
    assert large.duration == Span(1_500_000, 1500.0)
    assert large.dram_read == Transfers(96 * 1024, 48)
    assert large.dram_write == Transfers(3 * 2**19, 768)
    assert large.l1_read == Transfers(0, 0)
    assert large.l1_write == Transfers(10240, 5)
    assert large.multicast == Transfers(512, 1)
    assert large.bandwidth_gb_s == 1.1
    assert large.transfer_sizes == (
        Transfers(512, 1),
        Transfers(2048, 816),
    )
    assert (large.read_barriers, large.write_barriers) == (6, 0)
    assert large.dram_channels == 12
    assert large.kernel_times == (
        KernelTime("BRISC", Span(1_400_000, 1400.0), Span(1_500_000, 1500.0)),
        KernelTime("NCRISC", Span(900, 0.9), Span(900, 0.9)),
    )
    assert (small.program_id, small.name, small.cores, small.kernel_times) == (8, None, 1, ())


def test_a_chip_that_tt_lang_did_not_know_has_no_clock() -> None:
    known = "arch: blackhole, freq: 1350 MHz, max_compute_cores: 110"
    made_up = "arch: unknown, freq: 1000 MHz, max_compute_cores: 0"
    log = parse(sample.PERF_SUMMARY.replace(known, made_up))
    assert log.perf_summaries[0].clock_mhz is None
    assert log.perf_summaries[0].complete
    assert kinds(log) == [ProblemKind.UNKNOWN_CHIP]


def test_an_auto_profile_with_all_it_says() -> None:
    log = parse(sample.AUTO_PROFILE)
    assert not log.problems
    (report,) = log.auto_profiles
    assert report.complete
    assert report.longest_thread_cycles == 4000
    reader, worker = report.threads
    assert worker == ("TRISC_1", None, 1000, ())
    assert reader[:3] == ("NCRISC", "reader", 4000)
    assert [line[:3] for line in reader.lines] == [
        (10, "def reader():", None),
        (11, "    once()", 1000),
        (12, '    tx = copy(a, "  (x1)")', 400),
        (13, "        tx.wait()", 1800),
        (14, "    with a.reserve() as b:", 800),
    ]
    assert reader.lines[3].waits == (("compute", 3, "worker"),)
    assert reader.lines[4].ops == (("cb_reserve", 700, 4), ("cb_push", 100, 1))
    assert reader.lines[4].waits == (("DMA", 5, "reader"),)


def test_cpp_among_the_sections_and_buffers_that_exceed_l1() -> None:
    log = parse(sample.CODE + sample.AUTO_PROFILE + sample.PERF_SUMMARY + sample.OVERFLOW)
    assert log.codes == (KernelCode("reader", {0: 4, 1: 16}, 2048),)
    assert log.l1_overflow == L1Overflow(4_194_304, 1_466_368)
    assert log.is_instrumented
    assert not parse(sample.CODE + sample.PERF_SUMMARY).is_instrumented
    assert is_ttlang_log(sample.OVERFLOW)


def test_the_roofline() -> None:
    roofline = parse(sample.AUTO_PROFILE).auto_profiles[0].roofline
    assert roofline is not None
    assert (roofline.bound, roofline.bound_percent) == ("memory", 67)
    assert (roofline.memory_cycles, roofline.memory_thread) == (3000, "NCRISC")
    assert (roofline.compute_cycles, roofline.compute_thread) == (1000, "TRISC_1")
    assert roofline.threads[0] == ("NCRISC", 4000, 1000, 3000)


def test_signposts() -> None:
    log = parse(sample.SIGNPOSTS)
    assert not log.problems
    (profile,) = log.signpost_profiles
    assert profile.complete
    assert profile.signposts == (
        Signpost("load  all tiles", "NCRISC", 31, 1085, 35),
        Signpost("TRISC_0 store", "TRISC_0", 2, 70, 35),
    )


def test_a_flow_graph_is_in_the_order_of_its_buffers() -> None:
    log = parse(sample.FLOW_GRAPH + "PASSED\n")
    assert not log.problems
    (graph,) = log.flow_graphs
    assert [buffer.number for buffer in graph] == [0, 2]
    assert graph[0].producers == (("r", 3, "cb_reserve"),)
    assert graph[0].consumers == (("w", None, "cb_wait"),)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the file is empty"),
        (b"1 passed\n", "no output of tt-lang: expected a section such as '=== PERF SUMMARY ==='"),
        (b"=== PERF SUMMARY ===\n\0\n", "expected text, found a NUL byte"),
    ],
)
def test_a_file_that_is_no_log(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "run.log"
    file.write_bytes(content)
    with pytest.raises(InputError, match=problem):
        read_ttlang_log(file)


PROGRAM: dict[str, Any] = {
    "program_id": 7, "grid": [3, 2], "num_cores": 6, "duration_cycles": 1500, "duration_us": 1.11,
    "dram_bytes_read": 98_305, "dram_bytes_written": 11, "l1_bytes_read": 12,
    "l1_bytes_written": 13, "multicast_bytes": 14, "dram_read_count": 48, "dram_write_count": 16,
    "l1_read_count": 17, "l1_write_count": 18, "read_barriers": 6, "write_barriers": 4,
    "dram_channels": 12, "transfer_sizes": {"2048": 47, "64": 1}, "name": "scale",
}  # fmt: skip


def read(tmp_path: Path, program: dict[str, Any], **more: object) -> PerfSummary:
    head = {"arch": "blackhole", "freq_mhz": 1350, "max_compute_cores": 110}
    file = tmp_path / "summary.json"
    file.write_text(json.dumps({**head, "programs": [program], **more}), encoding="utf-8")
    assert is_perf_summary_json(file.read_text(encoding="utf-8"))
    return read_perf_summary_json(file)


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("grid", [1], "two extents of the grid"),
        ("duration_us", None, "a number, found null"),
        ("transfer_sizes", {"2 KB": 1}, "a size in bytes"),
        ("dram_bytes_read", 10**30, "a whole number of at least 0"),
    ],
)
def test_what_it_cannot_say(tmp_path: Path, field: str, value: object, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        read(tmp_path, {**PROGRAM, field: value})


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("[Auto-profile] TT_METAL_HOME not set, cannot find profile CSV", ProblemKind.NO_PROFILE),
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
    for cut in range(0, len(whole), 3):
        log = parse(whole[:cut])
        assert not log.flow_graphs
        assert not any(summary.complete for summary in log.perf_summaries)
        assert not any(report.complete for report in log.auto_profiles)
        assert not any(profile.complete for profile in log.signpost_profiles)


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("nothing", "expected JSON below the heading"),
        ('{"circular_buffers":[', "cannot be read: Expecting value"),
        ('{"circular_buffers":[{"cb_index":-4}]}', "a whole number of at least 0"),
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

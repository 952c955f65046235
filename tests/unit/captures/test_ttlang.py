"""What a tt-lang log says, section by section."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_ttnn_perf._base.errors import InputError
from pytest_ttnn_perf.analysis.captures.ttlang_log import (
    is_ttlang_log,
    parse_ttlang,
    read_ttlang_log,
)
from pytest_ttnn_perf.records.ttlang import (
    Barriers,
    Bytes,
    KernelTime,
    NocCount,
    Pipe,
    ProblemKind,
    Signpost,
    Span,
    Transfers,
    TransferSize,
    TtlangLog,
)
from tests.unit.captures import ttlang_text as sample


def parse(text: str) -> TtlangLog:
    return parse_ttlang(text, Path("run.log"))


def kinds(log: TtlangLog) -> list[ProblemKind]:
    return [problem.kind for problem in log.problems]


def test_a_perf_summary_with_all_it_says() -> None:
    log = parse(sample.PERF_SUMMARY)
    assert not log.problems
    (summary,) = log.perf_summaries
    assert summary.complete
    assert not summary.exact
    assert (summary.arch, summary.clock_mhz, summary.max_compute_cores) == ("blackhole", 1350, 110)
    large, small = summary.programs
    assert (large.program_id, large.name, large.grid, large.cores) == (7, "scale", (3, 2), 6)
    assert large.duration == Span(1_500_000, 1500.0)
    assert large.dram_read == Transfers(Bytes(96 * 1024, 52), 48)
    assert large.dram_write == Transfers(Bytes(3 * 2**19, 52429), 768)
    assert large.l1_read == Transfers(Bytes(0), 0)
    assert large.l1_write == Transfers(Bytes(10240, 52), 5)
    assert (large.l1_targets, large.l1_target_grid) == (4, (2, 2))
    assert large.multicast == Transfers(Bytes(512), 1)
    assert large.bandwidth_gb_s == 1.1
    assert large.transfer_sizes == (
        TransferSize(Bytes(512), 1),
        TransferSize(Bytes(2048, 52), 816),
    )
    assert (large.read_barriers, large.write_barriers) == (Barriers(6, 8), Barriers(0))
    assert (large.semaphore_events, large.dram_channels) == (9, 12)
    assert large.noc_reads == (NocCount("NOC_0", 40), NocCount("NOC_1", 8))
    assert large.noc_writes == ()
    assert large.kernel_times == (
        KernelTime("BRISC", Span(1_400_000, 1400.0), Span(1_500_000, 1500.0)),
        KernelTime("NCRISC", Span(900, 0.9), Span(900, 0.9)),
    )
    assert (small.program_id, small.name, small.cores, small.kernel_times) == (8, None, 1, ())


def test_the_first_form_of_the_summary() -> None:
    log = parse(sample.OLD_PERF_SUMMARY)
    (summary,) = log.perf_summaries
    assert summary.complete
    assert not log.problems
    assert [time.thread for time in summary.programs[0].kernel_times] == ["BRISC", "NCRISC"]


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
    assert (report.total_operations, report.longest_thread_cycles) == (30, 4000)
    assert report.buffers == (0, 3)
    reader, worker = report.threads
    assert (reader.total.thread, reader.total.kernel, worker.total.kernel) == (
        "NCRISC",
        "reader",
        None,
    )
    assert worker.lines is None
    assert report.summary == (reader.total, worker.total)
    assert reader.lines is not None
    head, once, equal, varying, parts = reader.lines
    assert (head.source, head.percent, head.hits) == ("def reader():", None, None)
    assert (once.source, once.total_cycles, once.hits) == ("    once()", 1000, 1)
    assert equal.source == '    tx = copy(a, "  (x1)")'
    assert (equal.shortest_cycles, equal.longest_cycles, equal.total_cycles) == (40, 40, 400)
    assert (varying.shortest_cycles, varying.longest_cycles) == (18, 1_000_000)
    assert (varying.average_cycles, varying.hits) == (225.5, 8)
    assert varying.source == "        tx.wait()"
    assert varying.waits == (("compute", 3, "worker", None),)
    assert varying.barriers == (3,)
    assert (parts.total_cycles, parts.hits, parts.shortest_cycles) == (800, None, None)
    assert parts.ops == (("cb_reserve", 700, 4, False), ("cb_push", 100, 1, True))
    assert parts.waits == (("DMA", 5, "reader", 9),)


def test_the_roofline() -> None:
    roofline = parse(sample.AUTO_PROFILE).auto_profiles[0].roofline
    assert roofline is not None
    assert (roofline.bound, roofline.bound_percent) == ("memory", 67)
    assert (roofline.memory_cycles, roofline.memory_thread) == (3000, "NCRISC")
    assert (roofline.compute_cycles, roofline.compute_thread) == (1000, "TRISC_1")
    assert roofline.threads[0] == ("NCRISC", 4000, 1000, 3000)


def test_the_first_form_of_the_roofline_stands_in_the_summary() -> None:
    text = f"{sample.HEAD}{sample.THREADS}{sample.SUMMARY}{sample.BOUND}{sample.RULE}\n"
    log = parse(text)
    assert not log.problems
    roofline = log.auto_profiles[0].roofline
    assert roofline is not None
    assert (roofline.bound, roofline.threads, roofline.memory_cycles) == ("memory", (), 3000)


def test_a_balanced_kernel() -> None:
    text = sample.AUTO_PROFILE.replace("67% memory bound", "Perfectly balanced!")
    roofline = parse(text).auto_profiles[0].roofline
    assert roofline is not None
    assert (roofline.bound, roofline.bound_percent) == ("balanced", 0)


def test_a_report_without_roofline() -> None:
    log = parse(f"{sample.HEAD}{sample.THREADS}{sample.SUMMARY}{sample.RULE}\n")
    assert not log.problems
    assert log.auto_profiles[0].complete
    assert log.auto_profiles[0].roofline is None


def test_colours_do_not_matter() -> None:
    coloured = "\n".join(
        f"\x1b[48;5;153m{line[:20]}\x1b[0m\x1b[2m{line[20:]}\x1b[0m" if line else ""
        for line in sample.WHOLE_LOG.split("\n")
    )
    assert parse(coloured) == parse(sample.WHOLE_LOG)


def test_carriage_returns_do_not_matter() -> None:
    assert parse(sample.WHOLE_LOG.replace("\n", "\r\n")) == parse(sample.WHOLE_LOG)


def test_signposts() -> None:
    log = parse(sample.SIGNPOSTS)
    assert not log.problems
    (profile,) = log.signpost_profiles
    assert profile.complete
    assert profile.signposts == (
        Signpost("load  all tiles", "NCRISC", 1085, 31, 35, 30, 40),
        Signpost("TRISC_0 store", "TRISC_0", 70, 2, 35, 35, 35),
    )


def test_the_first_form_of_signposts() -> None:
    log = parse(sample.EARLY_SIGNPOSTS)
    assert not log.problems
    assert log.signpost_profiles[0].signposts == (Signpost("load tiles", "NCRISC", 1085),)


@pytest.mark.parametrize("heading", ["CB FLOW GRAPH", "DFB FLOW GRAPH"])
def test_a_flow_graph_is_in_the_order_of_its_buffers(heading: str) -> None:
    log = parse(sample.FLOW_GRAPH.replace("CB FLOW GRAPH", heading) + "PASSED\n")
    assert not log.problems
    (graph,) = log.flow_graphs
    assert [buffer.number for buffer in graph.buffers] == [0, 2]
    first = graph.buffers[0]
    assert first.producers == (("r", "noc", 3, "cb_reserve", None),)
    assert first.consumers == (("w", "compute", None, "cb_wait", None),)
    assert first.dma_ops == (("r", "noc", 4, "copy", "read"),)


def test_a_graph_over_several_lines() -> None:
    log = parse(sample.FLOW_GRAPH.replace("},{", "},\n{") + sample.PERF_SUMMARY)
    assert not log.problems
    assert len(log.flow_graphs[0].buffers) == 2
    assert log.perf_summaries[0].complete


def test_a_pipe_graph() -> None:
    (graph,) = parse(sample.PIPE_GRAPH).pipe_graphs
    assert graph.runtime_args == 1
    assert graph.pipes == (Pipe((0, 1), (1, 1), (3, 1), 2, 0, None),)


@pytest.mark.parametrize("separator", ["", "loading weights\n", "\n" + "=" * 60 + "\n"])
def test_many_calls_in_one_log(separator: str) -> None:
    once = parse(sample.WHOLE_LOG)
    assert not once.problems
    twice = parse(separator.join([sample.WHOLE_LOG, sample.WHOLE_LOG, "done\n"]))
    assert not twice.problems
    assert twice.perf_summaries == once.perf_summaries * 2
    assert twice.auto_profiles == once.auto_profiles * 2
    assert twice.signpost_profiles == once.signpost_profiles * 2
    assert twice.flow_graphs == once.flow_graphs * 2
    assert twice.pipe_graphs == once.pipe_graphs * 2


def test_a_dump_of_kernels_is_no_section() -> None:
    dump = (
        "=== reader kernel written to reader.cpp ===\n#include <x>\nvoid f() {}\n"
        + "=" * 60
        + "\n=== PERF SUMMARY === of nothing\n// SIGNPOST PROFILE\n"
        + "=" * 70
        + "\nTTLANG PERFETTO TRACE SERVER\n"
    )
    assert parse(dump).is_empty
    log = parse(dump + sample.WHOLE_LOG + dump)
    assert log == parse(sample.WHOLE_LOG)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the file is empty"),
        (b"\n \n", "the file is empty"),
        (b"1 passed\n", "no output of tt-lang: expected a section such as '=== PERF SUMMARY ==='"),
        (b"=== PERF SUMMARY ===\n\0\n", "expected text, found a NUL byte"),
        (b"\xff\xfe\n", "not a text file"),
    ],
)
def test_a_file_that_is_no_log(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "run.log"
    file.write_bytes(content)
    with pytest.raises(InputError, match=problem):
        read_ttlang_log(file)


@pytest.mark.parametrize(
    "text",
    [sample.PERF_SUMMARY, sample.PROGRAM, sample.AUTO_PROFILE, sample.SIGNPOSTS, sample.PIPE_GRAPH],
)
def test_a_log_is_known_by_its_sections(text: str) -> None:
    assert is_ttlang_log("collected 1 item\n" + text)


def test_other_texts_are_no_logs() -> None:
    assert not is_ttlang_log("=== PERF SUMMARY === below\n{}\n")

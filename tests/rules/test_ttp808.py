"""Threads that wait for each other."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from pytest_ttnn_perf.analysis.checklist.runner import rule_of, run_rules
from pytest_ttnn_perf.analysis.readers.ttlang import Roofline, ThreadWork, parse_ttlang
from pytest_ttnn_perf.analysis.rules.kernels import hot_lines
from tests.harness.corpus import corpus
from tests.rules.answers import Ask, Evidence, Subject, limit, not_measured
from tests.rules.kernel_logs import printed, program

ask = Ask("TTP808")
LIMIT = limit(0.3, "of its cycles")


def waiting(*threads: tuple[int, int]) -> Roofline:
    """Return a roofline of threads that took and waited so many cycles."""
    works = [
        ThreadWork(f"TRISC_{at}", total, sync, total - sync)
        for at, (total, sync) in enumerate(threads)
    ]
    return Roofline("memory", 18, 779, "NCRISC", 636, "TRISC_1", tuple(works))


def test_every_thread_waits() -> None:
    subject = printed(program(cycles=1000), roofline=waiting((1000, 700), (800, 320)))
    assert ask(subject) == LIMIT.found(
        0.4, "even TRISC_1, which waits least, waits for 40.0 % of its cycles"
    )
    (finding,) = run_rules([rule_of("TTP808")], subject)
    assert finding.saving_ns == pytest.approx(1000 * (1 - 480 / 1000))


def test_one_thread_is_busy() -> None:
    assert ask(printed(roofline=waiting((1000, 900), (1000, 100)))) == LIMIT.clean(0.1)


def test_waits_that_are_not_told() -> None:
    told = "this version of tt-lang does not separate waiting from working"
    assert ask(printed(roofline=replace(waiting(), threads=()))) == not_measured(told)
    told = "the output has no ROOFLINE ANALYSIS: set TTLANG_AUTO_PROFILE=1"
    assert ask(printed()) == not_measured(told)


def real_log(*more: str) -> Subject:
    names = ("v1_1_1_auto_profile.plain.txt", *more)
    text = "".join(corpus(f"ttlang/{name}").read_text() for name in names)
    return Subject(kernels=parse_ttlang(text, Path("log")))


def test_a_real_profile_names_the_buffers_that_are_waited_for() -> None:
    answer = ask(real_log("v1_1_1_cb_flow_graph.txt"))
    assert answer.value == pytest.approx(889 / 1655)
    assert answer.evidence[:3] == (
        Evidence("NCRISC line 107: CB[0] to be emptied", 1127, "cycles"),
        Evidence(
            "TRISC_1 line 107: CB[0] to be filled, by DMA at line 5 of demo_read", 976, "cycles"
        ),
        Evidence("TRISC_0 line 107: CB[1] to be emptied", 963, "cycles"),
    )
    without = ask(real_log())
    assert without.evidence[0] == Evidence(
        "NCRISC line 107: a buffer to be emptied", 1127, "cycles"
    )


def test_a_buffer_that_a_pipe_fills() -> None:
    pipes = corpus("ttlang/pipe_graph_inferred.txt").read_text()
    subject = real_log("v1_1_1_cb_flow_graph.txt")
    assert subject.kernels is not None
    graph = parse_ttlang(pipes.replace('"receiverCBIndex":2', '"receiverCBIndex":0'), Path("log"))
    log = replace(subject.kernels, pipe_graphs=graph.pipe_graphs)
    assert ask(Subject(kernels=log)).evidence[1] == Evidence(
        "TRISC_1 line 107: CB[0] to be filled, by a pipe from core 0,0", 976, "cycles"
    )


def test_hot_lines_come_first() -> None:
    log = real_log().kernels
    assert log is not None
    first, second, *_ = hot_lines(log)
    assert str(first) == "TRISC_1 line 107: with a_cb.wait() as a_blk, y_cb.reserve() as y_blk:"
    assert first.cycles == 1902
    assert first.share == pytest.approx(1902 / 2106)
    assert (second.thread, second.cycles) == ("TRISC_0", 1862)

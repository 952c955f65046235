"""Kernels whose threads wait for each other instead of working at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_ttnn_perf._base.text import percent
from pytest_ttnn_perf.analysis.checklist.kernels import kernels_of, roofline_of, stalls_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ttlang import TtlangLog


@rule("TTP808", "threads-take-turns", Severity.WARNING, Input.KERNELS)
def threads_take_turns(
    kernels: TtlangLog,
    *,
    share: Limit = Limit(0.3, "of its cycles", "a choice: the busiest thread should hardly wait"),
) -> Answer:
    """All threads of a kernel wait for each other.

    ## What it finds
    The share of its cycles in which the thread that waits least waits for a dataflow buffer: to be
    filled (`cb_wait`) or to be emptied (`cb_reserve`).

    ## Why it matters
    In a kernel that overlaps moving and computing, one thread is always busy, and the others wait
    for it. If even that one waits, the threads take turns: data arrive while nothing is computed,
    and the other way round.

    ## What to do
    Give the buffers that are named two blocks or more (`block_count=2`), so that one is filled
    while the other is used. Start the next copy before waiting for the last one. Where a pipe fills
    the buffer, send earlier.

    ## When it is no problem
    Kernels with so few blocks that filling the first and writing the last is most of their time.

    ## Where it looks
    ROOFLINE ANALYSIS of tt-lang's auto-profile, which has the waits of each thread; the lines and
    the buffers that they wait for are from its source listing, CB FLOW GRAPH and PIPE GRAPH. The
    saving needs a PERF SUMMARY of the one program, which has the time.
    """
    line = roofline_of(kernels)
    if isinstance(line, str):
        return Answer.not_measured(line)
    threads = [thread for thread in line.threads if thread.total_cycles > 0]
    if not threads:
        return Answer.not_measured("this version of tt-lang does not separate waiting from working")
    least = min(threads, key=lambda thread: thread.sync_cycles / thread.total_cycles)
    part = least.sync_cycles / least.total_cycles
    told = f"even {least.thread}, which waits least, waits for {percent(part)} of its cycles"
    evidence = [Evidence(str(stall), stall.cycles, "cycles") for stall in stalls_of(kernels)]
    answer = share.at_most(part, told, evidence)
    programs = kernels_of(kernels)
    if isinstance(programs, str) or len(programs) > 1:
        return answer  # of several, it is not told which one was profiled
    longest = max(thread.total_cycles for thread in threads)
    work = max(thread.work_cycles for thread in threads)
    saved_ns = programs[0].time_ns * max(0.0, 1 - work / longest)
    return answer.saving(
        {}, "time × (1 − most work / longest thread): no thread would wait", waiting_ns=saved_ns
    )

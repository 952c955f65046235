"""Profiler data that got lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Evidence, Input, Severity, Subject
from pytest_ttnn_perf.records.metric import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.records.ttlang import LineProfile, TtlangLog

#: What is done as often as the other on one line of a kernel.
_PAIRS: Final = (("cb_reserve", "cb_push"), ("cb_wait", "cb_pop"))
_NONE: Final = Limit(0, "losses", "what is lost makes every time too short")
_UNPROFILED: Final = frozenset({Source.WALL, Source.SIM})


@rule("TTP001", "profiler-data-dropped", Severity.ERROR, Input.TEST, Input.KERNELS)
def profiler_data_dropped(subject: Subject) -> Answer:
    """The profiler lost data.

    ## What it finds
    Markers that the device profiler dropped because its buffers were full; sections of tt-lang's
    output that are cut, or may be of an earlier run; and lines of a tt-lang kernel on which a
    buffer was reserved more often than pushed, or waited for more often than popped.

    ## Why it matters
    What is left looks like a whole profile with shorter times. No number of it can be trusted.

    ## What to do
    Profile fewer ops at a time: fewer iterations, fewer layers, or a kernel with fewer loops; of a
    log that is incomplete, capture all of it. A core keeps 125 zones per processor, and 1000
    programs unless TT_METAL_PROFILER_PROGRAM_SUPPORT_COUNT says more. For tt-lang, set
    TT_METAL_PROFILER_MID_RUN_DUMP=1.

    ## When it is no problem
    Never.

    ## Where it looks
    What the profiled pass of the test said of its profiler, and the output of tt-lang.
    """
    losses = list(_of_kernels(subject.kernels)) if subject.kernels else []
    if subject.observation is not None and subject.observation.dropped:
        losses.insert(0, Evidence("the device profiler ran out of room and dropped markers"))
    if losses:
        others = f", and {len(losses) - 1} more" if len(losses) > 1 else ""
        what = "the log is incomplete" if _is_only_cut(subject) else "profiler data are not whole"
        return _NONE.found(len(losses), f"{what}: {losses[0].subject}{others}", losses)
    return _NONE.clean(0) if _was_profiled(subject) else Answer.not_applicable("no profiler ran")


def _is_only_cut(subject: Subject) -> bool:
    """Tell whether nothing is lost but what the log does not show."""
    from pytest_ttnn_perf.records.ttlang import ProblemKind

    if subject.kernels is None or (subject.observation and subject.observation.dropped):
        return False
    kinds = {problem.kind for problem in subject.kernels.problems}
    return ProblemKind.CUT in kinds and kinds.isdisjoint({ProblemKind.DROPPED, ProblemKind.STALE})


def _of_kernels(log: TtlangLog) -> Iterator[Evidence]:
    from pytest_ttnn_perf.records.ttlang import ProblemKind

    losses = (ProblemKind.DROPPED, ProblemKind.CUT, ProblemKind.STALE)
    for problem in log.problems:
        if problem.kind in losses:
            yield Evidence(f"line {problem.line}: {problem.text}")
    for profile in log.auto_profiles:
        for thread in profile.threads:
            for line in thread.lines or ():
                yield from _unpaired(line, thread.total.thread)


def _unpaired(line: LineProfile, thread: str) -> Iterator[Evidence]:
    hits = {op.op: op.hits for op in line.ops}
    for first, second in _PAIRS:
        if first in hits and second in hits and hits[first] != hits[second]:
            counts = f"{hits[first]} {first}, {hits[second]} {second}"
            lost = abs(hits[first] - hits[second])
            yield Evidence(f"{thread}, source line {line.line}: {counts}", lost, "zones")


def _was_profiled(subject: Subject) -> bool:
    if subject.kernels is not None and subject.kernels.sim is not None:
        return False
    if subject.kernels is not None or subject.ops is not None or subject.observation is None:
        return True
    metrics = subject.observation.metrics.values()
    return any(observed.metric.source not in _UNPROFILED for observed in metrics)

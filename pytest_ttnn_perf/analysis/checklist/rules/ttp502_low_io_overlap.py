"""Transfers that do not hide behind compute."""

from __future__ import annotations

from pytest_ttnn_perf._base.text import percent
from pytest_ttnn_perf.analysis.checklist.measurements import NO_IO_TIMES, io_times, milliseconds
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity, Subject


@rule("TTP502", "low-io-overlap", Severity.WARNING, Input.TEST)
def low_io_overlap(
    subject: Subject,
    *,
    overlap: Limit = Limit(0.5, "of the shorter one", "a choice: half of what could be hidden"),
    worthwhile: Limit = Limit(0.1, "of the longer one", "a choice: less cannot save a tenth"),
) -> Answer:
    """Transfers and compute hardly run at the same time.

    ## What it finds
    How much of the shorter of both, transfers or compute, is hidden behind the longer one:
    (compute + transfer - both) / min(compute, transfer). 1 is a perfect overlap, 0 none.

    ## Why it matters
    What is not hidden is added to every call.

    ## What to do
    Put transfers on a command queue of their own (TTP501), write into a tensor that the model is
    not reading at the moment, and read outputs without blocking.

    ## What it saves
    What both take at once without the longer one.

    ## When it is no problem
    Where one of both is short, overlapping cannot save much: the question does not arise.

    ## Where it looks
    The medians of `io_compute_time`, `io_transfer_time` and `io_both_time`, which
    `ttnn_perf.measure_io_overlap(compute=, transfer=, both=)` records.
    """
    times = io_times(subject)
    if times is None:
        return Answer.not_measured(NO_IO_TIMES)
    shorter, longer = sorted([times.compute_ns, times.transfer_ns])
    if shorter < worthwhile.value * longer:
        return Answer.not_applicable(
            f"there is little to overlap: {milliseconds(shorter)} beside {milliseconds(longer)}"
        )
    alone = f"{milliseconds(times.compute_ns)} compute, {milliseconds(times.transfer_ns)} transfers"
    return overlap.at_least(
        times.overlap,
        f"{alone}, both at once {milliseconds(times.both_ns)}: "
        f"{percent(times.overlap)} of the shorter one is hidden",
    ).saving(
        {},
        f"both − the longer one: {milliseconds(times.both_ns)} − {milliseconds(longer)}",
        waiting_ns=max(0.0, times.both_ns - longer),
    )

"""Transfers that share the only command queue with compute."""

from __future__ import annotations

from pytest_ttnn_perf._base.text import percent
from pytest_ttnn_perf.analysis.checklist.measurements import (
    NO_IO_TIMES,
    io_times,
    number,
    settings_of,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity, Subject


@rule("TTP501", "one-command-queue", Severity.WARNING, Input.DEVICE)
def one_command_queue(
    subject: Subject,
    *,
    share: Limit = Limit(
        0.2, "of compute and transfers", "ttnn-visualizer-cli advises a second queue above 20 %"
    ),
) -> Answer:
    """Transfers take long, and there is one command queue for everything.

    ## What it finds
    A device that was opened with one command queue, while transfers take a large part of the time
    that transfers and compute take one after the other.

    ## Why it matters
    Commands of one queue wait for each other. With a second queue the next input is on its way
    while the device still computes.

    ## What to do
    Open the device with `num_command_queues=2`, write inputs on queue 1 and compute on queue 0, and
    let the queues wait for each other with `ttnn.record_event` and `ttnn.wait_for_event`.

    ## When it is no problem
    A model whose latency counts and which is called once at a time: there is nothing to overlap.

    ## Where it looks
    `num_command_queues`, observed when the device was opened or stated as a fact, and the times of
    `ttnn_perf.measure_io_overlap`: no profiler's capture has either.
    """
    queues = number(settings_of(subject).get("num_command_queues"))
    if queues is None:
        return Answer.not_measured("num_command_queues is not known: state it as a fact")
    if queues > 1:
        return Answer.clean(reason=f"{queues:.0f} command queues are open")
    times = io_times(subject)
    if times is None:
        return Answer.not_measured(f"one command queue is open; {NO_IO_TIMES}")
    part = times.transfer_share
    return share.at_most(
        part, f"transfers take {percent(part)} of the time, and one command queue is open"
    )

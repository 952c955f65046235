"""Models that would gain from a trace and have none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.measurements import (
    call_times,
    is_on,
    settings_of,
    uses_trace,
)
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.records.finding import Input, Severity, Subject

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.checklist.op_times import Gaps
    from pytest_ttnn_perf.records.ops import OpTable

#: What is left between ops in a replay.
_IN_A_REPLAY_NS: Final = 1_000.0


@rule("TTP402", "trace-not-used", Severity.WARNING, Input.OPS, Input.TEST)
def trace_not_used(
    subject: Subject,
    step: OpTable | None,
    *,
    share: Limit = Limit(0.2, "of the time", "ttnn-visualizer-cli advises a trace above 20 %"),
) -> Answer:
    """The host holds a model up, and no trace is used.

    ## What it finds
    A model whose devices wait for the host, that could be traced, and is not.

    ## Why it matters
    A trace records the commands of a whole call once. Replaying it costs the host one command
    instead of one for every op.

    ## What to do
    Open the device with a `trace_region_size`, call the model once to compile it, then capture it:
    `ttnn.begin_trace_capture`, the model, `ttnn.end_trace_capture`. Afterwards copy inputs into the
    tensors that were captured and call `ttnn.execute_trace`. With tt-xla, set the compile option
    `enable_trace`.

    ## What it saves
    At most the wall time without the device's, or else the gaps of a step beyond 1 µs for each op.
    The host takes longer for an op while it is profiled, so that what follows from gaps comes after
    all that can be estimated. Of layers that repeat, the gaps of the last one count for each: the
    first of them wait for a host that has just begun.

    ## When it is no problem
    A trace holds ops of a device with fixed shapes only. With host fallbacks, or with shapes that
    change from call to call (state `dynamic_shapes`), the question does not arise. Where devices
    wait before a few ops only, the host does something else there, such as reading a position or
    preparing an input: move that out of the call first.

    ## Where it looks
    Whether a trace is used: METAL TRACE ID in the op table, or the fact `use_trace`, which is
    observed of pipelines of TT-CNN, or `enable_trace`, which is observed with tt-xla. How long
    devices wait: `wall_time`, or `throughput_time` without that, both without a profiler, against
    `device_kernel_time`, or else the gaps of the op table as in TTP401.
    """
    used = uses_trace(subject)
    if used is None:
        return Answer.not_measured("whether a trace is used is not known: state the fact use_trace")
    if used:
        return Answer.clean(reason="a trace is used")
    obstacle = _obstacle(subject)
    if obstacle is not None:
        return Answer.not_applicable(obstacle)
    times = call_times(subject) if subject.observation is not None else ""
    if not isinstance(times, str):
        sentence = f"no trace is used, and devices wait {percent(times.waiting)} of the wall time"
        answer = share.at_most(times.waiting, sentence)
        return answer.saving({}, times.arithmetic, waiting_ns=times.waiting_ns)
    if step is None:
        return Answer.not_measured(times or subject.why_absent(Input.OPS))
    from pytest_ttnn_perf.analysis.checklist.op_times import gaps_of

    gaps = gaps_of(subject)
    if isinstance(gaps, str):
        return Answer.not_measured(times or gaps)
    return _of_gaps(step, gaps, share)


def _of_gaps(step: OpTable, gaps: Gaps, share: Limit) -> Answer:
    """Answer by the gaps of a window, which the profiler makes longer."""
    from pytest_ttnn_perf.analysis.checklist.savings import microseconds
    from pytest_ttnn_perf.analysis.checklist.waiting import lasting_waiting

    waiting = lasting_waiting(step)
    if waiting.share <= share.value:
        return share.clean(waiting.share)
    wait = f"devices wait at most {percent(waiting.share)} of the time in {gaps.place}"
    sentence = f"no trace is used, and {wait}; {gaps.caveat}"
    if not waiting.before_each_op:
        sentence = f"{wait}, {waiting.places}: the host works there, and no trace is used"
    answer = share.found(waiting.share, sentence, waiting.evidence())
    saved = waiting.beyond_ns(_IN_A_REPLAY_NS)
    words = f"gaps beyond {microseconds(_IN_A_REPLAY_NS)} each, as in a replay"
    arithmetic = f"{words}: {microseconds(saved)}"
    return answer.saving({}, arithmetic, waiting_ns=saved, at_most=True)


def _obstacle(subject: Subject) -> str | None:
    """Say why no trace can hold the model."""
    differs = False
    if subject.ops is not None:
        from pytest_ttnn_perf.analysis.checklist.op_times import first_difference

        fallbacks = sum(subject.ops.columns.host)
        if fallbacks:
            return f"no trace can hold ops that run on the host: {counted(fallbacks, 'op')}"
        differs = first_difference(subject.ops) is not None
    if differs or is_on(settings_of(subject).get("dynamic_shapes")):
        return "no trace can hold shapes that change from call to call"
    return None

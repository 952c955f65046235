"""Time in which devices wait for the next op."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf._base.text import counted, percent
from pytest_ttnn_perf.analysis.checklist.op_times import gaps_of
from pytest_ttnn_perf.analysis.checklist.rule import Answer, Limit, rule
from pytest_ttnn_perf.analysis.checklist.savings import microseconds
from pytest_ttnn_perf.analysis.checklist.waiting import waiting_in
from pytest_ttnn_perf.records.finding import Input, Severity, Subject

if TYPE_CHECKING:
    from pytest_ttnn_perf.records.ops import OpTable

#: An op that is shorter than that does little: another one may do it on its way.
_SHORT_NS: Final = 5_000.0


@rule("TTP401", "host-bound", Severity.WARNING, Input.OPS)
def host_bound(
    subject: Subject,
    step: OpTable,
    *,
    share: Limit = Limit(
        0.2,
        "of the time",
        "ttnn-visualizer-cli advises a trace above 20 %; real replays: 0 to 28 %",
    ),
) -> Answer:
    """Devices wait for their next op.

    ## What it finds
    The share of the time that lies between the end of one kernel and the start of the next: inside
    replays of a trace, or else inside a window. The gap before the first op of a replay or window
    does not count; it belongs to what came before.

    ## Why it matters
    A device that waits does nothing. Faster kernels then make the gaps longer, not the model
    faster.

    ## What to do
    Fuse small ops, and replay a trace where there is none yet. A gap costs as much before a short
    kernel as before a long one. Inside a replay the host sends nothing: gaps there are what it
    takes to start kernels, and fewer, larger ops are the only way. Outside of one, a trace saves
    the host from sending every op; move its other work out of the model.

    ## What it saves
    In a replay the gaps before ops of less than 5 µs, which may be part of another op. In a window
    without a trace that is for TTP402 to say.

    ## When it is no problem
    Outside a replay the profiler itself makes gaps longer: the share is then an upper bound.
    Compare with TTP404, which knows the time without a profiler.

    ## Where it looks
    OP TO OP LATENCY and the kernel time of the op table: the share is of all devices, and ops are
    named as they wait in one step of the slowest. Of replays that ran different ops
    (TTP002), those count that are whole. Without replays it looks at windows: the
    measured call of a test, the part that a capture was cut to, or what stands between the
    signposts NAME and NAME_END. A capture with neither is not measured: most of its gaps are
    compilation. So is a window in which most gaps are of 1 ms or more.
    """
    gaps = gaps_of(subject)
    if isinstance(gaps, str):
        return Answer.not_measured(gaps)
    if gaps.share <= share.value:
        return share.clean(gaps.share, reason=gaps.caveat)
    most = "" if gaps.replayed else "at most "
    waiting = f"devices wait {most}{percent(gaps.share)} of the time for their next op"
    sentence = "; ".join(filter(None, [f"{waiting}, in {gaps.place}", gaps.caveat]))
    told = waiting_in(step)
    answer = share.found(gaps.share, sentence, told.evidence())
    if not gaps.replayed:
        return answer  # what a trace would save is for TTP402 to say
    short = [gap for gap in told.gaps if gap.op.kernel_ns < _SHORT_NS]
    saved = sum(gap.ns for gap in short)
    words = f"gaps before {counted(len(short), 'op')} of less than {_SHORT_NS / 1000:g} µs"
    return answer.saving({}, f"{words}: {microseconds(saved)}", waiting_ns=saved)

"""Rules asked of every test, which load no reader of captures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.core.finding import Answer, Evidence, Input, Limit, Severity, Subject, rule
from pytest_ttnn_perf.core.metric import Kind, Source
from pytest_ttnn_perf.core.text import counted, duration, percent
from pytest_ttnn_perf.gate.rules_on_numbers import (
    is_on,
    settings_of,
    uses_trace,
    waiting_of_call,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_ttnn_perf.analysis.readers.ttlang import TtlangLog
    from pytest_ttnn_perf.core.observation import Observation
    from pytest_ttnn_perf.core.ops import OpTable
    from pytest_ttnn_perf.machine.inspection import Conflict
    from pytest_ttnn_perf.measure.helper_families import HelperPcc


#: What is done as often as the other on one line of a kernel.
_PAIRS: Final = (("cb_reserve", "cb_push"), ("cb_wait", "cb_pop"))
_NO_LOSSES: Final = Limit(0, "losses", "what is lost makes every time too short")
#: Kinds of problems, by name: their module is read for logs alone.
_LOSSES: Final = frozenset({"DROPPED", "CUT", "STALE"})
_UNPROFILED: Final = frozenset({Source.WALL, Source.SIM})


@rule("TTP001", "profiler-data-dropped", Severity.ERROR, Input.TEST, Input.KERNELS)
def profiler_data_dropped(subject: Subject) -> Answer:
    """The profiler lost data.

    Finds markers that the device profiler dropped because its buffers were full. Finds sections of
    tt-lang's output that are cut, or may be of an earlier run. Finds lines of a tt-lang kernel on
    which a buffer was reserved more often than pushed, or waited for more often than popped. What
    is left looks like a whole profile with shorter times. Several profiles in one output of tt-lang
    are no whole profile either: each adds up the cycles of all calls so far.

    ## What to do
    Profile fewer ops at a time: fewer iterations, fewer layers, or a kernel with fewer loops; of a
    log that is incomplete, capture all of it. A core keeps 125 zones per processor, and 1000
    programs unless TT_METAL_PROFILER_PROGRAM_SUPPORT_COUNT says more. For tt-lang, set
    TT_METAL_PROFILER_MID_RUN_DUMP=1, and call the kernel once in the profiled process.
    """
    kernels, observation = subject.kernels, subject.observation
    dropped = observation is not None and observation.dropped
    losses = list(_losses(kernels)) if kernels else []
    if dropped:
        losses.insert(0, Evidence("the device profiler ran out of room and dropped markers"))
    if losses:
        kinds = {problem.kind.name for problem in kernels.problems} if kernels else set()
        only_cut = kinds & _LOSSES == {"CUT"} and not dropped
        what = "the log is incomplete" if only_cut else "profiler data are not whole"
        others = f", and {len(losses) - 1} more" if len(losses) > 1 else ""
        return _NO_LOSSES.found(len(losses), f"{what}: {losses[0].subject}{others}", losses)
    if kernels is not None:
        profiled = kernels.sim is None
    elif subject.ops is not None or observation is None:
        profiled = True
    else:
        observed = observation.metrics.values()
        profiled = any(one.metric.source not in _UNPROFILED for one in observed)
    return _NO_LOSSES.clean(0) if profiled else Answer.not_applicable("no profiler ran")


def _losses(log: TtlangLog) -> Iterator[Evidence]:
    calls = max(len(log.auto_profiles), len(log.signpost_profiles))
    if calls > 1:
        yield Evidence(f"{calls} calls were profiled in one process: their cycles are added up")
    for problem in log.problems:
        if problem.kind.name in _LOSSES:
            yield Evidence(f"line {problem.line}: {problem.text}")
    for profile in log.auto_profiles:
        for thread in profile.threads:
            for line in thread.lines:
                hits = {op.op: op.hits for op in line.ops}
                for first, second in _PAIRS:
                    if first in hits and second in hits and hits[first] != hits[second]:
                        counts = f"{hits[first]} {first}, {hits[second]} {second}"
                        place = f"{thread.thread}, source line {line.line}"
                        lost = abs(hits[first] - hits[second])
                        yield Evidence(f"{place}: {counts}", lost, "zones")


@rule("TTP004", "conflicting-environment", Severity.ERROR)
def conflicting_environment(
    conflicts: tuple[Conflict, ...] | None, observation: Observation | None
) -> Answer:
    """A variable was set that changes the times.

    Finds variables that slow kernels or calls down: the watcher, prints and asserts of kernels,
    slow dispatch, profilers, tt-lang's dumps, logging or comparison in TTNN_CONFIG_OVERRIDES. The
    model is then measured with its debugging. Some of them do so even when set to 0.

    ## What to do
    Unset the variable; each finding says which.

    ## When it is no problem
    Never for times. To debug, run the test without the gate.
    """
    if observation is not None and not any(
        observed.samples
        and observed.metric.source is Source.WALL
        and observed.metric.kind in {Kind.TIME, Kind.THROUGHPUT}
        for observed in observation.metrics.values()
    ):
        return Answer.not_applicable("no wall time was taken")
    if conflicts is None:
        return Answer.not_measured("the environment in which the times were taken is not known")
    sentences = [str(conflict) for conflict in conflicts]
    limit = Limit(0, "variables", "with any of them a time is not the model's")
    return limit.at_most(len(conflicts), "; ".join(sentences), map(Evidence, sentences))


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

    Finds a model whose devices wait for the host, that could be traced, and is not. Whether it is
    shows in the op table, or is the fact `use_trace` or, with tt-xla, `enable_trace`. Replaying a
    trace costs the host one command instead of one for every op.

    ## What to do
    Open the device with a `trace_region_size`, allocate the inputs, call the model once to compile
    it, then capture it; afterwards copy inputs into the tensors that were captured, and replay:

    ```py
    tensor = ttnn.allocate_tensor_on_device(host.spec, device)
    model(tensor)  # compiles
    trace = ttnn.begin_trace_capture(device, cq_id=0)
    output = model(tensor)
    ttnn.end_trace_capture(device, trace, cq_id=0)

    ttnn.copy_host_to_device_tensor(host, tensor)
    ttnn.execute_trace(device, trace, cq_id=0, blocking=False)
    ```

    With tt-xla, set the compile option `enable_trace`.

    ## What it saves
    At most the wall time without the device's, or else the gaps of a step beyond 1 µs for each op.
    Of layers that repeat, the gaps of the last one count for each.

    ## When it is no problem
    With host fallbacks, or with shapes that change from call to call (state `dynamic_shapes`), the
    question does not arise. Where devices wait before a few ops only, move what the host does there
    out of the call first.
    """
    used = uses_trace(subject)
    if used is None:
        return Answer.not_measured("whether a trace is used is not known: state the fact use_trace")
    if used:
        return Answer.clean(reason="a trace is used")
    obstacle = _obstacle(subject)
    if obstacle is not None:
        return Answer.not_applicable(obstacle)
    times: Answer | str = ""
    if subject.observation is not None:
        sentence = "no trace is used, and devices wait {waiting} of the wall time"
        times = waiting_of_call(subject, share, sentence)
    if not isinstance(times, str):
        return times
    if step is None:
        return Answer.not_measured(times or subject.why_absent(Input.OPS))
    from pytest_ttnn_perf.analysis.checklist.savings import gaps_of, lasting_waiting

    gaps = gaps_of(subject)
    if isinstance(gaps, str):
        return Answer.not_measured(times or gaps)
    waiting = lasting_waiting(step)
    if waiting.share <= share.value:
        return share.clean(waiting.share)
    wait = f"devices wait at most {percent(waiting.share)} of the time in {gaps.place}"
    sentence = f"no trace is used, and {wait}; {gaps.caveat}"
    if not waiting.before_each_op:
        sentence = f"{wait}, {waiting.places}: the host works there, and no trace is used"
    answer = share.found(waiting.share, sentence, waiting.evidence())
    saved = sum(max(0.0, gap.ns - _IN_A_REPLAY_NS) for gap in waiting.gaps)
    words = f"gaps beyond {duration(_IN_A_REPLAY_NS)} each, as in a replay"
    arithmetic = f"{words}: {duration(saved)}"
    return answer.saving({}, arithmetic, waiting_ns=saved, at_most=True)


def _obstacle(subject: Subject) -> str | None:
    """Say why no trace can hold the model."""
    differs = False
    if subject.ops is not None:
        fallbacks = sum(subject.ops.columns.host)
        if fallbacks:
            return f"no trace can hold ops that run on the host: {counted(fallbacks, 'op')}"
        from pytest_ttnn_perf.analysis.checklist.savings import differences

        differs = next(differences(subject.ops), None) is not None
    if differs or is_on(settings_of(subject).get("dynamic_shapes")):
        return "no trace can hold shapes that change from call to call"
    return None


@rule("TTP908", "helper-pcc-differs", Severity.ERROR, Input.HELPERS)
def helper_pcc_differs(helper_pccs: tuple[HelperPcc, ...]) -> Answer:
    """A PCC helper lets an output pass that the values do not bear out.

    Finds comparisons that passed in a helper such as `comp_pcc` or `assert_with_pcc`, although the
    output holds NaN or infinity where the reference does not. Finds comparisons of nothing: no
    finite value, empty tensors, one element stretched to many. Finds values that correlate less
    than the helper says. It looks at tensors in host memory, of at most `observe_pcc_elements`
    elements. These helpers replace NaN and infinity by zero: a model with NaN passes with a PCC of
    0.999.

    ## What to do
    Find the first op that gives a value that is not finite, with comparison mode of TTNN; where the
    tensors are empty or of other shapes, compare the whole output.

    ## When it is no problem
    The same NaN or infinity on both sides, as in masks, and shapes that differ but hold the same
    elements are not found. Compare an output with NaN by design without it.
    """
    evidence = [Evidence(f"{each.metric} ({each.helper}): {each.sentence}") for each in helper_pccs]
    text = ""
    if helper_pccs:
        pcc, *others = helper_pccs
        says = "passed" if pcc.told is None else f"{pcc.told:.6g}"
        ours = "does not exist" if math.isnan(pcc.ours) else f"is {pcc.ours:.6g}"
        text = f"{pcc.metric}: {pcc.helper} says {says}, and the PCC {ours}: {pcc.sentence}"
        text += f"; {len(others)} more" if others else ""
    limit = Limit(0, "comparisons", "what leaves values out compares another output")
    return limit.at_most(len(helper_pccs), text, evidence)

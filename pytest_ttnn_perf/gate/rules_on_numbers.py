"""Rules on the numbers of a test: samples, host, transfers, accuracies."""

from __future__ import annotations

import math
from math import isfinite
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from pytest_ttnn_perf.core.baseline import SCRIPT_FACT
from pytest_ttnn_perf.core.finding import (
    Answer,
    Answers,
    Evidence,
    Input,
    Limit,
    RuleOutcome,
    Severity,
    Subject,
    UnansweredRules,
    as_configured,
    finding_of,
    rule,
)
from pytest_ttnn_perf.core.metric import (
    IO_COMPUTE_TIME,
    KERNEL_TIME,
    THROUGHPUT_TIME,
    WALL_TIME,
    Better,
    Kind,
    Source,
    median,
    representative,
)
from pytest_ttnn_perf.core.observation import (
    NO_LIMITS,
    NOT_TIMED,
    Observation,
    Outcome,
    Requester,
    Verdict,
)
from pytest_ttnn_perf.core.settings import USUAL_PCC
from pytest_ttnn_perf.core.text import NANOSECONDS_IN, counted, percent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from pytest_ttnn_perf.core.hardware import Hardware, Scalar
    from pytest_ttnn_perf.core.observation import MetricObservation
    from pytest_ttnn_perf.core.settings import Settings
    from pytest_ttnn_perf.gate.sweeps import AxisEffect


_IO_TIMES: Final = (IO_COMPUTE_TIME, "io_transfer_time", "io_both_time")
NO_IO_TIMES: Final = (
    "no profiler sees transfers: measure them with "
    "ttnn_perf.measure_io_overlap(compute=, transfer=, both=)"
)
_WALL: Final = frozenset({Source.WALL})
_DEVICE: Final = frozenset({Source.DEVICE, Source.REALTIME, Source.REPORT, Source.TRACY})


def waiting_of_call(subject: Subject, share: Limit, sentence: str) -> Answer | str:
    """Answer for the part of a call without a kernel.

    A text says which time is missing.

    ``sentence`` may name the times ``{wall}`` and ``{device}``, and the part as ``{waiting}``.
    """
    wall = _median_ns(subject, WALL_TIME, _WALL) or _median_ns(subject, THROUGHPUT_TIME, _WALL)
    device = _median_ns(subject, KERNEL_TIME, _DEVICE)
    if wall is None or device is None:
        return _why_missing(subject, WALL_TIME if wall is None else KERNEL_TIME)
    waiting = max(0.0, 1 - device / wall)
    times = {"wall": _milliseconds(wall), "device": _milliseconds(device)}
    return share.at_most(waiting, sentence.format(**times, waiting=percent(waiting))).saving(
        {},
        "wall − device: {wall} − {device}".format(**times),
        waiting_ns=max(0.0, wall - device),
    )


def _io_times(subject: Subject) -> tuple[float, ...] | None:
    """Return the times of computing, transferring and both, if all were measured."""
    times = [_median_ns(subject, name, _WALL) for name in _IO_TIMES]
    known = [time for time in times if time is not None]
    return tuple(known) if len(known) == len(times) else None


def _milliseconds(nanoseconds: float) -> str:
    return f"{nanoseconds / NANOSECONDS_IN['ms']:.3g} ms"


def _median_ns(subject: Subject, name: str, sources: Collection[Source]) -> float | None:
    observed = subject.observation.metrics.get(name) if subject.observation is not None else None
    if observed is None or not observed.samples or observed.metric.source not in sources:
        return None
    scale = NANOSECONDS_IN.get(observed.metric.unit)
    if scale is None or not all(map(math.isfinite, observed.samples)):
        return None
    middle = median(observed.samples) * scale
    return middle if middle > 0 else None


def _why_missing(subject: Subject, name: str) -> str:
    observed = subject.observation.metrics.get(name) if subject.observation is not None else None
    if observed is None:
        return f"the test has no {name}"
    source = observed.metric.source.value
    return f"{name}: {observed.note}" if observed.note else f"{name} of source {source} has no time"


def _found(troubles: Sequence[tuple[Evidence, float | None]]) -> Answer:
    """Answer with problems and their limits; the value is of the first."""
    (first, limit), *_ = troubles
    evidence = [trouble for trouble, _ in troubles]
    return Answer.found(
        "; ".join(trouble.subject for trouble in evidence),
        value=first.value,
        limit=limit,
        unit=first.unit,
        evidence=evidence,
    )


_OFF: Final = frozenset({"", "0", "false", "off", "no", "none"})


def settings_of(subject: Subject) -> Mapping[str, Scalar]:
    """Return the settings and facts of a subject."""
    observed = subject.observation.setting if subject.observation is not None else {}
    return {**observed, **subject.facts}


def is_on(value: Scalar) -> bool:
    """Return whether a switch is on.

    >>> is_on("1"), is_on("False"), is_on(None), is_on(value=True)
    (True, False, False, True)
    """
    return value.strip().lower() not in _OFF if isinstance(value, str) else bool(value)


def number(value: Scalar) -> float | None:
    """Return a setting as a number, if it is one.

    >>> number("10000000"), number(2), number("auto")
    (10000000.0, 2.0, None)
    """
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


#: The settings of a trace: of tests and TT-CNN, and of tt-xla.
_TRACES: Final = ("use_trace", "enable_trace")


def uses_trace(subject: Subject) -> bool | None:
    """Return whether a model runs from a trace, if known.

    Ops of which none is traced say no, unless a setting says yes.
    """
    ops = subject.ops
    if ops is not None and any(trace is not None for trace in ops.columns.trace):
        return True
    settings = settings_of(subject)
    for name in _TRACES:
        if name in settings:
            return is_on(settings[name])
    return False if ops is not None and len(ops) else None


#: Why rules about PCC cannot tell.
NO_PCC: Final = "the test checks no PCC"
_NO_BASELINE: Final = "there is no baseline of a PCC to compare with"
#: The suffixes of what is recorded with every PCC that exists.
_BESIDE: Final = ("_max_abs_error", "_relative_l2")


def accuracies(observation: Observation) -> Sequence[MetricObservation]:
    """Return the accuracies that a test checks."""
    return [
        observed
        for observed in observation.metrics.values()
        if observed.metric.kind is Kind.ACCURACY
        and observed.samples
        and observed.gated
        and not observed.metric.name.endswith(_BESIDE)
    ]


def pccs(observation: Observation) -> Sequence[MetricObservation]:
    """Return the accuracies that are correlations, by name or companions."""
    return [
        accuracy
        for accuracy in accuracies(observation)
        if accuracy.metric.better is Better.HIGHER
        and (
            "pcc" in accuracy.metric.name.lower()
            or any(f"{accuracy.metric.name}{end}" in observation.metrics for end in _BESIDE)
        )
    ]


def worst_of(observed: MetricObservation) -> float:
    """Return the worst sample; NaN if any sample is NaN."""
    if any(math.isnan(sample) for sample in observed.samples):
        return math.nan
    lowest, highest = min(observed.samples), max(observed.samples)
    return highest if observed.metric.better is Better.LOWER else lowest


#: Times of one call each, which are meant to be cold.
_COLD: Final = frozenset({"first_call_time", "second_call_time", "call_time", "compile_time"})
#: Times of a measured callable, whose warm-up is known even where there was none.
_WARMED: Final = frozenset({"wall_time", "throughput_time"})
#: Fewer samples do not tell which of them is off.
_ENOUGH: Final = 3


@rule("TTP003", "cold-samples", Severity.WARNING, Input.TEST)
def cold_samples(
    observation: Observation,
    facts: Mapping[str, Scalar],
    *,
    warmup: Limit = Limit(3, "warm-up calls", "tt-xla and tt-lang warm up three times"),
    first: Limit = Limit(1.5, "x the median", "a call that compiles takes several times as long"),
) -> Answer:
    """The samples may have been taken from a cold model.

    ## What it finds
    A program cache that grew while samples were taken, a first sample far above the others, or
    fewer warm-up calls than a model needs. Times of one call, such as `first_call_time`, are meant
    to be cold and are left out.

    ## Why it matters
    First calls compile, capture traces and fill caches: their time differs from run to run.

    ## What to do
    Leave `warmup` at 3 or more, and warm the model up with the shapes that are measured.
    """
    timed = [
        observed
        for observed in observation.metrics.values()
        if observed.metric.kind is Kind.TIME
        and observed.metric.source is Source.WALL
        and observed.samples
        and observed.gated
        and observed.metric.name not in _COLD
    ]
    if not timed:
        return Answer.not_applicable("no gated time was sampled")
    known = {**observation.environment, **facts}
    before, after = (known.get(f"program_cache_entries_{when}") for when in ("before", "after"))
    troubles: list[tuple[Evidence, float | None]] = []
    if isinstance(before, int) and isinstance(after, int) and after > before:
        text = f"the program cache grew from {before} to {after} while samples were taken"
        troubles.append((Evidence(text, after - before, "programs"), 0))
    for observed in timed:
        one, *others = observed.samples
        usual = median(others) if len(observed.samples) >= _ENOUGH else 0.0
        if usual > 0 and one / usual > first.value:
            text = f"the first sample of {observed.metric.name} is {one / usual:.2f} x the median"
            troubles.append((Evidence(text, one / usual, first.unit), first.value))
    warmed = {
        observed.metric.name: len(observed.warmup)
        for observed in timed
        if observed.warmup or observed.metric.name in _WARMED
    }
    for name, count in warmed.items():
        if count < warmup.value:
            text = f"{name} was sampled after {counted(count, 'warm-up call')}"
            troubles.append((Evidence(text, count, warmup.unit), warmup.value))
    return _found(troubles) if troubles else warmup.clean(min(warmed.values(), default=None))


#: The facts that are looked at.
_FACTS: Final = (
    "load_1m", "governor", "clock_mhz", "thermal_trips", "throttled", "device_processes",
)  # fmt: skip
#: The clock at work, in MHz.
_CLOCKS: Final = {"wormhole_b0": 1000.0, "blackhole": 1350.0}
#: Systems of one chip: on others the slowest clock may be of a chip that the test does not use.
_ONE_CHIP: Final = frozenset({"n150", "p100", "p150"})


@rule("TTP006", "busy-host", Severity.WARNING)
def busy_host(
    observation: Observation | None,
    facts: Mapping[str, Scalar],
    *,
    load: Limit = Limit(0.5, "of the processors", "beyond it samples wait for a core"),
    clock: Limit = Limit(0.95, "of the chip's clock", "a chip at work runs at its full"),
) -> Answer:
    """The machine was busy, or held back, while times were taken.

    ## What it finds
    Other work on the processors, a power-saving governor, a chip below its clock or throttled for
    heat, and other processes that hold a chip. Of the load and the runnable threads the lesser is
    judged, as the load counts the test itself; the clock on systems of one chip.

    ## Why it matters
    Times then depend on what else the machine does, and say little about the model.

    ## What to do
    Measure on a machine that does nothing else, with `cpupower frequency-set -g performance`. Look
    at the cooling of a chip that throttles.

    ## When it is no problem
    Where only device times are gated: the load of the host does not change those.
    """
    hardware = observation.hardware if observation else None
    facts = {**(observation.environment if observation else {}), **facts}
    known = [name for name in _FACTS if facts.get(name) is not None]
    if not known:
        return Answer.not_measured("nothing is known of the load, the governor or the chips")
    numbers = {
        name: float(value) for name, value in facts.items() if isinstance(value, (int, float))
    }
    troubles = [*_of_host(numbers, load), *_of_chips(numbers, hardware, clock)]
    if facts.get("governor") not in {None, "performance"}:
        troubles.append((Evidence(f"the frequency governor is {facts['governor']}"), None))
    if facts.get("throttled") is True:
        troubles.append((Evidence("a chip is throttled"), None))
    if troubles:
        return _found(troubles)
    return Answer.clean(reason=f"known from {', '.join(known)}")


def _of_host(facts: Mapping[str, float], limit: Limit) -> Iterator[tuple[Evidence, float | None]]:
    load, processors = facts.get("load_1m"), facts.get("cpu_count")
    others = facts.get("runnable_threads")
    if load is None or not processors:
        return
    busy = load if others is None else min(load, others)
    if busy / processors > limit.value:
        text = f"load {load:g} on {counted(int(processors), 'processor')}"
        if others is not None:
            text += f", {counted(int(others), 'other thread')} about to run"
        yield Evidence(text, busy / processors, limit.unit), limit.value


def _of_chips(
    facts: Mapping[str, float], hardware: Hardware | None, limit: Limit
) -> Iterator[tuple[Evidence, float | None]]:
    clock = facts.get("clock_mhz")
    if hardware is not None and clock is not None and hardware.board in _ONE_CHIP:
        full = _CLOCKS.get(hardware.arch)
        if full and clock / full < limit.value:
            text = f"the chip runs at {clock:g} MHz, not at {full:g}"
            yield Evidence(text, clock / full, limit.unit), limit.value
    trips, holders = facts.get("thermal_trips"), facts.get("device_processes")
    if trips:
        text = f"a chip grew too hot: {counted(int(trips), 'thermal trip')}"
        yield Evidence(text, trips, "trips"), 0
    if holders is not None and holders > 1:
        yield Evidence(f"{holders:g} processes hold a chip", holders, "processes"), 1


@rule("TTP013", "axis-without-effect", Severity.WARNING, Input.SWEEP)
def axis_without_effect(axes: tuple[AxisEffect, ...]) -> Answer:
    """An axis of a sweep changed nothing that was observed.

    ## What it finds
    Axes of a [sweep](../how-to/sweep.md) whose points, where they differ in that axis alone, differ
    in nothing else: configuration, ops, counts, bytes, accuracies, times beyond noise, and whether
    they fit. A throughput, which may be reckoned from the axis, and a fact that repeats it are no
    proof. It is found at every point, and, as an `error`, fails the run and no test.

    ## Why it matters
    A setting that never reaches the model gives a sweep whose best point is chosen by noise.

    ## What to do
    Look whether the test passes the axis on to the model. If it does, let the test record what the
    axis should change, such as an accuracy or the memory in use.

    ## When it is no problem
    When the sweep is there to show that the axis does not matter: waive it with that reason.
    """
    idle = [axis for axis in axes if axis.compared and not axis.took_effect]
    if idle:
        named = " and ".join(axis.axis for axis in idle)
        what = "axis" if len(idle) == 1 else "axes"
        return Answer.found(
            f"{what} {named} changed nothing that was observed",
            evidence=(
                Evidence(f"{axis.axis}: {counted(axis.compared, 'pair')} of points compared")
                for axis in idle
            ),
        )
    if not any(axis.compared for axis in axes):
        return Answer.not_measured("no two points differ in one axis alone")
    return Answer.clean()


#: How the metrics of profiles begin: a probe on every line makes them longer.
_PROFILED: Final = ("auto_profile_", "signpost_cycles_")


@rule("TTP017", "nothing-gated", Severity.ERROR, Input.TEST)
def nothing_gated(observation: Observation) -> Answer:
    """A test that is to be gated ends without a gated number.

    ## What it finds
    Tests with the `ttnn_perf` marker or fixture of which no number is gated. The ones that a marker
    of the setting `markers` takes in end as `NO_DATA` instead, which `--ttnn-perf-missing=warn`
    lets pass. Those of `--ttnn-perf-all` and of `observe = "gate"` are not asked.

    ## Why it matters
    Such a test passes however slow it becomes, and looks as if it were gated.

    ## What to do
    Measure with `ttnn_perf.measure(...)` or `ttnn_perf.record(...)`, or report through a helper
    that is observed, under a name that is known or that `[tool.ttnn_perf.measurements]` declares;
    for the time of the whole call set `gate_call_time = true`.

    ## When it is no problem
    A test that records a profile of tt-lang is not asked. Else never, for a test that asks for it
    itself: take the marker away. Where tests share a marker with others, waive the rule.
    """
    metrics = observation.metrics
    if observation.asked is not Requester.TEST:
        return Answer.not_applicable("nobody asked for this test by name")
    if not metrics:
        return Answer.not_measured("the test recorded nothing")
    if any(observed.gated for observed in metrics.values()):
        return Answer.clean()
    if any(observed.why_ungated == NOT_TIMED for observed in metrics.values()):
        return Answer.not_measured(NOT_TIMED)
    if any(name.startswith(_PROFILED) for name in metrics):
        return Answer.not_applicable("it records a profile of tt-lang, whose cycles are no times")
    evidence = (
        Evidence(f"{name}: {observed.why_ungated or 'recorded only'}")
        for name, observed in metrics.items()
    )
    only = f"{counted(len(metrics), 'number')} recorded, none of them gated"
    return Answer.found(only, value=0.0, unit="gated numbers", evidence=evidence)


@rule("TTP404", "device-behind-e2e", Severity.WARNING, Input.TEST)
def device_behind_e2e(
    subject: Subject,
    *,
    share: Limit = Limit(0.2, "of the wall time", "as TTP401: what traces are advised for"),
) -> Answer:
    """A call takes much longer than the device works in it.

    ## What it finds
    The part of the wall time of a call in which the slowest device runs no kernel: it waits for the
    host, for transfers, or for the next op. `wall_time`, or else `throughput_time`, is taken
    without a profiler, `device_kernel_time` with one, on hardware. Of a pipeline, both are per
    input.

    ## Why it matters
    Users of the model wait for it, and no faster kernel brings it back.

    ## What to do
    Use a trace (TTP402), overlap transfers with a second command queue (TTP502), move conversions
    of inputs and outputs out of the call, and look for host fallbacks (TTP007).

    ## What it saves
    The wall time without the device's, if all of it can go.

    ## When it is no problem
    A measured call that on purpose contains work of the host, such as loading an image.
    """
    sentence = (
        "of the {wall} of a call, the slowest device works {device}: "
        "{waiting} goes by without a kernel"
    )
    answer = waiting_of_call(subject, share, sentence)
    return Answer.not_measured(answer) if isinstance(answer, str) else answer


@rule("TTP502", "low-io-overlap", Severity.WARNING, Input.TEST)
def low_io_overlap(
    subject: Subject,
    *,
    overlap: Limit = Limit(0.5, "of the shorter one", "a choice: half of the hidden part"),
    worthwhile: Limit = Limit(0.1, "of the longer one", "a choice: less cannot save a tenth"),
) -> Answer:
    """Transfers and compute hardly run at the same time.

    ## What it finds
    The part of the shorter one that is hidden behind the longer one: (compute + transfer - both) /
    min(compute, transfer), in `ttnn_perf.measure_io_overlap(compute=, transfer=, both=)` records. 1
    is a perfect overlap, 0 none. Where one of both is short it is not asked.

    ## Why it matters
    What is not hidden is added to every call.

    ## What to do
    Open the device with `num_command_queues=2`, write inputs on queue 1 and compute on queue 0, and
    let the queues wait for each other with `ttnn.record_event` and `ttnn.wait_for_event`. Write
    into a tensor that the model is not reading at the moment, and read outputs without blocking.

    ## What it saves
    What both take at once without the longer one.

    ## When it is no problem
    A model whose latency counts and which is called once at a time: there is nothing to overlap.
    """
    times = _io_times(subject)
    if times is None:
        return Answer.not_measured(NO_IO_TIMES)
    compute, transfer, both = times
    shorter, longer = sorted([compute, transfer])
    if shorter < worthwhile.value * longer:
        return Answer.not_applicable(
            f"there is little to overlap: {_milliseconds(shorter)} beside {_milliseconds(longer)}"
        )
    hidden = min(1.0, max(0.0, (compute + transfer - both) / shorter))
    one = number(settings_of(subject).get("num_command_queues")) == 1
    return overlap.at_least(
        hidden,
        f"{_milliseconds(compute)} compute, {_milliseconds(transfer)} transfers, both at once "
        f"{_milliseconds(both)}: {percent(hidden)} of the shorter one is hidden"
        + (", and one command queue is open" if one else ""),
    ).saving(
        {},
        f"both − the longer one: {_milliseconds(both)} − {_milliseconds(longer)}",
        waiting_ns=max(0.0, both - longer),
    )


@rule("TTP503", "transfer-bound", Severity.WARNING, Input.TEST)
def transfer_bound(
    subject: Subject,
    *,
    ratio: Limit = Limit(
        1.0, "times the compute time", "beyond it, transfers decide the throughput"
    ),
) -> Answer:
    """Transfers between host and device take longer than the computation.

    ## What it finds
    The time of transfers alone against the time of compute alone, as
    `ttnn_perf.measure_io_overlap(compute=, transfer=, both=)` records them.

    ## Why it matters
    Transfers that take longer than compute decide the throughput, however fast the kernels are.

    ## What to do
    Send less: narrower formats, no padding (TTP504), several samples at once, only the output that
    is needed. Do pre- and postprocessing on the device. Keep weights and caches there.

    ## What it saves
    What transfers take longer than compute: shorter ones could hide behind it.

    ## When it is no problem
    A model so small that its inputs are most of its work.
    """
    times = _io_times(subject)
    if times is None:
        return Answer.not_measured(NO_IO_TIMES)
    compute_ns, transfer_ns, _ = times
    compute, transfer = _milliseconds(compute_ns), _milliseconds(transfer_ns)
    return ratio.at_most(
        transfer_ns / compute_ns,
        f"transfers take {transfer}, compute {compute}: "
        f"{transfer_ns / compute_ns:.2f} times as long",
    ).saving(
        {}, f"transfers − compute: {transfer} − {compute}", waiting_ns=transfer_ns - compute_ns
    )


@rule("TTP901", "pcc-below-limit", Severity.ERROR, Input.TEST)
def pcc_below_limit(
    observation: Observation,
    *,
    least: Limit = Limit(USUAL_PCC, "PCC", "bring-up guides of tt-metal"),
) -> Answer:
    """A PCC is below its limit.

    ## What it finds
    Correlations of an output with what was expected whose worst sample is below the limit, or does
    not exist. The limit is set by the call, the marker or the setting `pcc`, else the one below. It
    is not reported where the gate fails the PCC by itself.

    ## Why it matters
    A model that is fast and wrong is of no use to anybody.

    ## What to do
    Undo the last change of a format, a fidelity or a layout; then compare layer by layer, with
    `ttnn_perf.check_layers` or comparison mode of TTNN, to find where the outputs part. NaN mostly
    comes from a softmax or an exponential without its maximum subtracted, a division by a sum over
    padding, an uninitialised cache, or weights beyond the range of a block format.

    ## When it is no problem
    Never. A model that cannot reach 0.99 sets a limit of its own, with its reason.
    """
    checked = pccs(observation)
    if not checked:
        return Answer.not_measured(NO_PCC)
    # NaN is below nothing; it comes first, then the one furthest below its limit.
    values = [(pcc, worst_of(pcc), _asked_for(pcc, least)) for pcc in checked]
    values.sort(key=lambda each: -math.inf if math.isnan(each[1]) else each[1] - each[2])
    short = [each for each in values if not each[1] >= each[2]]
    _, value, limit = values[0]
    bound = replace(least, value=limit)
    if not short:
        return bound.clean(value)
    return bound.found(
        _finite(value),
        "; ".join(
            f"{pcc.metric.name} does not exist: {pcc.note or 'it is not a number'}"
            if math.isnan(worst)
            else f"{pcc.metric.name} is {worst:.6g}, below {limit:g}"
            for pcc, worst, limit in short
        ),
        (Evidence(pcc.metric.name, _finite(worst), "PCC") for pcc, worst, _ in short),
    )


def _asked_for(pcc: MetricObservation, usual: Limit) -> float:
    return usual.value if pcc.limits.at_least is None else pcc.limits.at_least


def _finite(value: float) -> float | None:
    return None if math.isnan(value) else value


@rule("TTP902", "pcc-not-checked", Severity.WARNING, Input.TEST)
def pcc_not_checked(observation: Observation) -> Answer:
    """A measured test does not check its output.

    ## What it finds
    Tests that measure something without checking a PCC, or any other accuracy with a limit.

    ## Why it matters
    Most optimizations trade precision for speed: a model that skips its work is the fastest.

    ## What to do
    Call `ttnn_perf.check_pcc(expected, actual)` with the output that `measure` returns; for models
    that are judged as one, `check_accuracy` with `at_least`.

    ## When it is no problem
    Tests of transfers, of compile times, and others that have no output to compare.
    """
    if pccs(observation):
        return Answer.clean()
    held = [
        observed.metric.name for observed in accuracies(observation) if observed.limits != NO_LIMITS
    ]
    if held:
        return Answer.clean(reason=f"{', '.join(held)} checked in its place")
    if not observation.reached_end:
        return Answer.not_measured("the test did not reach its end")
    if not observation.metrics:
        return Answer.not_applicable("the test measures nothing")
    if not any(observed.gated for observed in observation.metrics.values()):
        return Answer.not_applicable("nothing of the test is gated")
    if SCRIPT_FACT in observation.facts:
        return Answer.not_applicable("a script checks its own output")
    if all(observed.metric.source is not Source.WALL for observed in observation.metrics.values()):
        return Answer.not_measured(
            "only the device was measured: outputs are checked in another pass"
        )
    return Answer.found("the test measures its model without checking the output")


def _compared(
    observation: Observation, verdicts: tuple[Verdict, ...] | None
) -> list[tuple[Verdict, float, float]] | Answer:
    """Return verdicts on PCCs with a baseline, then and now."""
    names = {observed.metric.name for observed in pccs(observation)}
    if not names:
        return Answer.not_measured(NO_PCC)
    if verdicts is None:
        return Answer.not_measured("the test was not compared with its baseline")
    compared = [
        (v, v.centre, v.observed)
        for v in verdicts
        if v.metric.name in names and v.centre is not None and v.observed is not None
    ]
    return compared or Answer.not_measured(_NO_BASELINE)


@rule("TTP905", "target-missed", Severity.INFO, Input.TEST)
def target_missed(observation: Observation) -> Answer:
    """A metric has not reached its target.

    ## What it finds
    Metrics with a target in the marker of their test that are not as good as that: the median of
    the samples, of accuracies the worst.

    ## Why it matters
    A target says how far a model has to go. Until then it is progress, not failure.

    ## What to do
    Take the open steps of the checklist, those with the largest share of the time first.

    ## When it is no problem
    While work is under way: it never fails a test.
    """
    metrics = observation.metrics.values()
    aimed = [observed for observed in metrics if observed.limits.target is not None]
    if not aimed:
        return Answer.not_applicable("the test sets no target")
    measured = [
        observed for observed in aimed if observed.samples and all(map(isfinite, observed.samples))
    ]
    if not measured:
        return Answer.not_measured(f"{aimed[0].metric.name} has a target and no finite samples")

    values = []
    for observed in measured:
        now, aim = representative(observed.metric, observed.samples), observed.limits.target or 0.0
        behind = aim - now if observed.metric.better is Better.HIGHER else now - aim
        values.append((behind / (abs(aim) or 1.0), now, observed))
    values.sort(key=itemgetter(0), reverse=True)
    missed = [(now, observed) for behind, now, observed in values if behind > 0]
    _, now, worst = values[0]
    target = Limit(worst.limits.target or 0.0, worst.metric.unit, "the test")
    if not missed:
        return target.clean(now)
    return target.found(
        now,
        "; ".join(_missed(each, value) for value, each in missed),
        (Evidence(each.metric.name, value, each.metric.unit) for value, each in missed),
    )


def _missed(observed: MetricObservation, now: float) -> str:
    unit = f" {observed.metric.unit}" if observed.metric.unit else ""
    target = f"its target {observed.limits.target:.6g}{unit}"
    return f"{observed.metric.name} is {now:.6g}{unit}, {target}"


@rule("TTP906", "pcc-limit-lowered", Severity.WARNING, Input.TEST)
def pcc_limit_lowered(
    observation: Observation,
    *,
    least: Limit = Limit(USUAL_PCC, "PCC", "bring-up guides of tt-metal"),
) -> Answer:
    """A test asks for less PCC than usual, and does not say why.

    ## What it finds
    PCC limits below 0.99, from calls of `check_pcc`, the marker or the setting `pcc`. A reason that
    the test records waives the finding.

    ## Why it matters
    A lowered limit stays, and later readers cannot tell whether the model was broken once.

    ## What to do
    Fix the model, or record the reason in the marker: `waive={"TTP906": "bfloat4_b weights"}`. With
    `limits = "strict"` in the configuration, 0.99 holds whatever a test asks for.

    ## When it is no problem
    With a reason: generated images and long decodes have their own measures.
    """
    asked = {pcc.metric.name: _asked_for(pcc, least) for pcc in pccs(observation)}
    if not asked:
        return Answer.not_measured(NO_PCC)
    lowered = sorted((bound, name) for name, bound in asked.items() if bound < least.value)
    return least.at_least(
        min(asked.values()),
        "; ".join(f"{name} needs {bound:g} only" for bound, name in lowered),
        (Evidence(name, bound, "PCC") for bound, name in lowered),
    )


#: An error below this counts as this: few roundings make it, and no error at all has no multiple.
_LEAST_ERROR: Final = 1e-5
#: Errors are differences from 1, and multiples of them: what lies beyond these digits is rounding.
_ERROR_DIGITS, _TIMES_DIGITS = 12, 6


@rule("TTP907", "pcc-error-grew", Severity.WARNING, Input.TEST)
def pcc_error_grew(
    observation: Observation,
    verdicts: tuple[Verdict, ...] | None,
    *,
    growth: Limit = Limit(3, "times", "one bit of mantissa less is four times the error"),
    error: Limit = Limit(
        1e-4, "1 - PCC", "about seventy times what one rounding to bfloat16 leaves, 1.4e-6"
    ),
) -> Answer:
    """A PCC passes, and its error is several times the error of the baseline.

    ## What it finds
    Correlations whose error, `1 - PCC`, has grown at least `growth` times and is now at least
    `error`, though the drop is small enough for the gate. From 0.9999 to 0.9980 is twenty times the
    error, and a drop of less than 0.002. The worst sample is compared with the median and with the
    worst of the accepted sessions; an error below 0.00001 counts as 0.00001.

    ## Why it matters
    Near 1, a model can lose most of its precision before the drop is large enough to fail.

    ## What to do
    Find the change that cost it, such as a data format, a math fidelity or an approximation; if it
    is worth its price, accept it with `--ttnn-perf-update=all --ttnn-perf-reason "why"`. Until then
    no other update adds an accuracy of this test to its baseline.

    ## When it is no problem
    When the loss is accepted with its reason. Where inputs are drawn anew in every run, several
    sessions of the baseline show how much that moves the error; until then, seed the inputs.
    """
    compared = _compared(observation, verdicts)
    if isinstance(compared, Answer):
        return compared
    passing = [each for each in compared if each[0].outcome is not Outcome.REGRESSED]
    if not passing:
        return Answer.not_measured("the gate fails the PCC")
    # In per cent, it is no correlation. The worst session of the baseline decides.
    grown = [
        (_times(now, then if v.worst is None else v.worst), v, then, now)
        for v, then, now in passing
        if max(now, then) <= 1 + _LEAST_ERROR
    ]
    if not grown:
        return Answer.not_measured(_NO_BASELINE)
    grown.sort(key=lambda each: (-each[0], each[1].metric.name))
    beyond = [each for each in grown if each[0] >= growth.value]
    found = [each for each in beyond if _error(each[3]) >= error.value]
    if not found:
        why_clean = f"an error below {error.value:g} is rounding" if beyond else None
        return growth.clean(grown[0][0], reason=why_clean)
    # A test may check every layer of a model.
    more = f"; {len(found) - 1} more grew, too" if len(found) > 1 else ""
    return growth.found(
        found[0][0],
        _growth(*found[0]) + more,
        (Evidence(verdict.metric.name, times, growth.unit) for times, verdict, *_ in found),
    )


def _error(pcc: float) -> float:
    return max(0.0, round(1 - pcc, _ERROR_DIGITS))


def _times(now: float, then: float) -> float:
    return round(_error(now) / max(_error(then), _LEAST_ERROR), _TIMES_DIGITS)


def _growth(of_worst: float, verdict: Verdict, then: float, now: float) -> str:
    error, before = _error(now), _error(then)
    # Below the least error the multiple is a lower bound.
    least, most = ("at least ", "at most ") if before < _LEAST_ERROR else ("", "")
    of_centre, of_worst_text = (
        f"{times:.1f}".removesuffix(".0") for times in (_times(now, then), of_worst)
    )
    text = (
        f"{verdict.metric.name} {now:.6f}, baseline {then:.6f}: {least}{of_centre} times the error "
        f"({error:.6f} against {most}{max(before, _LEAST_ERROR):.6f})"
    )
    same = verdict.worst in {None, then}
    return text if same else f"{text}, {of_worst_text} times that of its worst session"


@rule("TTP909", "wrong-scale", Severity.WARNING, Input.TEST)
def wrong_scale(
    observation: Observation,
    verdicts: tuple[Verdict, ...] | None,
    *,
    error: Limit = Limit(0.1, "of the reference", "a choice: a PCC of 0.995 leaves as much"),
    growth: Limit = Limit(10, "times", "a choice: a hundred times the error of the PCC"),
) -> Answer:
    """The output is far from the reference, though its PCC may be fine.

    ## What it finds
    Relative L2 errors, `|actual - expected| / |expected|`, recorded by `check_pcc`, that are above
    `error`, or `growth` times what the PCC of the baseline leaves. An error of `1 - PCC` is a
    relative L2 of `sqrt(2 * (1 - PCC))` where scale and offset are right. An error of the baseline
    below 0.00001 counts as 0.00001.

    ## Why it matters
    A PCC sees neither scale nor offset: an output that is twice the reference has a PCC of 1.

    ## What to do
    Look for a scale that is missing or applied twice: of attention, of a norm, of a quantized
    weight, of an average over padding. Then for a bias.

    ## When it is no problem
    Where only the order of the outputs counts, such as logits of a classifier: waive it, or set
    `error` for the project.
    """
    found: list[tuple[float, float, float, str]] = []
    then = {v.metric.name: v.centre for v in verdicts or () if v.centre is not None}
    for pcc in pccs(observation):
        observed = observation.metrics.get(f"{pcc.metric.name}_relative_l2")
        now = worst_of(observed) if observed and observed.samples else math.nan
        if math.isnan(now):
            continue
        name, limit = pcc.metric.name, error.value
        if name in then:
            of_baseline = math.sqrt(2 * max(_error(then[name]), _LEAST_ERROR))
            limit = min(limit, growth.value * of_baseline)
        found.append((now / limit, now, limit, f"{name}_relative_l2"))
    if not found:
        return Answer.not_measured("no relative L2 is known of a PCC")
    found.sort(reverse=True)
    beyond, now, limit, _ = found[0]
    bound = replace(error, value=limit)
    if beyond <= 1:
        return bound.clean(now)
    far = [(value, most, name) for times, value, most, name in found if times > 1]
    return bound.found(
        now,
        "; ".join(f"{name} is {value:.4g}, above {most:.4g}" for value, most, name in far),
        (Evidence(name, value, error.unit) for value, _, name in far),
    )


_RULES: Final = (
    *(cold_samples, busy_host, axis_without_effect, nothing_gated),
    *(device_behind_e2e, low_io_overlap, transfer_bound),
    *(pcc_below_limit, pcc_not_checked),
    *(target_missed, pcc_limit_lowered, pcc_error_grew, wrong_scale),
)
#: The rules that wait for all numbers of a test; the others look at the process that measured it.
NUMBER_RULES: Final = frozenset(each.code for each in _RULES)
#: Those of them that look at verdicts, or at all points of a sweep.
VERDICT_RULES: Final = frozenset(
    each.code for each in _RULES if not {"verdicts", "axes"}.isdisjoint(each.inputs)
)


def ask_numbers(
    subject: Subject, settings: Settings, *, only: Collection[str] = NUMBER_RULES
) -> Answers:
    """Ask the selected rules about a measured test.

    Raises:
        RuleError: a rule itself is wrong.
        UsageError: a rule has no limit of a name that the settings give.
    """
    findings = []
    unanswered = []
    for each in _RULES:
        code, given = each.code, settings.rules.get(each.code)
        if code not in only or not code.startswith(settings.select or ""):
            continue
        if code.startswith(settings.ignore):
            continue
        asked = each.with_limits(**given.limits) if given else each
        absent = subject.why_absent(*asked.needs)
        answer = Answer.not_measured(absent) if absent else asked.check(subject)
        if answer.outcome in {RuleOutcome.FOUND, RuleOutcome.CLEAN}:
            finding = finding_of(asked, answer)
            if answer.arithmetic is not None:  # a number saves waiting time: it knows of no ops
                ns = answer.waiting_ns
                finding = replace(finding, saving_ns=ns, adds_ns=ns, gaps_ns=ns)
            findings.append(finding)
        else:
            unanswered.append(UnansweredRules(answer.outcome, answer.reason or "", (code,)))
    waived = subject.observation.waived if subject.observation else {}
    return Answers(as_configured(tuple(findings), settings.rules, waived), tuple(unanswered))

"""Host: waiting, traces, program cache, and transfers."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf.analysis.checklist.operands import (
    TO_DEVICE,
    TO_HOST,
    by_weight,
    if_worth,
    last_name,
)
from pytest_ttnn_perf.analysis.checklist.savings import differences, executions, gaps_of, waiting_in
from pytest_ttnn_perf.analysis.ops.names import shape_text
from pytest_ttnn_perf.analysis.ops.roofline import BYTES, size_of
from pytest_ttnn_perf.analysis.readers.report_db import device_tensor
from pytest_ttnn_perf.core.finding import Answer, Evidence, Input, Limit, Severity, Subject, rule
from pytest_ttnn_perf.core.observation import SET_LATE
from pytest_ttnn_perf.core.text import counted, duration, percent
from pytest_ttnn_perf.core.text import size as size_text
from pytest_ttnn_perf.gate.rules_on_numbers import (
    is_on,
    number,
    settings_of,
    uses_trace,
)

if TYPE_CHECKING:
    from pytest_ttnn_perf.analysis.readers.report_db import Report
    from pytest_ttnn_perf.core.ops import OpTable, Tensor


#: An op that is shorter than that does little: another one may do it on its way.
_SHORT_NS: Final = 5_000.0


@rule("TTP401", "host-bound", Severity.WARNING, Input.OPS)
def host_bound(
    subject: Subject,
    step: OpTable,
    *,
    share: Limit = Limit(0.2, "of the time", "real replays: 0 to 28 %"),
) -> Answer:
    """Devices wait for their next op inside replays of a trace.

    Finds the share of the time that lies between the end of one kernel and the start of the next,
    inside replays. Faster kernels then make the gaps longer, not the model faster.

    ## What to do
    Fuse small ops: inside a replay, fewer, larger ops are the only way.

    ## What it saves
    The gaps before ops of less than 5 µs, which may be part of another op.

    ## When it is no problem
    Outside a replay the question is another one: TTP402 asks it.
    """
    gaps = gaps_of(subject)
    if isinstance(gaps, str):
        return Answer.not_measured(gaps)
    if not gaps.replayed:
        return Answer.not_applicable("no replay of a trace: what the host leaves is for TTP402")
    if gaps.share <= share.value:
        return share.clean(gaps.share)
    waiting = f"devices wait {percent(gaps.share)} of the time for their next op, in {gaps.place}"
    told = waiting_in(step)
    short = [gap for gap in told.gaps if gap.op.kernel_ns < _SHORT_NS]
    saved = sum(gap.ns for gap in short)
    words = f"gaps before {counted(len(short), 'op')} of less than {_SHORT_NS / 1000:g} µs"
    answer = share.found(gaps.share, waiting, told.evidence())
    return answer.saving({}, f"{words}: {duration(saved)}", waiting_ns=saved)


_ONCE: Final = (
    "nothing ran twice: needs two replays of a trace, or two windows of one name (NAME … NAME_END)"
)
_NONE: Final = Limit(0, "executions that differ", "a trace holds one shape")


@rule("TTP403", "dynamic-shapes", Severity.WARNING, Input.OPS)
def dynamic_shapes(subject: Subject, ops: OpTable) -> Answer:
    """Calls of a model do not all do the same.

    Finds replays of a trace, or calls of a model (signposts NAME and NAME_END of one name), that
    differ from the first of their kind in an op or in its operands; and the fact `dynamic_shapes`.
    A new shape is compiled in the middle of the run, and no trace can hold it.

    ## What to do
    Pad inputs to one size, or to a few sizes with a trace for each. Keep what depends on data, such
    as the position in a sequence, in tensors instead of in shapes.

    ## When it is no problem
    Phases that are different by nature, such as prefill and decode: give them signposts of
    different names.
    """
    if is_on(settings_of(subject).get("dynamic_shapes")):
        return Answer.found("the test states that its shapes change from call to call")
    runs = executions(ops)
    if not runs:
        return Answer.not_measured(_ONCE)
    differing = list(differences(ops))
    compared = sum(map(len, runs.values())) - len(runs)
    return _NONE.at_most(
        len(differing),
        f"different from the first: {len(differing)} of {counted(compared, 'repeated execution')}",
        (Evidence(str(difference)) for difference in differing),
    )


_NAMES: Final = ("trace_region_size", "TT_RUNTIME_TRACE_REGION_SIZE")


@rule("TTP405", "trace-region-missing", Severity.WARNING, Input.DEVICE)
def trace_region_missing(
    subject: Subject, *, size: Limit = Limit(1, "B", "TTNN: 0 is no region")
) -> Answer:
    """A trace is used, and the device has no memory set aside for traces.

    Finds a trace on a device that was opened with a trace region of 0 bytes, as observed or as
    stated with the fact `trace_region_size`. Older releases refuse to capture then. Newer ones put
    the trace among the other buffers in DRAM, where it can collide with what the trace itself
    allocates.

    ## What to do
    Open the device with `trace_region_size=`; a test that fails because its trace does not fit says
    how much that needs. With tt-xla, set TT_RUNTIME_TRACE_REGION_SIZE, e.g. to 10000000, before
    torch_xla is imported.

    ## When it is no problem
    Releases since February 2026 allocate traces by themselves where the region is 0 bytes. Set the
    limit to 0 if that is what you rely on.
    """
    used = uses_trace(subject)
    if used is None:
        return Answer.not_measured("whether a trace is used is not known: state the fact use_trace")
    if not used:
        return Answer.not_applicable("no trace is used")
    settings = settings_of(subject)
    known = [settings[name] for name in _NAMES if name in settings]
    if not known:
        return Answer.not_measured(
            "the size of the trace region is not known: state the fact trace_region_size"
        )
    late = subject.observation.environment.get(SET_LATE) if subject.observation else None
    if _NAMES[1] in str(late):
        return Answer.not_measured(
            f"{_NAMES[1]} was set after torch_xla was imported, which may be too late"
        )
    region = max(number(value) or 0.0 for value in known)
    return size.at_least(region, f"a trace is used with a trace region of {size_text(region)}")


#: The variable of tt-xla's runtime; not set, the cache is on.
_VARIABLE: Final = "TT_RUNTIME_ENABLE_PROGRAM_CACHE"
_ENTRIES: Final = "program_cache_entries_after"
_UNKNOWN: Final = (
    "nothing is known of the program cache: no device was open, or it does not count its programs; "
    "state the fact program_cache"
)


@rule("TTP406", "program-cache-off", Severity.WARNING, Input.DEVICE)
def program_cache_off(
    subject: Subject, *, programs: Limit = Limit(1, "programs", "a cache that is on keeps what ran")
) -> Answer:
    """The program cache is off.

    Finds a device whose program cache holds nothing after the samples were taken, or a test whose
    fact `program_cache` or TT_RUNTIME_ENABLE_PROGRAM_CACHE says that the cache is off. The host
    then builds the program of every op again, and a trace cannot be captured at all.

    ## What to do
    Remove `device.disable_and_clear_program_cache()`. With older releases call
    `device.enable_program_cache()`. With tt-xla, do not set TT_RUNTIME_ENABLE_PROGRAM_CACHE to 0.

    ## When it is no problem
    A test that runs no program on the device.
    """
    observation = subject.observation
    entries = number(observation.environment.get(_ENTRIES)) if observation else None
    if entries is not None:
        held = counted(int(entries), "program")
        return programs.at_least(entries, f"after the samples the program cache held {held}")
    settings = settings_of(subject)
    if "program_cache" in settings:
        name, is_there = "program_cache", is_on(settings["program_cache"])
    elif _VARIABLE in settings:
        name, is_there = _VARIABLE, settings[_VARIABLE] is None or is_on(settings[_VARIABLE])
    else:
        return Answer.not_measured(_UNKNOWN)
    if is_there:
        return Answer.clean(reason=f"{name} says that it is on")
    return Answer.found(f"{name} says that the program cache is off")


@rule("TTP407", "optimization-level-zero", Severity.INFO, Input.DEVICE)
def optimization_level_zero(
    subject: Subject, *, level: Limit = Limit(1, "level", "tt-xla's guide recommends level 1")
) -> Answer:
    """A model is compiled by tt-xla without optimization.

    Finds a model that is compiled with `optimization_level` 0, the default, which turns all passes
    of the optimizer off and keeps every tensor in DRAM. The level is observed of tests that use
    torch_xla with `PJRT_DEVICE` TT, or that give `compiler_options` to `jax.jit`; others state it:
    `ttnn_perf.facts(tt_xla=True, optimization_level=1)`.

    ## What to do
    Set the compile option `optimization_level` to 1, which is recommended, or to 2, which also
    keeps as many tensors as it can in L1.

    ## When it is no problem
    While a model is brought up, when compile time matters more.
    """
    settings = settings_of(subject)
    if "optimization_level" not in settings:
        if is_on(settings.get("tt_xla")):
            return Answer.not_measured("the level is not known: state the fact optimization_level")
        return Answer.not_applicable("no model of tt-xla: neither observed nor stated")
    stated = settings["optimization_level"]
    chosen = number(stated)
    if chosen is None:
        return Answer.not_measured(f"optimization_level: expected a number, found {stated!r}")
    return level.at_least(chosen, f"the model is compiled with optimization_level {chosen:g}")


#: How releases call the argument that names a command queue.
_QUEUES: Final = ("cq_id", "queue_id")


class Crossing(NamedTuple):
    """A tensor between host and device; ``queue`` None is unnamed."""

    operation: str
    tensor: Tensor
    outward: bool
    queue: int | None

    def __str__(self) -> str:
        return f"{self.operation} {shape_text(self.tensor.shape)}"

    @property
    def sent(self) -> float:
        """The bytes that cross."""
        return size_of(self.tensor)

    @property
    def padding(self) -> float:
        """The bytes of them that are no data."""
        return self.sent * (1 - prod(self.tensor.logical or ()) / prod(self.tensor.padded))


def crossings(report: Report) -> list[Crossing]:
    """Return the transfers of known size, in the order of calls."""
    found: list[Crossing] = []
    for call in report.completed:
        name = last_name(call)
        if name not in TO_HOST | TO_DEVICE:
            continue
        # A copy has both of its ends among its inputs.
        ids = call.inputs if name in TO_HOST or not call.outputs else call.outputs
        queues = (re.search(r"\d+", call.arguments.get(key, "")) for key in _QUEUES)
        queue = next((int(each[0]) for each in queues if each), None)
        tensors = map(device_tensor, map(report.tensors.get, dict.fromkeys(ids)))
        found += [
            Crossing(call.name, tensor, name in TO_HOST, queue)
            for tensor in tensors
            if tensor is not None and tensor.dtype in BYTES and all(tensor.padded)
        ]
    return found


@rule("TTP504", "padded-host-transfer", Severity.WARNING, Input.REPORT)
def padded_host_transfer(
    report: Report,
    *,
    share: Limit = Limit(0.1, "of the bytes", "a choice: a tenth of the transfer time"),
    worth: Limit = Limit(200_000, "B", "10 µs at 20 GB/s: a transfer takes as long to begin"),
) -> Answer:
    """Much of the transfers between host and device is padding.

    Finds the share of padding in the tensors that a report database says to be sent to the device,
    or read from it. A tensor in tiles crosses PCIe in whole tiles of 32 by 32.

    ## What to do
    Send inputs row-major and turn them into tiles on the device; take outputs out of their tiles
    there before the host reads them, with `ttnn.untilize` or `ttnn.slice`. Choose shapes that are
    multiples of 32.

    ## When it is no problem
    Weights that are sent once while the model is loaded. Padding that crosses in less than a
    transfer takes to begin is no finding.
    """
    crossing = crossings(report)
    sent = sum(transfer.sent for transfer in crossing)
    if not sent:
        return Answer.not_applicable("the report has no transfer between host and device")
    padding = sum(transfer.padding for transfer in crossing)
    counts = {
        "sent": sum(not transfer.outward for transfer in crossing),
        "read": sum(transfer.outward for transfer in crossing),
    }
    ways = " and ".join(f"{way} in {counted(n, 'transfer')}" for way, n in counts.items() if n)
    padded = ((str(transfer), transfer.padding) for transfer in crossing if transfer.padding)
    answer = share.at_most(
        padding / sent,
        f"{percent(padding / sent)} of what is {ways} is padding",
        by_weight(padded, unit="B"),
    )
    return if_worth(answer, padding, worth, where="a transfer")


#: A setting of pipelines of TT-CNN: queue 1 carries inputs and outputs, queue 0 computes.
_SEPARATE: Final = "all_transfers_on_separate_command_queue"

_UNTOLD: Final = (
    "the report does not say on which command queue outputs are read: pass cq_id, or state the "
    "fact num_command_queues if there is one queue only"
)


@rule("TTP505", "output-on-compute-queue", Severity.INFO, Input.REPORT)
def output_on_compute_queue(
    subject: Subject,
    report: Report,
    *,
    size: Limit = Limit(2**20, "B", "a choice: takes 0.1 ms at 10 GB/s"),
) -> Answer:
    """Large outputs are read on the queue that computes.

    Finds the bytes of outputs that are read through command queue 0, which runs the model: by their
    `cq_id`, or the facts `num_command_queues` and `all_transfers_on_separate_command_queue`. The
    next call waits until the transfer ends.

    ## What to do
    Copy the output into a tensor of its own in DRAM and read it on queue 1, without blocking, after
    an event of queue 0. With TT-CNN's pipeline, set `all_transfers_on_separate_command_queue`.

    ```py
    done = ttnn.record_event(device, cq_id=0)
    ttnn.wait_for_event(1, done)
    result = output.cpu(blocking=False, cq_id=1)
    ```

    ## When it is no problem
    Small outputs, such as a token or class scores: the copy and the events cost more than they
    save.
    """
    outputs = [transfer for transfer in crossings(report) if transfer.outward]
    if not outputs:
        return Answer.not_applicable("the report has no output that is read by the host")
    sent = sum(transfer.sent for transfer in outputs)
    if sent <= size.value:
        return size.clean(sent)
    settings = settings_of(subject)
    one_queue = number(settings.get("num_command_queues")) == 1
    unnamed = int(is_on(settings[_SEPARATE])) if _SEPARATE in settings else 0 if one_queue else None
    if unnamed is None and any(transfer.queue is None for transfer in outputs):
        return Answer.not_measured(_UNTOLD)
    queues = [unnamed if transfer.queue is None else transfer.queue for transfer in outputs]
    slow = [transfer for transfer, queue in zip(outputs, queues, strict=True) if not queue]
    sent = sum(transfer.sent for transfer in slow)
    return size.at_most(
        sent,
        f"{size_text(sent)} of {counted(len(slow), 'output')} read on the queue that computes",
        by_weight(((str(transfer), transfer.sent) for transfer in slow), unit="B"),
    )

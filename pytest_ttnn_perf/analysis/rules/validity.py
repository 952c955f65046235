"""Validity of a capture: lost data, made-up times, failed operations."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final

from pytest_ttnn_perf.analysis.checklist.savings import (
    heaviest_numbers,
    kernel_ns,
    op_name,
    worst_ops,
)
from pytest_ttnn_perf.analysis.ops.regions import (
    alike_durations,
    different_replays,
    first_unread,
    no_processor,
    odd_devices,
    regions_of,
    unread_ops,
)
from pytest_ttnn_perf.analysis.ops.roofline import rooflines
from pytest_ttnn_perf.core.finding import Answer, Evidence, Input, Limit, Severity, rule
from pytest_ttnn_perf.core.text import counted, percent, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.analysis.ops.roofline import Roofline
    from pytest_ttnn_perf.analysis.readers.report_db import OperationError, Report
    from pytest_ttnn_perf.core.ops import OpTable


_NO_BROKEN: Final = Limit(0, "traces", "a trace cannot change between two replays")


@rule("TTP002", "incomplete-trace-replay", Severity.ERROR, Input.OPS)
def incomplete_trace_replay(ops: OpTable) -> Answer:
    """The replays of one trace did not run the same ops.

    Finds traces whose executions on one device differ in their ops. A trace runs the same ops every
    time: where the profiler shows others, it lost some, and every time that is taken from the
    capture is too short by an unknown amount.

    ## What to do
    Profile fewer replays at a time, or raise TT_METAL_PROFILER_PROGRAM_SUPPORT_COUNT, and read the
    profiler between them. Do not keep the capture as a baseline.
    """
    repeated = [trace for trace in ops.traces if trace.replays > 1]
    if not repeated:
        if ops.traces:
            return Answer.not_measured("every trace was replayed once: nothing to compare with")
        if any(trace is not None for trace in ops.columns.trace):
            return Answer.not_measured("the op table does not tell the replays of a trace apart")
        return Answer.not_applicable("no trace was replayed")
    broken = [trace for trace in repeated if not trace.complete]
    return _NO_BROKEN.at_most(
        len(broken),
        f"different ops in the replays of {len(broken)} of {counted(len(repeated), 'trace')}",
        (
            Evidence(
                f"trace {trace.trace} on device {trace.device}: {trace.alike} complete, of",
                trace.replays,
                "replays",
            )
            for trace in broken
        ),
    )


@rule("TTP007", "host-fallback", Severity.WARNING, Input.OPS)
def host_fallback(
    ops: OpTable, *, most: Limit = Limit(0, "ops", "one keeps a model from being traced")
) -> Answer:
    """Ops ran on the host instead of the device.

    Finds ops of torch between the ops of a step, which TTNN calls where it has none of its own:
    rows of type python_fallback in the op table. Each waits for the device, copies a tensor to the
    host and back, and keeps the model from being captured as a trace.

    ## What to do
    Use the op of TTNN in its place; or move the op in front of the first, or behind the last, op on
    the device.

    ## When it is no problem
    What runs on the host before the first op of a step, or after the last one, does not count.
    """
    within: set[int] = set()
    for region in regions_of(ops).regions:
        for step in region.steps:
            rows = [row for rows in step.values() for row in rows if not ops.columns.host[row]]
            within.update(range(min(rows, default=0), max(rows, default=0)))
    fallbacks = [ops.op(at) for at, host in enumerate(ops.columns.host) if host and at in within]
    return most.at_most(
        len(fallbacks),
        f"{counted(len(fallbacks), 'op')} ran on the host, between ops on the device",
        worst_ops(fallbacks, lambda _: 1, of=None, unit="ops"),
    )


_NO_OPS: Final = Limit(0, "ops", "without them no sum is whole")


@rule("TTP010", "ops-without-time", Severity.ERROR, Input.OPS)
def ops_without_time(ops: OpTable) -> Answer:
    """Ops ran on a device, and the capture has no time of them that can be true.

    Finds rows of ops that a device began, whose kernel duration is missing, zero or negative, or
    that begin long before the op before them ended: every sum over the capture is too short by what
    these ops took. Finds ops that nearly all took exactly the same time (at least eight, of several
    kinds), as a mock device or a script fills them in. Finds kernel durations where the columns of
    single processors (BRISC, NCRISC, TRISC0 to TRISC2, ERISC) are empty in every row. Such a
    capture gives no metric, and never becomes a baseline.

    ## What to do
    Profile fewer ops at a time, or raise TT_METAL_PROFILER_PROGRAM_SUPPORT_COUNT, and capture
    again. Where times were filled in, capture on a device with TT_METAL_DEVICE_PROFILER=1 and a
    build whose device profiler works.

    ## When it is no problem
    What a trace recorded while it was captured has no time either, and is not counted: its replays
    have. A report that was made for kernel durations alone has no times of processors.
    """
    if ops.unread:
        reasons = Counter(each.reason for each in ops.unread)
        told = f"{unread_ops(ops)}, first in line {first_unread(ops)}"
        evidence = (Evidence(why, count, "ops") for why, count in reasons.most_common())
        return _NO_OPS.found(len(ops.unread), told, evidence)
    flaw = alike_durations(ops) or no_processor(ops)
    return Answer.found(flaw) if flaw else _NO_OPS.clean(0)


_NO_DEVICES: Final = Limit(0, "devices", "the devices of a mesh run one program")


@rule("TTP011", "devices-differ", Severity.WARNING, Input.OPS)
def devices_differ(ops: OpTable) -> Answer:
    """The devices of a mesh ran different ops.

    Finds devices whose ops, by their codes and in their order, are not those of most devices, in
    the first step of a region. TTP703 and TTP704 compare unlike work then. Times of one device, and
    of the slowest, hold.

    ## What to do
    If the program is meant to be the same everywhere, the profiler lost ops of a device: profile
    fewer ops at a time. Set signposts around what runs on all devices, so that what runs on one
    alone, such as a reference, stays outside.

    ## When it is no problem
    Pipelines that give each device its own part of a model.
    """
    if len(ops.devices) < 2:
        return Answer.not_applicable("one device")
    odd = odd_devices(ops)
    return _NO_DEVICES.at_most(
        len(odd),
        f"{len(odd)} of {counted(len(ops.devices), 'device')} ran other ops than the rest",
        (Evidence(f"device {device} in {where}") for device, where in odd.items()),
    )


@rule("TTP012", "stale-shapes", Severity.WARNING, Input.OPS)
def stale_shapes(
    ops: OpTable,
    *,
    share: Limit = Limit(0.01, "of kernel time", "a choice: less than that changes no conclusion"),
) -> Answer:
    """Ops took less time than their shapes allow.

    Finds ops that would have moved more than the DRAM bandwidth of the chip, or computed more than
    its cores can, were their shapes those of the op table, with 5 % of tolerance; and all others
    with the same shapes. Where a program comes from the cache, some builds of the profiler write
    the shapes of the call that made it. Times are right, but what follows from shapes is wrong.
    Lookups and caches are left out.

    ## What to do
    Read the shapes of these ops in the model, not in the capture. A capture with the program cache
    off, or of the first call alone, has the shapes of every op.

    ## When it is no problem
    When nothing but times is wanted.
    """
    flaw = different_replays(ops)
    if flaw is not None:
        # Where some cores of an op lost their markers, it is its time that is not its own.
        return Answer.not_measured(f"{flaw} (TTP002): times of theirs may be too short")
    lines = rooflines(ops)
    if all(line.dram_ns is None and line.compute_ns is None for line in lines):
        return Answer.not_measured("neither the chip's peaks nor what ops move is known")
    # One without a time is like others with its shapes, and is not too fast itself.
    stale = [at for at, line in enumerate(lines) if line.stale and line.kernel_ns > 0]
    whole_ns = kernel_ns(ops)
    part = sum(ops.columns.kernel_ns[at] for at in stale) / whole_ns if whole_ns else 0.0
    told = (
        f"{percent(part)} of the kernel time goes into {counted(len(stale), 'op')} with impossible "
        "recorded shapes: at these shapes they would exceed the chip's peak"
    )
    return share.at_most(part, told, _fastest(ops, stale, lines))


def _fastest(table: OpTable, stale: Sequence[int], lines: Sequence[Roofline]) -> Iterator[Evidence]:
    alike: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for at in stale:
        op, line = table.op(at), lines[at]
        moved_ns = 0.0 if line.work.at_most else line.dram_ns or 0.0
        ratio = max(moved_ns, line.compute_ns or 0.0) / line.kernel_ns
        alike[op_name(op)].append((ratio, op.number))
    for name in sorted(alike, key=lambda name: (-max(alike[name])[0], name)):
        text = f"{len(alike[name])} x {name}" if len(alike[name]) > 1 else name
        farthest = max(ratio for ratio, _ in alike[name])
        yield Evidence(text, farthest, "x the peak", ops=heaviest_numbers(alike[name]))


#: What ended without an error of its own: the program went no further.
_CUT: Final = "incomplete_operation"
_LONGEST: Final = 160
#: What tt-metal says when tensors, or the circular buffers of a program, find no room.
_NO_ROOM: Final = re.compile(
    r"out of memory|beyond max L1 size|clash with L1 buffers", re.IGNORECASE
)


@rule("TTP016", "operation-failed", Severity.ERROR, Input.REPORT)
def operation_failed(
    report: Report, *, most: Limit = Limit(0, "operations", "what failed was not computed")
) -> Answer:
    """Operations of the program failed.

    Finds the operations that raised an error, with its reason; first the ones that ran out of
    memory. Operations that were begun and never ended are counted apart. What follows was not run,
    or ran on something else. Numbers of such a program are `NO_DATA`, and never become a baseline.

    ## What to do
    Fix the call that is named; where memory ran out, free tensors with `ttnn.deallocate` or
    `deallocate_activation`, keep what is read much later in DRAM, use bfloat8_b, or shard over more
    cores. A convolution: smaller slices in DRAM (`Conv2dSliceConfig`), then a smaller
    `act_block_h_override`. A matmul: smaller `in0_block_w` and `per_core_M`. Then capture again.
    `ttnn.device.dump_device_memory_state(device)` before the call shows what fills the memory.

    ## When it is no problem
    A test that provokes the error. Waive the rule there, and attach no such report.
    """
    failed = [error for error in report.errors if error.kind != _CUT]
    cut = [error for error in report.errors if error.kind == _CUT]
    if not report.errors:
        return most.clean(0.0)
    starved = sum(map(_is_starved, failed))
    lack = f", {starved} for lack of memory" if starved else ""
    texts = [f"{counted(len(failed), 'operation')} failed{lack}"] if failed else []
    texts += [f"{counted(len(cut), 'operation')} did not end"] if cut else []
    # What ran out of memory is what can be remedied by what this rule says.
    ranked = sorted(failed, key=_is_starved, reverse=True)
    return most.found(
        float(len(report.errors)),
        "; ".join(texts),
        (Evidence(_text(error)) for error in (*ranked, *cut)),
    )


def _text(error: OperationError) -> str:
    place = "" if error.operation is None else f" (operation {error.operation})"
    why = error.reason or error.kind or "no reason is given"
    return f"{error.name or 'unnamed'}{place}: {shortened(why, _LONGEST)}"


def _is_starved(error: OperationError) -> bool:
    return _NO_ROOM.search(error.reason or "") is not None

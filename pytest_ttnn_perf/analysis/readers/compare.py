"""What two captures of one kind differ in: the hardware they are of, and the calls of a report."""

from __future__ import annotations

from collections import Counter, defaultdict
from difflib import SequenceMatcher
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from pytest_ttnn_perf.analysis.ops.align import CaptureComparison, Unmatched, attribute
from pytest_ttnn_perf.analysis.ops.regions import region_named, regions_of, step_times_ns
from pytest_ttnn_perf.analysis.ops.validity import why_invalid
from pytest_ttnn_perf.analysis.readers.detect import op_table_of
from pytest_ttnn_perf.core.errors import InputError, UsageError
from pytest_ttnn_perf.core.metric import median

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pytest_ttnn_perf.analysis.ops.regions import Region
    from pytest_ttnn_perf.analysis.readers.report_db import (
        ConvConfig,
        Operation,
        Report,
        TensorRecord,
    )
    from pytest_ttnn_perf.analysis.readers.ttlang import ProgramPerf, TtlangLog
    from pytest_ttnn_perf.core.ops import OpTable


# Two captures with op tables, side by side: which ops make up the change of each region.


def compare_captures(
    before: Path,
    after: Path,
    *,
    start: str | None = None,
    end: str | None = None,
    region: str | None = None,
) -> CaptureComparison:
    """Say which ops make up the change of each region that both captures have.

    Those of one name belong together, and so do the only ones of their captures. Captures that
    have no region in common are compared as a whole, and that is said.

    Raises:
        InputError: one holds no op table, is damaged, or cannot be what a device did.
        UsageError: they hold different times, or do not have the window or the region.
    """
    first, second = (op_table_of(file, start=start, end=end) for file in (before, after))
    if first.kernel_time != second.kernel_time:
        message = (
            f"the captures hold different times: {before.name} has {first.kernel_time}, "
            f"{after.name} has {second.kernel_time}"
        )
        raise UsageError(message)
    for file, table in ((before, first), (after, second)):
        problem = why_invalid(table)
        if problem is not None:  # no op of it can be trusted
            raise InputError(file, f"{problem}; capture it again")
    differs = hardware_changes(told_by_ops(first), told_by_ops(second))
    notes = (f"not the same hardware: {', '.join(differs)}",) if differs else ()
    if region is not None:
        pair = region_named(first, region, before.name), region_named(second, region, after.name)
        return CaptureComparison((attribute(first, second, pair),), notes=notes)
    ours, theirs = regions_of(first).regions, regions_of(second).regions
    pairs = _pairs(ours, theirs)
    if not pairs:
        note = "they have no region in common: compared as a whole, mean of the devices"
        return CaptureComparison((attribute(first, second),), notes=(*notes, note))
    paired = [region for pair in pairs for region in pair]
    alone = [
        Unmatched(side, each.name, median(step_times_ns(table, each)))
        for side, table, regions in (("before", first, ours), ("after", second, theirs))
        for each in regions
        if not any(each is other for other in paired)
    ]
    changes = tuple(attribute(first, second, pair) for pair in pairs)
    return CaptureComparison(changes, unmatched=tuple(alone), notes=notes)


def _pairs(ours: Sequence[Region], theirs: Sequence[Region]) -> list[tuple[Region, Region]]:
    by_name = {region.name: region for region in theirs}
    common = [(region, by_name[region.name]) for region in ours if region.name in by_name]
    alone = len(ours) == len(theirs) == 1
    return common or ([(ours[0], theirs[0])] if alone else [])


# What two logs of tt-lang differ in: the programs, what bounds them, and the lines of kernels.


def told_by_log(log: TtlangLog) -> Told:
    """Return what a log tells of its hardware."""
    if not log.perf_summaries:
        return Told()
    last = log.perf_summaries[-1]
    return Told(last.arch, cores=last.max_compute_cores or None, clock_mhz=last.clock_mhz)


def program_changes(before: TtlangLog, after: TtlangLog) -> tuple[str, ...]:
    """Return in words what changed of the programs beside what is a metric: grids and bounds.

    Programs are matched by their place in the last summary: their ids count all that ran before.
    """
    texts: list[str] = []
    if before.perf_summaries and after.perf_summaries:
        first, second = (log.perf_summaries[-1].programs for log in (before, after))
        if len(first) != len(second):
            texts.append(f"{len(first)} → {len(second)} programs")
        else:
            for then, now in zip(first, second, strict=True):
                texts += _program(then, now)
    bounds = [_bound(log) for log in (before, after)]
    if None not in bounds and bounds[0] != bounds[1]:
        texts.append(f"bound: {bounds[0]} → {bounds[1]}")
    return tuple(texts)


def _program(then: ProgramPerf, now: ProgramPerf) -> Iterator[str]:
    name = now.name or then.name or f"program {now.program_id}"
    if then.grid != now.grid or then.cores != now.cores:
        yield f"{name}: grid {_grid(then)} → {_grid(now)}"
    if then.dram_channels and now.dram_channels and then.dram_channels != now.dram_channels:
        yield f"{name}: {then.dram_channels} → {now.dram_channels} DRAM channels"
    sizes = [_sizes(program) for program in (then, now)]
    if all(sizes) and sizes[0] != sizes[1]:
        yield f"{name}: transfers of {sizes[0]} → {sizes[1]}"


def _grid(program: ProgramPerf) -> str:
    x, y = program.grid
    return f"{x}x{y}"


def _sizes(program: ProgramPerf) -> str:
    return ", ".join(f"{size.size.bytes} B" for size in program.transfer_sizes)


def _bound(log: TtlangLog) -> str | None:
    lines = [profile.roofline for profile in log.auto_profiles if profile.roofline is not None]
    if not lines or lines[-1].bound is None:
        return None
    apart = lines[-1].bound_percent
    return lines[-1].bound if apart is None else f"{lines[-1].bound} ({apart} %)"


class LineChange(NamedTuple):
    """The cycles of one line of a kernel in both logs; None in one that does not have it."""

    thread: str
    source: str
    before: int | None
    after: int | None

    @property
    def delta(self) -> int:
        """How many cycles it takes more."""
        return (self.after or 0) - (self.before or 0)


def line_changes(before: TtlangLog, after: TtlangLog) -> tuple[LineChange, ...]:
    """Return the lines whose cycles changed, the largest change first.

    Cycles are sums over cores and iterations. Lines are known by their text: the profiler sums up
    those that read alike, and numbers move with every edit.
    """
    ours, theirs = _cycles(before), _cycles(after)
    changes = (LineChange(*key, ours.get(key), theirs.get(key)) for key in {**ours, **theirs})
    changed = (change for change in changes if change.delta)
    return tuple(sorted(changed, key=lambda change: (-abs(change.delta), change[:2])))


def _cycles(log: TtlangLog) -> Mapping[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = defaultdict(int)
    for profile in log.auto_profiles[-1:]:  # each is of all calls until then
        for thread in profile.threads:
            name = thread.total.thread
            if thread.total.kernel:
                name += f" {thread.total.kernel}"
            for line in thread.lines or ():
                cycles = line.total_cycles or line.longest_cycles
                if cycles:
                    found[name, line.source.strip()] = cycles
    return found


#: A clock by the time of one op is right within this part of it.
_SAME_CLOCK: Final = 0.01


class Told(NamedTuple):
    """What a capture tells of its hardware; None where it does not."""

    architecture: str | None = None
    board: str | None = None
    devices: int | None = None
    cores: int | None = None
    clock_mhz: float | None = None


def told_by_ops(table: OpTable) -> Told:
    """Return what an op table tells of its hardware."""
    devices, cores = len(table.devices) or None, table.available_cores
    return Told(table.arch, devices=devices, cores=cores, clock_mhz=table.clock_mhz)


def hardware_changes(before: Told, after: Told) -> tuple[str, ...]:
    """Return what two captures tell differently of their hardware, in words.

    What only one of them tells is no difference.

    >>> hardware_changes(Told("wormhole_b0", devices=1), Told("blackhole", devices=1, cores=110))
    ('architecture wormhole_b0 → blackhole',)
    """
    return tuple(
        f"{name.replace('_mhz', '')} {_shown(then)} → {_shown(now)}{_unit(name)}"
        for name, then, now in zip(Told._fields, before, after, strict=True)
        if then is not None and now is not None and not _are_alike(then, now)
    )


def _are_alike(then: str | float, now: str | float) -> bool:
    """Tell whether two values are the same, or two clocks as far as times tell them."""
    if isinstance(then, float) and isinstance(now, float):
        return abs(then - now) <= _SAME_CLOCK * then
    return then == now


def _shown(value: str | float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _unit(name: str) -> str:
    return " MHz" if name.endswith("_mhz") else ""


class CallChange(Enum):
    """What became of a call."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"


class ChangedCalls(Struct, frozen=True):
    """Calls that changed alike: ``call`` is the name with the first shape, ``what`` the causes."""

    change: CallChange
    call: str
    count: int
    what: tuple[str, ...] = ()


#: Settings of a convolution that a difference is told of.
_CONV: Final = (
    "weights_dtype", "activation", "shard_layout", "act_block_h_override", "act_block_w_div",
    "enable_act_double_buffer", "enable_weights_double_buffer", "deallocate_activation",
    "reshard_if_not_optimal",
)  # fmt: skip


def call_changes(before: Report, after: Report) -> tuple[ChangedCalls, ...]:
    """Return the calls that were added, removed, or are made with other operands, in their order.

    Calls are aligned by name and shapes, and what is left by name alone.
    """
    found: Counter[tuple[CallChange, str, tuple[str, ...]]] = Counter()
    for then, now in _aligned(before, after):
        if then is None and now is not None:
            found[CallChange.ADDED, call_name(after, now), ()] += 1
        elif now is None and then is not None:
            found[CallChange.REMOVED, call_name(before, then), ()] += 1
        elif then is not None and now is not None:
            what = tuple(_what_changed(before, then, after, now))
            if what:
                found[CallChange.CHANGED, call_name(after, now), what] += 1
    return tuple(ChangedCalls(change, call, n, what) for (change, call, what), n in found.items())


_Pair = tuple["Operation | None", "Operation | None"]


def _aligned(before: Report, after: Report) -> Iterator[_Pair]:
    first, second = before.operations, after.operations
    ours = [(call.name, _shapes(before, call)) for call in first]
    theirs = [(call.name, _shapes(after, call)) for call in second]
    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
    for word, i, j, k, m in blocks:
        if word == "equal":
            yield from zip(first[i:j], second[k:m], strict=True)
        else:
            yield from _by_name(first[i:j], second[k:m])


def _by_name(first: Sequence[Operation], second: Sequence[Operation]) -> Iterator[_Pair]:
    ours, theirs = [call.name for call in first], [call.name for call in second]
    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
    for word, i, j, k, m in blocks:
        if word == "equal":
            yield from zip(first[i:j], second[k:m], strict=True)
        else:
            yield from ((call, None) for call in first[i:j])
            yield from ((None, call) for call in second[k:m])


def _shapes(report: Report, call: Operation) -> tuple[tuple[int, ...] | None, ...]:
    tensors = (report.tensors.get(number) for number in call.inputs or call.outputs)
    return tuple(tensor.shape if tensor is not None else None for tensor in tensors)


def call_name(report: Report, call: Operation) -> str:
    """Return a call by its name and the shape of its first tensor."""
    shapes = [tensor.shape for tensor in _tensors(report, (*call.inputs, *call.outputs))]
    shape = next((shape for shape in shapes if shape), None)
    name = call.name.rpartition(".")[2]
    return f"{name} {'x'.join(map(str, shape))}" if shape else name


def _tensors(report: Report, numbers: Sequence[int]) -> Iterator[TensorRecord]:
    for number in numbers:
        tensor = report.tensors.get(number)
        if tensor is not None:
            yield tensor


def _what_changed(before: Report, then: Operation, after: Report, now: Operation) -> Iterator[str]:
    for word, ours, theirs in (("input", then.inputs, now.inputs),
                               ("output", then.outputs, now.outputs)):  # fmt: skip
        if len(ours) != len(theirs):
            yield f"{len(ours)} → {len(theirs)} {word}s"
        for place, (old, new) in enumerate(zip(ours, theirs, strict=False)):
            mine, other = before.tensors.get(old), after.tensors.get(new)
            if mine is not None and other is not None:
                several = f" {place}" if len(ours) > 1 else ""
                yield from (f"{word}{several} {each}" for each in _tensor_changes(mine, other))
    if then.fidelity and now.fidelity and then.fidelity != now.fidelity:
        yield f"fidelity {then.fidelity} → {now.fidelity}"
    if then.conv is not None and now.conv is not None:
        yield from _conv_changes(then.conv, now.conv)
    if then.device_operations != now.device_operations:
        yield from _inner_changes(then, now)


def _tensor_changes(then: TensorRecord, now: TensorRecord) -> Iterator[str]:
    for part in ("shape", "dtype", "layout", "memory"):
        old, new = getattr(then, part), getattr(now, part)
        if old is not None and new is not None and old != new:
            if part == "shape":
                old, new = "x".join(map(str, old)), "x".join(map(str, new))
            yield f"{old} → {new}"
    if then.memory == now.memory and then.shard is not None and now.shard is not None:
        old, new = then.shard, now.shard
        if (old.shape, old.grid) != (new.shape, new.grid):
            yield f"shards {_shard_text(old.shape)} → {_shard_text(new.shape)}"


def _shard_text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _conv_changes(then: ConvConfig, now: ConvConfig) -> Iterator[str]:
    for name in _CONV:
        old, new = getattr(then, name), getattr(now, name)
        if old is not None and new is not None and old != new:
            yield f"{name} {old} → {new}"


def _inner_changes(then: Operation, now: Operation) -> Iterator[str]:
    """Yield which device operations run inside a call more often than before, or less."""
    if not then.device_operations or not now.device_operations:
        return  # one of the reports did not capture what ran inside
    ours, theirs = Counter(then.device_operations), Counter(now.device_operations)
    gone, new = sorted((ours - theirs).elements()), sorted((theirs - ours).elements())
    if gone:
        yield f"inside: no {', '.join(map(_device_operation, gone))}"
    if new:
        yield f"inside: new {', '.join(map(_device_operation, new))}"


def _device_operation(name: str) -> str:
    return name.rpartition("::")[2].removesuffix("DeviceOperation") or name

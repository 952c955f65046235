"""What two captures of one kind differ in: the hardware they are of, and the calls of a report."""

from __future__ import annotations

from collections import Counter
from difflib import SequenceMatcher
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from pytest_ttnn_perf._base.dataclass import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_ttnn_perf.records.ops import OpTable
    from pytest_ttnn_perf.records.ttnn_report import ConvConfig, Operation, Report, TensorRecord


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


@dataclass(frozen=True, slots=True)
class ChangedCalls:
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
